// Clients made with client-go and controller-runtime. Each command tells what it sees in lines of JSON, of which the test makes up its mind.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	groupVersion = schema.GroupVersion{Group: "worker.saved.sh", Version: "v1alpha1"}
	resource     = groupVersion.WithResource("localworkers")
	telling      sync.Mutex
)

type object = map[string]any

var commands = map[string]func(ctx context.Context, config *rest.Config, namespace string) error{
	"follow":          followWorkers,
	"retrywatcher":    retryWatcher,
	"informer":        informer,
	"listinginformer": listingInformer,
	"metadata":        metadataInformer,
	"manager":         manageWorkers,
	"verbs":           useVerbs,
	"csaupgrade":      upgradeManagedFields,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return talkative{next} })
		err = commands[os.Args[1]](ctx, config, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tell writes a line for the test.
func tell(step string, fields object) {
	line := object{"step": step}
	for name, value := range fields {
		line[name] = value
	}
	telling.Lock()
	defer telling.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		panic(err)
	}
}

// talkative tells of each answer to a GET in which form it came.
type talkative struct{ next http.RoundTripper }

func (t talkative) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && request.Method == http.MethodGet {
		tell("answer", object{
			"path":        request.URL.Path,
			"query":       request.URL.RawQuery,
			"code":        response.StatusCode,
			"contentType": response.Header.Get("Content-Type"),
		})
	}
	return response, err
}

func workersOf(config *rest.Config, namespace string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(resource).Namespace(namespace), nil
}

func worker(name, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": groupVersion.String(), "kind": "LocalWorker", "metadata": object{"name": name}, "spec": object{"image": image},
	}}
}
