// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// ResourceLister tells what a cluster serves in a group and version. A discovery client
// is one.
type ResourceLister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Options of a Watcher.
type Options struct {
	Kubernetes kubernetes.Interface
	Metadata   metadata.Interface
	Dynamic    dynamic.Interface
	// Discovery tells in which version TrafficSplits are served, if at all.
	Discovery ResourceLister
	Clock     clock.WithTicker
	Log       logr.Logger
}

// Watcher keeps a Store like the cluster.
type Watcher struct {
	*Store
	options Options
	feeds   []*feed
}

// New makes a Watcher that knows nothing before it runs.
func New(o Options) *Watcher {
	w := &Watcher{Store: NewStore(), options: o}
	for _, kind := range observe.Kinds {
		switch kind {
		case observe.Pods:
			w.feeds = append(w.feeds, w.podFeed())
		case observe.TrafficSplits:
			w.feeds = append(w.feeds, w.splitFeed())
		default:
			w.feeds = append(w.feeds, w.metadataFeed(kind))
		}
	}
	w.feeds = append(w.feeds, w.endpointFeed())
	return w
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, f := range w.feeds {
		log := w.options.Log.WithValues("resource", f.resource)
		reflector := cache.NewReflectorWithOptions(f.source, f.example, f, cache.ReflectorOptions{
			Logger: &log, Name: "inventory", TypeDescription: f.resource, Clock: w.options.Clock,
		})
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
	group.Wait()
}

// Ready names the resources that have not been listed yet; nil when all have.
func (w *Watcher) Ready() error {
	var missing []string
	for _, f := range w.feeds {
		if !f.listed.Load() {
			missing = append(missing, f.resource)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not listed yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// feed puts what is watched into a Store. It implements cache.ReflectorStore.
type feed struct {
	resource string
	source   cache.ListerWatcher
	example  runtime.Object
	set      func(runtime.Object) error
	remove   func(types.NamespacedName)
	// names are what the Store has of the resource.
	names  func() []types.NamespacedName
	trim   cache.TransformFunc
	listed atomic.Bool
}

var _ cache.ReflectorStore = (*feed)(nil)

// Transformer has lists trimmed while they come in.
func (f *feed) Transformer() cache.TransformFunc { return f.trim }

// Add is called for a new object.
func (f *feed) Add(o any) error { return f.Update(o) }

// Update is called for a changed object.
func (f *feed) Update(o any) error {
	object, ok := o.(runtime.Object)
	if !ok {
		return fmt.Errorf("%T is not an object of %s", o, f.resource)
	}
	return f.set(object)
}

// Delete is called for an object that is gone.
func (f *feed) Delete(o any) error {
	name, err := accessName(o)
	if err == nil {
		f.remove(name)
	}
	return err
}

// Replace is called for all that there is.
func (f *feed) Replace(all []any, _ string) error {
	there := make(map[types.NamespacedName]bool, len(all))
	for _, o := range all {
		name, err := accessName(o)
		if err != nil {
			return err
		}
		there[name] = true
		if err := f.Update(o); err != nil {
			return err
		}
	}
	for _, name := range f.names() {
		if !there[name] {
			f.remove(name)
		}
	}
	f.listed.Store(true)
	return nil
}

// Resync has nothing to do.
func (f *feed) Resync() error { return nil }

func accessName(o any) (types.NamespacedName, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, nil
}

// metadataFeed watches the metadata of the objects of a kind.
func (w *Watcher) metadataFeed(kind observe.Kind) *feed {
	gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	client := w.options.Metadata.Resource(gvk.GroupVersion().WithResource(kind.Resource))
	return &feed{
		resource: kind.Resource, example: &metav1.PartialObjectMetadata{},
		source: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
		}, w.options.Metadata),
		set: func(o runtime.Object) error {
			m, ok := o.(*metav1.PartialObjectMetadata)
			if !ok {
				return fmt.Errorf("%T is no metadata", o)
			}
			w.SetObject(kind, &m.ObjectMeta)
			return nil
		},
		remove: func(n types.NamespacedName) { w.DeleteObject(kind, n) },
		names:  func() []types.NamespacedName { return w.all(kind) },
	}
}

// podFeed watches pods.
func (w *Watcher) podFeed() *feed {
	client := w.options.Kubernetes.CoreV1().Pods(metav1.NamespaceAll)
	return &feed{
		resource: observe.Pods.Resource, example: &corev1.Pod{},
		source: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := client.List(ctx, o)
				if err != nil {
					return nil, err
				}
				for i := range list.Items {
					list.Items[i] = *trim(&list.Items[i])
				}
				return list, nil
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
		}, w.options.Kubernetes),
		trim: func(o any) (any, error) {
			if p, ok := o.(*corev1.Pod); ok {
				return trim(p), nil
			}
			return o, nil
		},
		set: func(o runtime.Object) error {
			p, ok := o.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("%T is no pod", o)
			}
			w.SetPod(p)
			return nil
		},
		remove: w.DeletePod,
		names:  func() []types.NamespacedName { return w.all(observe.Pods) },
	}
}

// endpointFeed watches EndpointSlices.
func (w *Watcher) endpointFeed() *feed {
	client := w.options.Kubernetes.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	return &feed{
		resource: "endpointslices", example: &discoveryv1.EndpointSlice{},
		source: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
		}, w.options.Kubernetes),
		set: func(o runtime.Object) error {
			e, ok := o.(*discoveryv1.EndpointSlice)
			if !ok {
				return fmt.Errorf("%T is no EndpointSlice", o)
			}
			w.SetEndpoints(e)
			return nil
		},
		remove: w.DeleteEndpoints,
		names:  w.allEndpoints,
	}
}
