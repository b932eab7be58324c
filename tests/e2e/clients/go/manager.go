package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.dev/manager"

// LocalWorker is as much of the kind as the manager cares for.
type LocalWorker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Image string `json:"image,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// LocalWorkerList is a list of them.
type LocalWorkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalWorker `json:"items"`
}

// DeepCopyObject makes a copy by way of JSON: nobody generates code for a test.
func (w *LocalWorker) DeepCopyObject() runtime.Object { return copied(w, &LocalWorker{}) }

// DeepCopyObject makes a copy in the same way.
func (l *LocalWorkerList) DeepCopyObject() runtime.Object { return copied(l, &LocalWorkerList{}) }

func copied[T any](from, to *T) *T {
	encoded, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(encoded, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

// manageWorkers runs a manager that is one of several, of which one leads.
func manageWorkers(ctx context.Context, config *rest.Config, namespace string) error {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return err
	}
	known.AddKnownTypes(groupVersion, &LocalWorker{}, &LocalWorkerList{})
	metav1.AddToGroupVersion(known, groupVersion)
	lease, deadline, period := 4*time.Second, 3*time.Second, time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        known,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "manager",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &deadline,
		RetryPeriod:                   &period,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&LocalWorker{}).Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-manager.Elected():
			tell("leads", nil)
		case <-ctx.Done():
		}
	}()
	tell("started", nil)
	return manager.Start(ctx)
}

type reconciler struct{ client client.Client }

// Reconcile says in the status that the worker asks for work, and lets go of one that is deleted.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := &LocalWorker{}
	if err := r.client.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !found.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(found, finalizer) {
			return ctrl.Result{}, nil
		}
		tell("let go", object{"name": found.Name})
		return ctrl.Result{}, client.IgnoreNotFound(r.client.Update(ctx, found))
	}
	if controllerutil.AddFinalizer(found, finalizer) {
		return ctrl.Result{}, r.client.Update(ctx, found)
	}
	changed := meta.SetStatusCondition(&found.Status.Conditions, metav1.Condition{
		Type:               "Polling",
		Status:             metav1.ConditionTrue,
		Reason:             "Asks",
		Message:            fmt.Sprintf("The image is %s", found.Spec.Image),
		ObservedGeneration: found.Generation,
	})
	if !changed {
		return ctrl.Result{}, nil
	}
	tell("reconciled", object{"name": found.Name, "generation": found.Generation})
	return ctrl.Result{}, r.client.Status().Update(ctx, found)
}
