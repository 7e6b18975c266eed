// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// What all tests share: one cache of everything that they look at again and again, and
// what wakes those that wait up.
var (
	cached  client.Reader
	changes = &pulses{waiting: map[string]chan struct{}{}}
	proxies *standIns
)

// watched are the kinds that the cache holds.
func watched() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.Service{}, &corev1.Namespace{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &discoveryv1.EndpointSlice{},
		&splitv1.TrafficSplit{}, &specsv1.HTTPRouteGroup{}, &v1alpha1.Rollout{}, &v1alpha1.CanaryRelease{},
	}
}

// startShared starts what all tests share. It runs until the process ends.
func startShared(ctx context.Context) error {
	c, err := cache.New(plane.Config, cache.Options{Scheme: newScheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	proxies = newStandIns(c)
	for _, o := range watched() {
		informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(handle(changes.told, proxies.told)); err != nil {
			return err
		}
	}
	go func() {
		if err := c.Start(ctx); err != nil {
			panic(err)
		}
	}()
	if !c.WaitForCacheSync(ctx) {
		return fmt.Errorf("the shared cache did not start: %w", ctx.Err())
	}
	cached = c
	return nil
}

// handle tells each function of each object that changed.
func handle(functions ...func(client.Object)) clientcache.ResourceEventHandler {
	tell := func(object any) {
		if gone, ok := object.(clientcache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(client.Object); ok {
			for _, f := range functions {
				f(o)
			}
		}
	}
	return clientcache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell}
}

// pulses wake those up who wait for a change in a namespace.
type pulses struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// next is closed with the next change in the namespace.
func (p *pulses) next(namespace string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[namespace] == nil {
		p.waiting[namespace] = make(chan struct{})
	}
	return p.waiting[namespace]
}

func (p *pulses) told(o client.Object) {
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = o.GetName() // a Namespace itself
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting := p.waiting[namespace]; waiting != nil {
		close(waiting)
		delete(p.waiting, namespace)
	}
}
