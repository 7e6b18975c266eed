// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// place measures what the test says.
type place struct {
	measured []types.NamespacedName
	health   analysis.Health
}

func (p *place) Measure(_ context.Context, key types.NamespacedName, _ analysis.Subject, _ analysis.Weight) error {
	p.measured = append(p.measured, key)
	return nil
}

func (p *place) Forget(key types.NamespacedName) {
	p.measured = slices.DeleteFunc(p.measured, func(k types.NamespacedName) bool { return k == key })
}

func (p *place) Windows(types.NamespacedName, time.Time) ([]analysis.Window, analysis.Health) {
	return nil, p.health
}

func newPlace(message string) *place {
	return &place{health: analysis.Health{Message: message}}
}

func TestEachSplitIsMeasuredWhereItsRouterIsCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := splitv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(name, router string) *splitv1.TrafficSplit {
		ts := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if router != "" {
			splitv1.SetRouting(ts, splitv1.Routing{Router: router})
		}
		return ts
	}
	splits := fake.NewClientBuilder().WithScheme(scheme).WithObjects(named("default", ""), named("proxied", "nginx"), named("meshed", "istio")).Build()
	proxies, others := newPlace("a proxy did not answer"), newPlace(notServed)
	r := NewRouted(RoutedOptions{Splits: splits, DefaultRouter: "nginx", ProxyRouters: []string{"nginx"}, Proxies: proxies, Others: others})
	// A Rollout is not always called as its split is.
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: "shop", Name: "rollout-of-" + name}
	}
	for _, tt := range []struct {
		name, message string
		in            *place
	}{
		{"default", "a proxy did not answer", proxies},
		{"proxied", "a proxy did not answer", proxies},
		{"meshed", "nothing measures what the router istio shares: the cluster serves no TrafficMetrics; install the TrafficMetrics server with a Prometheus profile " +
			"for the router, or, with spec.analysis.onInconclusive Promote, let steps go by time and by the metrics of spec.analysis", others},
		{"absent", "", nil},
	} {
		if err := r.Measure(t.Context(), key(tt.name), analysis.Subject{Split: tt.name, Stable: "s", Canary: "c"}, analysis.Weight{}); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*place{proxies, others} {
			if got := slices.Contains(p.measured, key(tt.name)); got != (p == tt.in) {
				t.Errorf("%s: measured in the right place: %v", tt.name, got)
			}
		}
		if _, health := r.Windows(key(tt.name), time.Time{}); health.Message != tt.message {
			t.Errorf("%s: %q", tt.name, health.Message)
		}
	}
	moved := named("meshed", "nginx")
	current := &splitv1.TrafficSplit{}
	if err := splits.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "meshed"}, current); err != nil {
		t.Fatal(err)
	}
	moved.ResourceVersion = current.ResourceVersion
	if err := splits.Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	if err := r.Measure(t.Context(), key("meshed"), analysis.Subject{Split: "meshed", Stable: "s", Canary: "c"}, analysis.Weight{}); err != nil {
		t.Fatal(err)
	}
	if len(others.measured) > 0 || !slices.Contains(proxies.measured, key("meshed")) {
		t.Errorf("after another router was chosen: %v %v", proxies.measured, others.measured)
	}
	r.Forget(key("meshed"))
	if slices.Contains(proxies.measured, key("meshed")) {
		t.Error("still measured")
	}
}
