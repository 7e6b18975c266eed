// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// sliceOf has an endpoint in each of the zones, with hints as the EndpointSlice
// controller gives them.
func sliceOf(service string, zones ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-x", Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i, zone := range zones {
		name, node := fmt.Sprintf("%s-7d4b9c6f5-%05d", service, i), fmt.Sprintf("node-%d", i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(name)},
			NodeName:   &node, Zone: &zone,
			Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}},
		})
	}
	return slice
}

func TestTheStatusSaysWhereTheEndpointsAreWhileAServiceAsksForIt(t *testing.T) {
	w := newWorld(t)
	for _, o := range shop() {
		if s, ok := o.(*corev1.Service); ok {
			s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameZone)
		}
		w.must(w.api.Create(w.ctx(), o))
	}
	for service, zones := range map[string][]string{"web": {"a"}, "web-stable": {"a", "b"}, "web-canary": {"a"}} {
		kept, err := transformEndpointSlice(sliceOf(service, zones...))
		w.must(err)
		w.must(w.api.Create(w.ctx(), kept.(*discoveryv1.EndpointSlice)))
	}
	w.must(w.api.Create(w.ctx(), makeSplit(9, 1)))
	said := func() (conditions []string) {
		for _, c := range w.split().Status.Conditions {
			if name, ours := strings.CutPrefix(c.Type, "serin.dev/"); ours {
				conditions = append(conditions, fmt.Sprintf("%s=%s %s", name, c.Status, c.Reason))
			}
		}
		return conditions
	}
	w.settle()
	want := []string{"TrafficDistributionAccepted=True Accepted", "TrafficDistributionProgrammed=False ZonesDiffer"}
	if got := said(); !slices.Equal(got, want) {
		t.Errorf("said: %v, want %v", got, want)
	}
	if got := countEvents(w, splitv1.ReasonZonesDiffer); got != 1 {
		t.Errorf("%d events say that the zones differ", got)
	}
	for _, name := range []string{"web", "web-stable", "web-canary"} {
		s := w.service(name)
		s.Spec.TrafficDistribution = nil
		w.must(w.api.Update(w.ctx(), s))
	}
	w.settle()
	if got := said(); len(got) > 0 {
		t.Errorf("still reported when no Service asks for it: %v", got)
	}
}

func countEvents(w *world, reason string) (n int) {
	for {
		select {
		case e := <-w.events.Events:
			if strings.Contains(e, reason) {
				n++
			}
		default:
			return n
		}
	}
}

// BenchmarkEndpointSlicesInTheCache measures the memory that an endpoint takes in the
// cache: B/endpoint as it comes, and as it is kept.
func BenchmarkEndpointSlicesInTheCache(b *testing.B) {
	for _, c := range []struct {
		name      string
		transform func(any) (any, error)
	}{
		{"as it comes", func(o any) (any, error) { return o, nil }},
		{"as it is kept", transformEndpointSlice},
	} {
		b.Run(c.name, func(b *testing.B) {
			const slicesKept, endpoints = 200, 100
			encoded, err := sliceOf("website", slices.Repeat([]string{"eu-central-1a", "eu-central-1b", "eu-central-1c", "eu-central-1a"}, endpoints/4)...).Marshal()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				before := inUse()
				kept := make([]any, slicesKept)
				for i := range kept {
					slice := &discoveryv1.EndpointSlice{}
					if err := slice.Unmarshal(encoded); err != nil {
						b.Fatal(err)
					}
					if kept[i], err = c.transform(slice); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((inUse()-before)/(slicesKept*endpoints), "B/endpoint")
				runtime.KeepAlive(kept)
			}
		})
	}
}

func inUse() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
