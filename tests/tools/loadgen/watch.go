package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// resourceVersion returns that of the collection now.
func resourceVersion(ctx context.Context, c *http.Client) string {
	rs, err := c.Do(req(ctx, "GET", *base+"?limit=1", nil, ""))
	if err != nil {
		log.Fatal(err)
	}
	defer rs.Body.Close()
	var l struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(rs.Body).Decode(&l); err != nil {
		log.Fatal(err)
	}
	io.Copy(io.Discard, rs.Body)
	return l.Metadata.ResourceVersion
}

// line reads up to the next newline, whatever its length; what it returns is good until the next call.
func line(br *bufio.Reader) ([]byte, error) {
	l, err := br.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return l, err
	}
	l = append([]byte{}, l...)
	for err == bufio.ErrBufferFull {
		var more []byte
		more, err = br.ReadSlice('\n')
		l = append(l, more...)
	}
	return l, err
}

// open opens one watch.
func open(ctx context.Context, c *http.Client, res *result, q string) io.ReadCloser {
	if *query != "" {
		q += "&" + *query
	}
	rs, err := c.Do(req(ctx, "GET", *base+q, nil, ""))
	if err != nil {
		res.fail("watch " + err.Error())
		return nil
	}
	if rs.StatusCode != 200 {
		res.fail(fmt.Sprint("watch ", rs.StatusCode))
		rs.Body.Close()
		return nil
	}
	return rs.Body
}

// openers bounds how many connections are being opened at once: a server's queue of connections that wait to be accepted is bounded too.
var openers = make(chan struct{}, 64)

// watch opens -w watches, writes -events merge patches, and counts deliveries; the latency of a delivery is from the moment its write was
// sent to the moment the watcher read the event's line. -stuck more watches are opened and never read.
func watch(c *http.Client, res *result) {
	ctx, stop := context.WithTimeout(context.Background(), *dur)
	defer stop()
	q := "?watch=1&resourceVersion=" + resourceVersion(ctx, c)
	sent := make([]int64, *events+1)
	var ready, done sync.WaitGroup
	for k := 0; k < *watches; k++ {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			openers <- struct{}{}
			stream := open(ctx, c, res, q)
			<-openers
			ready.Done()
			if stream == nil {
				return
			}
			defer stream.Close()
			br := bufio.NewReaderSize(stream, 1<<14)
			lat := make([]float64, 0, *events)
			for got := 0; got < *events; {
				l, err := line(br)
				if err != nil {
					res.fail("watch ended: " + err.Error())
					break
				}
				if j := bytes.Index(l, []byte(`"lab.seq":"`)); j >= 0 {
					m := l[j+11:]
					seq, _ := strconv.Atoi(string(m[:bytes.IndexByte(m, '"')]))
					if seq >= 1 && seq <= *events {
						lat = append(lat, float64(time.Now().UnixMicro()-atomic.LoadInt64(&sent[seq]))/1000)
						got++
					}
				}
				atomic.AddInt64(&res.in, int64(len(l)))
			}
			res.mu.Lock()
			res.lat = append(res.lat, lat...)
			res.mu.Unlock()
			atomic.AddInt64(&res.n, int64(len(lat)))
		}()
	}
	unread := clientReading(1 << 12)
	for k := 0; k < *stuck; k++ {
		if stream := open(ctx, unread, res, q); stream != nil {
			defer stream.Close()
		}
	}
	ready.Wait()
	c0, _ := used(*pids)
	t0 := time.Now()
	var next int64
	var writing sync.WaitGroup
	for k := 0; k < *writers; k++ {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for e := int(atomic.AddInt64(&next, 1)); e <= *events; e = int(atomic.AddInt64(&next, 1)) {
				if *rate > 0 {
					time.Sleep(time.Until(t0.Add(time.Duration(float64(e) / *rate * float64(time.Second)))))
				}
				b := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"lab.run":"%d","lab.seq":"%d"}}}`, t0.UnixMicro(), e))
				atomic.StoreInt64(&sent[e], time.Now().UnixMicro())
				rs, err := c.Do(req(ctx, "PATCH", *base+"/"+name(e%*objects), b, "application/merge-patch+json"))
				if err != nil {
					res.fail(err.Error())
					continue
				}
				io.Copy(io.Discard, rs.Body)
				rs.Body.Close()
				if rs.StatusCode != 200 {
					res.fail(fmt.Sprint("patch ", rs.StatusCode))
				}
			}
		}()
	}
	writing.Wait()
	written := time.Since(t0).Seconds()
	done.Wait()
	// Opening the connections is not what this measures: what follows it is told apart.
	c1, _ := used(*pids)
	if res.n > 0 {
		res.extra["delivered_per_s"] = round(float64(res.n) / time.Since(t0).Seconds())
		res.extra["delivery_cpu_us"] = round((c1 - c0) * 1e6 / float64(res.n))
		res.extra["updates_per_s"] = round(float64(*events) / written)
	}
}

// informers opens -w watches at once that begin with what exists, as an informer does, and waits until each has all -objects and the
// bookmark that ends them.
func informers(c *http.Client, res *result) {
	ctx, stop := context.WithTimeout(context.Background(), *dur)
	defer stop()
	var done sync.WaitGroup
	for k := 0; k < *watches; k++ {
		done.Add(1)
		go func() {
			defer done.Done()
			t := time.Now()
			stream := open(ctx, c, res, "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
			if stream == nil {
				return
			}
			defer stream.Close()
			br := bufio.NewReaderSize(stream, 1<<14)
			in, added := 0, 0
			for {
				l, err := line(br)
				if err != nil {
					res.fail("watch ended: " + err.Error())
					return
				}
				in += len(l)
				if bytes.HasPrefix(l, []byte(`{"type":"BOOKMARK"`)) && bytes.Contains(l, []byte("k8s.io/initial-events-end")) {
					break
				}
				added++
			}
			if added != *objects {
				res.fail(fmt.Sprintf("%d initial events instead of %d", added, *objects))
				return
			}
			res.add(float64(time.Since(t).Microseconds())/1000, int64(in))
		}()
	}
	done.Wait()
}

// idle opens -w watches and says what memory of the server they take while nothing happens.
func idle(c *http.Client, res *result) {
	ctx, stop := context.WithTimeout(context.Background(), *dur)
	defer stop()
	q := "?watch=1&allowWatchBookmarks=true&resourceVersion=" + resourceVersion(ctx, c)
	_, before := used(*pids)
	var opened, closing sync.WaitGroup
	end := make(chan struct{})
	for k := 0; k < *watches; k++ {
		opened.Add(1)
		closing.Add(1)
		go func() {
			defer closing.Done()
			openers <- struct{}{}
			t := time.Now()
			stream := open(ctx, c, res, q)
			<-openers
			if stream != nil {
				res.add(float64(time.Since(t).Microseconds())/1000, 0)
				defer stream.Close()
			}
			opened.Done()
			<-end
		}()
	}
	opened.Wait()
	_, after := used(*pids)
	res.extra["kB_per_watcher"] = round(float64(after-before) / 1000 / float64(*watches))
	close(end)
	closing.Wait()
}
