// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// lookAgain is how often a cluster without TrafficSplits is asked whether it has them.
const lookAgain = 30 * time.Second

// splitFeed watches TrafficSplits in the version that the cluster serves. A cluster that
// does not know the kind has none of them, and may know it later.
func (w *Watcher) splitFeed() *feed {
	return &feed{
		resource: observe.TrafficSplits.Resource, example: &unstructured.Unstructured{}, source: splitSource{w},
		set: func(o runtime.Object) error {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("%T is no TrafficSplit", o)
			}
			split, err := decodeSplit(u)
			if err != nil { // one that can't be read must not keep the others from being known
				w.options.Log.Error(err, "A TrafficSplit can't be read", "TrafficSplit", u.GetNamespace()+"/"+u.GetName())
				return nil
			}
			w.SetSplit(split)
			return nil
		},
		remove: func(n types.NamespacedName) { w.DeleteObject(observe.TrafficSplits, n) },
		names:  func() []types.NamespacedName { return w.all(observe.TrafficSplits) },
	}
}

// decodeSplit reads a TrafficSplit of any version.
func decodeSplit(u *unstructured.Unstructured) (*splitv1.TrafficSplit, error) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	split := &splitv1.TrafficSplit{}
	return split, json.Unmarshal(text, split)
}

// splitSource lists and watches TrafficSplits.
type splitSource struct{ w *Watcher }

// IsWatchListSemanticsUnSupported has lists asked for as lists: a cluster without the
// kind is answered for here.
func (splitSource) IsWatchListSemanticsUnSupported() bool { return true }

// List and Watch are what cache.ListerWatcher wants of those without a context; they are
// not called where the other two are there.
func (s splitSource) List(metav1.ListOptions) (runtime.Object, error) { return nil, errContext }

// Watch is like List.
func (s splitSource) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errContext }

var errContext = fmt.Errorf("%s: a context is needed", observe.TrafficSplits.Resource)

// ListWithContext lists what there is.
func (s splitSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	if client == nil {
		return &unstructured.UnstructuredList{}, nil
	}
	return client.List(ctx, o)
}

// WatchWithContext watches, or waits in vain for a while.
func (s splitSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	if client != nil {
		return client.Watch(ctx, o)
	}
	idle := watch.NewRaceFreeFake()
	timer := s.w.options.Clock.NewTimer(lookAgain)
	go func() {
		defer idle.Stop()
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
	}()
	return idle, nil
}

// client of the best version that the cluster serves; nil when it serves none.
func (s splitSource) client() (dynamic.ResourceInterface, error) {
	for _, version := range splitv1.Versions {
		gv := schema.GroupVersion{Group: splitv1.GroupVersion.Group, Version: version}
		list, err := s.w.options.Discovery.ServerResourcesForGroupVersion(gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask whether the cluster serves %s: %w", gv, err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == observe.TrafficSplits.Resource }) {
			return s.w.options.Dynamic.Resource(gv.WithResource(observe.TrafficSplits.Resource)), nil
		}
	}
	return nil, nil
}
