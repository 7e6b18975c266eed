// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// crowd is a namespace with Services, of which splits lead some, and splits between some of
// them.
func crowd(t *testing.T, seed uint64) (*shelf, []*corev1.Service) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var services []*corev1.Service
	for i := range 25 {
		selector := map[string]string{"app": "web"}
		if random.IntN(6) == 0 {
			selector[traffic.LabelProxy] = fmt.Sprintf("split-%d", random.IntN(8))
		}
		services = append(services, makeService(fmt.Sprintf("service-%d", i), selector))
	}
	s := newShelf()
	for i := range 8 {
		split := makeSplit(1, 1)
		split.Name, split.Spec.Service = fmt.Sprintf("split-%d", i), services[random.IntN(len(services))].Name
		for j := range split.Spec.Backends {
			split.Spec.Backends[j].Service = fmt.Sprintf("service-%d", random.IntN(30)) // some do not exist
		}
		s.put(t, split)
	}
	for _, o := range services {
		s.put(t, o)
	}
	return s, services
}

func TestAnEventOfAServiceLeadsToThePassesOfTheSplitsThatItConcerns(t *testing.T) {
	for seed := range uint64(200) {
		s, services := crowd(t, seed)
		r := s.controller(t)
		concerned := map[string][]string{}
		for _, o := range s.kinds[reflect.TypeFor[*splitv1.TrafficSplit]()].List() {
			split := o.(*splitv1.TrafficSplit)
			for _, name := range resolve.ServiceNames(split) {
				concerned[name] = append(concerned[name], split.Name)
			}
		}
		for _, service := range services {
			want := concerned[service.Name]
			if proxy := service.Spec.Selector[traffic.LabelProxy]; proxy != "" {
				want = append(want, proxy)
			}
			slices.Sort(want)
			want = slices.Compact(want)
			var got []string
			for _, q := range r.splitsOfService(t.Context(), service) {
				got = append(got, q.Name)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Fatalf("seed %d, Service %s %v: got %v, want %v", seed, service.Name, service.Spec.Selector, got, want)
			}
		}
	}
}

// A pass and an event cost the same however many splits a namespace has. The time
// depends on the machine; the number of allocations does not.
func TestAPassCostsNoMoreInANamespaceWithManySplits(t *testing.T) {
	cost := func(n int) float64 {
		s := fillShelf(t, n)
		r, requests := s.every(t)
		service := s.kinds[reflect.TypeFor[*corev1.Service]()].List()[0].(client.Object)
		if passes := len(r.splitsOfService(t.Context(), service)); passes != 1 {
			t.Errorf("an event of one of %d Services leads to %d passes", 3*n, passes)
		}
		return testing.AllocsPerRun(20, func() {
			if _, err := r.Reconcile(t.Context(), requests[0]); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := cost(5), cost(500)
	if many > 1.05*few {
		t.Errorf("a pass allocates %.0f times among 5 splits, and %.0f times among 500", few, many)
	}
}
