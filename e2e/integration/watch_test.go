// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher reads every change that the API server makes, as it makes it.
var watcher = sync.OnceValues(func() (client.WithWatch, error) {
	return client.NewWithWatch(plane.Config, client.Options{Scheme: newScheme()})
})

// follow tells of each object of a kind in the namespace, and of each change of it, until
// the test ends.
func (s *scene) follow(list client.ObjectList, act func(client.Object)) {
	s.Helper()
	s.watch(list, func(e watch.Event, o client.Object) {
		if e.Type != watch.Deleted {
			act(o)
		}
	})
}

// watch tells of all changes of a kind in the namespace until the test has ended, with what is
// checked last. The API server ends a watch that falls behind, as on a busy machine. Then it goes on from there.
func (s *scene) watch(list client.ObjectList, tell func(watch.Event, client.Object)) {
	s.Helper()
	c, err := watcher()
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	s.Cleanup(stop)
	if err := c.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	changes, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, client.InNamespace(s.namespace), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = meta.EachListItem(list, func(item runtime.Object) error { // tell returns no error
			tell(watch.Event{Type: watch.Added, Object: item}, item.(client.Object))
			return nil
		})
		for e := range changes.ResultChan() {
			o, ok := e.Object.(client.Object)
			if !ok {
				if s.Context().Err() == nil {
					s.Errorf("a watch brought %T: %+v", e.Object, e.Object)
				}
				return
			}
			tell(e, o)
		}
	}()
}
