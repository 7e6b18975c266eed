// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
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
// checked last.
func (s *scene) watch(list client.ObjectList, tell func(watch.Event, client.Object)) {
	s.Helper()
	c, err := watcher()
	if err != nil {
		s.Fatal(err)
	}
	open := func() watch.Interface {
		changes, err := c.Watch(context.WithoutCancel(s.Context()), list, client.InNamespace(s.namespace))
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(changes.Stop)
		return changes
	}
	changes := open()
	go func() {
		for s.hear(changes, tell) {
			changes = open() // its cache had not heard of the namespace yet
		}
	}()
}

// hear reports whether the watch was refused before it brought anything.
func (s *scene) hear(changes watch.Interface, tell func(watch.Event, client.Object)) (refused bool) {
	first := true
	for e := range changes.ResultChan() {
		o, ok := e.Object.(client.Object)
		if !ok {
			if !first && s.Context().Err() == nil {
				s.Errorf("a watch brought %T: %+v", e.Object, e.Object)
			}
			return first && s.Context().Err() == nil
		}
		first = false
		tell(e, o)
	}
	return false
}
