// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

const (
	// goodbye is how long Serin may take to give everything back.
	goodbye = time.Minute
	// look is how often it is looked whether the demo's namespace is gone.
	look = 500 * time.Millisecond
)

// Clean removes what an earlier run left: first the demo, while Serin is there
// to give everything back, then Serin itself, unless it was there already.
func (s *Stage) Clean(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	switch err := s.api.Delete(ctx, namespace); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("delete namespace %s: %w", Namespace, err)
	default:
		s.options.Say("removing the demo of an earlier run")
		if err := s.waitGone(ctx, namespace, goodbye); err != nil {
			return err
		}
	}
	if s.options.Installed {
		return nil
	}
	// What the hook checks was done above, and the image of its pod may be gone.
	return s.UninstallRelease(ctx, "--ignore-not-found")
}

// waitGone waits until the namespace is gone. When it is still there after the
// patience given, Serin was killed or removed before and nobody takes its
// finalizers away: then that is done here, since the Services that Serin would
// restore go with the namespace.
func (s *Stage) waitGone(ctx context.Context, namespace *corev1.Namespace, patience time.Duration) error {
	// An error other than "not found" tells nothing: it is asked again.
	gone := func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(s.api.Get(ctx, client.ObjectKeyFromObject(namespace), &corev1.Namespace{})), nil
	}
	err := wait.PollUntilContextTimeout(ctx, look, patience, true, gone)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.options.Say("nobody gave the demo's objects back; removing their finalizers")
	for _, list := range []client.ObjectList{&serinv1alpha1.RolloutList{}, &splitv1alpha4.TrafficSplitList{}} {
		if err := s.dropFinalizers(ctx, list); err != nil {
			return err
		}
	}
	if err := wait.PollUntilContextTimeout(ctx, look, goodbye, true, gone); err != nil {
		return fmt.Errorf("namespace %s is not gone after %s; look with: kubectl get namespace %s -o yaml: %w", Namespace, goodbye, Namespace, err)
	}
	return nil
}

func (s *Stage) dropFinalizers(ctx context.Context, list client.ObjectList) error {
	err := s.api.List(ctx, list, client.InNamespace(Namespace))
	if meta.IsNoMatchError(err) {
		return nil // the kind is gone, and its objects with it
	}
	if err != nil {
		return fmt.Errorf("list what is left of the demo: %w", err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(s.api.Patch(ctx, object, patch))
	})
}
