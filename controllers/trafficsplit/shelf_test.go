// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// shelf reads as the manager's cache does, by the very index of client-go, so that what
// a pass costs can be measured: the fake API server looks at every object at each List.
// Writes succeed and change nothing.
type shelf struct {
	client.Client
	kinds map[reflect.Type]toolscache.Indexer
}

func newShelf() *shelf {
	s := &shelf{kinds: map[reflect.Type]toolscache.Indexer{}}
	byKind := map[reflect.Type]toolscache.Indexers{}
	for _, i := range indexes() {
		kind := reflect.TypeOf(i.object)
		if byKind[kind] == nil {
			byKind[kind] = toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
		}
		byKind[kind][i.name] = func(o any) ([]string, error) {
			object := o.(client.Object)
			var keys []string
			for _, value := range i.values(object) {
				keys = append(keys, object.GetNamespace()+"/"+value)
			}
			return keys, nil
		}
	}
	for kind, indexers := range byKind {
		s.kinds[kind] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	}
	return s
}

func (s *shelf) put(tb testing.TB, objects ...client.Object) {
	tb.Helper()
	for _, o := range objects {
		indexer := s.kinds[reflect.TypeOf(o)]
		if indexer == nil {
			tb.Fatalf("no test asks for %T", o)
		}
		if err := indexer.Add(o); err != nil {
			tb.Fatal(err)
		}
	}
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if indexer := s.kinds[reflect.TypeOf(o)]; indexer != nil {
		found, exists, err := indexer.GetByKey(key.String())
		if err != nil {
			return err
		}
		if exists {
			reflect.ValueOf(o).Elem().Set(reflect.ValueOf(found).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, key.Name)
}

func (s *shelf) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, nodes := list.(*metav1.PartialObjectMetadataList); nodes {
		return nil // there are none
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.LabelSelector != nil {
		return fmt.Errorf("%T is listed by labels, which looks at every object of the namespace", list)
	}
	index, value := toolscache.NamespaceIndex, options.Namespace
	if options.FieldSelector != nil {
		requirement := options.FieldSelector.Requirements()[0]
		index, value = requirement.Field, options.Namespace+"/"+requirement.Value
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	found, err := s.kinds[reflect.PointerTo(items.Type().Elem())].ByIndex(index, value)
	if err != nil {
		return err
	}
	objects := make([]runtime.Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, o.(runtime.Object))
	}
	return meta.SetList(list, objects)
}

func (*shelf) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

func (*shelf) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// GroupVersionKindFor is asked for TrafficSplits only.
func (*shelf) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	if _, ok := o.(*splitv1.TrafficSplit); !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("the kind of %T is not known", o)
	}
	return splitv1.GroupVersion.WithKind("TrafficSplit"), nil
}

func (*shelf) Status() client.SubResourceWriter { return shelfStatus{} }

type shelfStatus struct{ client.SubResourceWriter }

func (shelfStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return nil
}

// controller is one that reads from the shelf.
func (s *shelf) controller(tb testing.TB) *Reconciler {
	tb.Helper()
	router, err := nginx.New(s, nginx.Options{Image: "serin:test", Reports: silent{}, Access: nginx.Access{Restricted: []string{"*"}}}) // as the chart does
	if err != nil {
		tb.Fatal(err)
	}
	options := Options{
		Routers: []traffic.Router{router}, DefaultRouter: nginx.Name,
		Recorder: &events.FakeRecorder{}, Clock: testingclock.NewFakePassiveClock(time.Unix(1e9, 0)),
	}
	if err := options.complete(); err != nil {
		tb.Fatal(err)
	}
	return &Reconciler{Client: s, Live: s, Options: options}
}

// fillShelf has the splits of n apps in one namespace, each with its Services,
// endpoints, two proxies and their NetworkPolicy.
func fillShelf(tb testing.TB, n int) *shelf {
	tb.Helper()
	s := newShelf()
	for i := range n {
		name := fmt.Sprintf("app-%03d", i)
		selector := func(version string) map[string]string {
			labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"}
			if version != "" {
				labels["version"] = version
			}
			return labels
		}
		split := makeSplit(9, 1)
		split.Name, split.Spec.Service = name, name
		split.Spec.Backends[0].Service, split.Spec.Backends[1].Service = name+"-stable", name+"-canary"
		s.put(tb, split, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{
				Name: traffic.ProxyName(name), Namespace: namespace, Labels: map[string]string{traffic.LabelProxy: name, traffic.LabelProxyNamespace: namespace},
			},
			Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{traffic.LabelProxy: name}}},
		})
		for suffix, version := range map[string]string{"": "", "-stable": "1", "-canary": "2"} {
			s.put(tb, makeService(name+suffix, selector(version)), sliceOf(name+suffix, "a", "b", "c", "a"))
		}
		for _, replica := range []string{"a", "b"} {
			s.put(tb, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "serin-proxy-" + name + "-" + replica, Namespace: namespace, Labels: map[string]string{traffic.LabelProxy: name},
			}})
		}
	}
	return s
}

// sizes are the numbers of splits in one namespace that are measured.
var sizes = []int{50, 100, 200, 500}

// BenchmarkSplits measures a pass over each split of a namespace, which makes all of
// its objects anew: time and allocations for one split.
func BenchmarkSplits(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%d splits", n), func(b *testing.B) {
			r, requests := fillShelf(b, n).every(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := r.Reconcile(b.Context(), requests[i%n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEventsOfServices measures what an event of each Service of a namespace
// costs: time, and the passes that it leads to.
func BenchmarkEventsOfServices(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%d splits", n), func(b *testing.B) {
			s := fillShelf(b, n)
			r := s.controller(b)
			services := s.kinds[reflect.TypeFor[*corev1.Service]()].List()
			passes := 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				passes += len(r.splitsOfService(b.Context(), services[i%len(services)].(client.Object)))
			}
			b.ReportMetric(float64(passes)/float64(b.N), "passes/event")
		})
	}
}

func (s *shelf) every(tb testing.TB) (*Reconciler, []reconcile.Request) {
	tb.Helper()
	var requests []reconcile.Request
	for _, o := range s.kinds[reflect.TypeFor[*splitv1.TrafficSplit]()].List() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
	}
	return s.controller(tb), requests
}

// silent reads nothing.
type silent struct{}

func (silent) Read(types.NamespacedName, traffic.Want, map[types.UID]string) map[types.UID]traffic.Reading {
	return nil
}
