// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/inventory"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// cluster is one whose TrafficSplits come later.
type cluster struct {
	kubernetes *fake.Clientset
	metadata   *metadatafake.FakeMetadataClient
	dynamic    *dynamicfake.FakeDynamicClient
	// known is whether TrafficSplits are.
	known *atomic.Bool
}

// ServerResourcesForGroupVersion tells of TrafficSplits once they are known.
func (c cluster) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	if !c.known.Load() || groupVersion != splits.GroupVersion().String() {
		return nil, apierrors.NewNotFound(splits.GroupResource(), groupVersion)
	}
	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: []metav1.APIResource{{Name: splits.Resource}}}, nil
}

var splits = schema.GroupVersionResource{Group: "split.smi-spec.io", Version: "v1alpha2", Resource: "trafficsplits"}

func newCluster(t *testing.T) cluster {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(kind observe.Kind, namespace, n string) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind},
			ObjectMeta: *metaOf(namespace, n, "", "", ""),
		}
	}
	return cluster{
		known:      &atomic.Bool{},
		kubernetes: fake.NewClientset(pod(metaOf("shop", "web-0", "apps/v1", "StatefulSet", "web"), "node-1", "10.0.0.1"), endpointSlice("web-1", "web", "web-0")),
		metadata: metadatafake.NewSimpleMetadataClient(scheme,
			object(observe.Namespaces, "", "shop"), object(observe.StatefulSets, "shop", "web"), object(observe.Services, "shop", "web")),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{splits: "TrafficSplitList"}),
	}
}

// run watches a cluster for the time of a test.
func (c cluster) run(t *testing.T) (*inventory.Watcher, func()) {
	t.Helper()
	w := inventory.New(inventory.Options{
		Kubernetes: c.kubernetes, Metadata: c.metadata, Dynamic: c.dynamic, Discovery: c,
		Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "pods") || !strings.Contains(err.Error(), "endpointslices") {
		t.Errorf("before it runs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return w, func() {
		cancel()
		<-done
	}
}

// These tests run in bubbles of time that passes when everybody waits.
func TestAWatcherFollowsTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		w, stop := c.run(t)
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if err := w.Ready(); err != nil {
			t.Fatal(err)
		}
		for kind, want := range map[observe.Kind]string{observe.StatefulSets: "shop/web", observe.Services: "shop/web", observe.Namespaces: "/shop"} {
			if got := w.Holders(kind, name("shop", "web-0")); len(got) != 1 || got[0].String() != want {
				t.Errorf("%s of the pod: %v, want %s", kind.Resource, got, want)
			}
		}
		pods := c.kubernetes.CoreV1().Pods("shop")
		if _, err := pods.Create(t.Context(), pod(metaOf("shop", "late", "", "", ""), "", "10.0.0.2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := pods.Delete(t.Context(), "web-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, found := w.Pod(netip.MustParseAddr("10.0.0.2")); !found || got.Name != "late" {
			t.Errorf("the new pod: %v", got)
		}
		if got := w.Names(observe.Pods, "", labels.Everything()); len(got) != 1 {
			t.Errorf("the pods that are left: %v", got)
		}
	})
}

func TestAClusterMayLearnOfTrafficSplitsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		w, stop := c.run(t)
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if err := w.Ready(); err != nil {
			t.Fatalf("without TrafficSplits: %v", err)
		}
		c.known.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		for n, weight := range map[string]any{"web": "90", "odd": map[string]any{}} {
			split := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": splits.GroupVersion().String(), "kind": "TrafficSplit", "metadata": map[string]any{"name": n, "namespace": "shop"},
				"spec": map[string]any{"service": n, "backends": []any{map[string]any{"service": n + "-stable", "weight": weight}}},
			}}
			if _, err := c.dynamic.Resource(splits).Namespace("shop").Create(t.Context(), split, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		got, found := w.Split(name("shop", "web"))
		if !found || len(got.Backends) != 1 || got.Backends[0].Weight != 90 {
			t.Errorf("the split: %+v", got)
		}
	})
}

func TestAListThatComesAnewRemovesWhatIsGone(t *testing.T) {
	w := inventory.New(inventory.Options{Kubernetes: fake.NewClientset(), Metadata: newCluster(t).metadata})
	feed := w.Feed("pods")
	one, two := pod(metaOf("shop", "one", "", "", ""), "", "10.0.0.1"), pod(metaOf("shop", "two", "", "", ""), "", "10.0.0.2")
	if err := feed.Replace([]any{one, two}, "1"); err != nil {
		t.Fatal(err)
	}
	if err := feed.Replace([]any{two}, "2"); err != nil {
		t.Fatal(err)
	}
	if _, found := w.Pod(netip.MustParseAddr("10.0.0.1")); found || w.Exists(observe.Pods, name("shop", "one")) {
		t.Error("the pod that is gone is still there")
	}
	if err := feed.Add(&corev1.Node{}); err == nil {
		t.Error("a node is taken for a pod")
	}
}
