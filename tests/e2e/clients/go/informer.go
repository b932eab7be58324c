package main

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer writes, and follows with a shared informer.
func informer(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := write(ctx, client.Resource(resource).Namespace(namespace)); err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	shared := factory.ForResource(resource).Informer()
	return inform(ctx, shared, factory.Start)
}

// listingInformer does the same without WatchList: it lists, as informers did before and do with servers that know no better.
func listingInformer(ctx context.Context, config *rest.Config, namespace string) error {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		return err
	}
	return informer(ctx, config, namespace)
}

// metadataInformer follows what all objects share, which client-go asks for in protobuf.
func metadataInformer(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
	shared := factory.ForResource(resource).Informer()
	return inform(ctx, shared, factory.Start)
}

// inform tells what an informer says, until there is an object called last.
func inform(ctx context.Context, shared cache.SharedIndexInformer, start func(<-chan struct{})) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := make(chan struct{})
	told := func(kind string, changed any) {
		tell("event", object{"type": kind, "object": changed})
		if kind == "ADDED" && changed.(metav1.Object).GetName() == "last" {
			close(last)
		}
	}
	handling, err := shared.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			if !initial {
				told("ADDED", added)
			}
		},
		UpdateFunc: func(_, updated any) { told("MODIFIED", updated) },
		DeleteFunc: func(deleted any) {
			if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
				deleted = unknown.Obj
			}
			told("DELETED", deleted)
		},
	})
	if err != nil {
		return err
	}
	start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handling.HasSynced) {
		return ctx.Err()
	}
	tell("listed", object{"objects": byName(shared.GetStore().List()), "resourceVersion": shared.LastSyncResourceVersion()})
	select {
	case <-last:
		tell("end", object{"objects": byName(shared.GetStore().List())})
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func byName(listed []any) object {
	objects := object{}
	for _, one := range listed {
		objects[one.(metav1.Object).GetName()] = one
	}
	return objects
}
