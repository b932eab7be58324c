package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

// write makes and resolves a conflict, and applies as two managers.
func write(ctx context.Context, workers dynamic.ResourceInterface) error {
	created, err := workers.Create(ctx, worker("written", "one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fresh := created.DeepCopy()
	fresh.Object["spec"] = object{"image": "two"}
	if _, err := workers.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return err
	}
	current := created
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current.Object["spec"] = object{"image": "three"}
		updated, err := workers.Update(ctx, current, metav1.UpdateOptions{})
		if err != nil {
			tellStatus("conflict", err)
			current, _ = workers.Get(ctx, "written", metav1.GetOptions{})
			return err
		}
		tell("written", object{"object": updated})
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := workers.Apply(ctx, "applied", worker("applied", "one"), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		return err
	}
	_, err = workers.Apply(ctx, "applied", worker("applied", "two"), metav1.ApplyOptions{FieldManager: "second"})
	tellStatus("refused", err)
	applied, err := workers.Apply(ctx, "applied", worker("applied", "two"), metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return err
	}
	tell("applied", object{"object": applied})
	return nil
}

func tellStatus(step string, err error) {
	if status, ok := err.(apierrors.APIStatus); ok {
		tell(step, object{"code": status.Status().Code, "reason": status.Status().Reason})
	}
}

// retryWatcher writes, lists, and follows with a RetryWatcher until there is an object called last.
func retryWatcher(ctx context.Context, config *rest.Config, namespace string) error {
	workers, err := workersOf(config, namespace)
	if err != nil {
		return err
	}
	if err := write(ctx, workers); err != nil {
		return err
	}
	return follow(ctx, workers)
}

// followWorkers does the last part of it only.
func followWorkers(ctx context.Context, config *rest.Config, namespace string) error {
	workers, err := workersOf(config, namespace)
	if err != nil {
		return err
	}
	return follow(ctx, workers)
}

// follow lists and watches from there.
func follow(ctx context.Context, workers dynamic.ResourceInterface) error {
	list, err := workers.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	objects := object{}
	for index := range list.Items {
		objects[list.Items[index].GetName()] = &list.Items[index]
	}
	tell("listed", object{"objects": objects, "resourceVersion": list.GetResourceVersion()})
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return workers.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		changed, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%s: %v", event.Type, event.Object)
		}
		tell("event", object{"type": event.Type, "object": changed})
		if event.Type == watch.Deleted {
			delete(objects, changed.GetName())
		} else {
			objects[changed.GetName()] = changed
		}
		if changed.GetName() == "last" {
			tell("end", object{"objects": objects})
			return nil
		}
	}
	return fmt.Errorf("the watch has ended")
}
