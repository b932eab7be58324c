package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
)

// upgradeManagedFields makes the fields that kubectl has applied on its side those of an applier, and gives one of them up.
func upgradeManagedFields(ctx context.Context, config *rest.Config, namespace string) error {
	workers, err := workersOf(config, namespace)
	if err != nil {
		return err
	}
	current, err := workers.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(current, sets.New("kubectl-client-side-apply"), "kubectl")
	if err != nil {
		return err
	}
	upgraded, err := workers.Patch(ctx, "applied", types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	tell("upgraded", object{"object": upgraded})
	applied, err := workers.Apply(ctx, "applied", worker("applied", "two"), metav1.ApplyOptions{FieldManager: "kubectl"})
	if err != nil {
		return err
	}
	tell("end", object{"object": applied})
	return nil
}
