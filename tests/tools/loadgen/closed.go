package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A template is an object's JSON with places to fill in.
type template string

func objectTemplate() template {
	b, err := os.ReadFile(*body)
	if err != nil {
		log.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(b, &o); err != nil {
		log.Fatal(err)
	}
	md, ok := o["metadata"].(map[string]any)
	if !ok {
		md = map[string]any{}
		o["metadata"] = md
	}
	md["name"] = "{name}"
	if b, err = json.Marshal(o); err != nil {
		log.Fatal(err)
	}
	return template(b)
}

// padding repeats a text that compresses about as well as what it stands for: the managed fields of an object.
func padding() string {
	text := "f:metadata f:annotations f:team f:labels f:app f:tier f:spec f:template f:resources f:requests f:cpu f:memory k:key=dedicated "
	return strings.Repeat(text, *pad/len(text)+1)[:*pad]
}

func (t template) fill(i int, pad string) []byte {
	r := strings.NewReplacer("{name}", name(i), "{i}", strconv.Itoa(i), "{i50}", strconv.Itoa(i%50+1), "{tenth}", strconv.Itoa(i%10), "{pad}", pad)
	return []byte(r.Replace(string(t)))
}

// closed runs -c clients in a closed loop, or each at its share of -rate.
func closed(c *http.Client, res *result) {
	ctx := context.Background()
	var object template
	if *mode == "create" {
		object = objectTemplate()
	}
	change, fill := template(*patch), padding()
	began := time.Now()
	deadline := began.Add(*dur)
	var next int64 = int64(*start0) - 1
	var wg sync.WaitGroup
	for k := 0; k < *conc; k++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			page := ""
			for {
				i := int(atomic.AddInt64(&next, 1))
				if *n > 0 && i-*start0 >= *n || *n == 0 && time.Now().After(deadline) {
					return
				}
				if *rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(float64(i-*start0) / *rate * float64(time.Second)))))
				}
				var r *http.Request
				switch *mode {
				case "get":
					r = req(ctx, "GET", *base+"/"+name(i%*objects), nil, "")
				case "list":
					r = req(ctx, "GET", *base+"?"+*query+page, nil, "")
				case "create":
					r = req(ctx, "POST", *base, object.fill(i, fill), "application/json")
				case "update":
					r = req(ctx, "PATCH", *base+"/"+name(i%*objects)+"?"+*query, change.fill(i, fill), *media)
				case "delete":
					r = req(ctx, "DELETE", *base+"/"+name(i), nil, "")
				default:
					log.Fatal("loadgen: no such -mode")
				}
				t := time.Now()
				rs, err := c.Do(r)
				if err != nil {
					res.fail(err.Error())
					time.Sleep(10 * time.Millisecond)
					continue
				}
				var m int64
				if *walk {
					var b []byte
					b, err = io.ReadAll(rs.Body)
					m, page = int64(len(b)), nextPage(b)
				} else {
					m, err = io.Copy(io.Discard, rs.Body)
				}
				rs.Body.Close()
				if err != nil || rs.StatusCode >= 300 {
					res.fail(fmt.Sprint(rs.StatusCode, " ", err))
					time.Sleep(10 * time.Millisecond)
					continue
				}
				res.add(float64(time.Since(t).Microseconds())/1000, m)
			}
		}()
	}
	wg.Wait()
}

// nextPage returns what is to be added to the query for the page after this one; nothing when it was the last.
func nextPage(b []byte) string {
	_, rest, _ := bytes.Cut(b, []byte(`"continue":"`))
	if token, _, ok := bytes.Cut(rest, []byte(`"`)); ok && len(token) > 0 {
		return "&continue=" + string(token)
	}
	return ""
}
