package main

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// unlisted is what no verb of a collection, an object or a subresource stands for.
var unlisted = []struct{ method, below string }{
	{http.MethodPut, ""},
	{http.MethodPatch, ""},
	{http.MethodPost, "/x"},
	{http.MethodPost, "/x/status"},
	{http.MethodDelete, "/x/status"},
	{http.MethodPost, "/x/scale"},
	{http.MethodDelete, "/x/scale"},
}

// useVerbs reads in both forms of discovery which verbs our resources have, and asks for what they do not have.
func useVerbs(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	for _, legacy := range []bool{false, true} {
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		verbs := map[string]metav1.Verbs{}
		for _, list := range lists {
			for _, found := range list.APIResources {
				if strings.HasPrefix(found.Name, "localworkers") || strings.HasPrefix(found.Name, "workerpools") {
					verbs[list.GroupVersion+"/"+found.Name] = found.Verbs
				}
			}
		}
		tell("verbs", object{"legacy": legacy, "verbs": verbs})
	}
	for _, request := range unlisted {
		path := "/apis/clrk.apoxy.dev/v1alpha1/namespaces/" + namespace + "/workerpools" + request.below
		err := client.RESTClient().Verb(request.method).AbsPath(path).Do(ctx).Error()
		tell("asked", object{"method": request.method, "below": request.below, "notSupported": apierrors.IsMethodNotSupported(err), "error": errorText(err)})
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
