// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// places are endpoints with hints for the zones that are named; "" is an endpoint
// whose node has no zone.
func places(zones ...string) []plan.Endpoint {
	var all []plan.Endpoint
	for i, zone := range zones {
		all = append(all, plan.Endpoint{Name: fmt.Sprintf("pod-%d", i), Zone: zone, ZoneHint: zone != ""})
	}
	return all
}

// inZones is a split whose Services all prefer endpoints in the same zone.
func inZones() []plan.Placed {
	zonal := func(name string, p plan.Placed) plan.Placed {
		p.Service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameZone)
		return p
	}
	return []plan.Placed{
		zonal("web", plan.Placed{Root: true, Endpoints: places("a", "b")}),
		zonal("web-stable", plan.Placed{Weight: 9, Endpoints: places("a", "b", "c")}),
		zonal("web-canary", plan.Placed{Weight: 1, Endpoints: places("c", "a", "b")}),
	}
}

func TestDistribute(t *testing.T) {
	const root, stable, canary = 0, 1, 2
	annotate := func(p *plan.Placed, name, value string) { p.Service.Annotations = map[string]string{name: value} }
	set := func(value string, services ...*plan.Placed) {
		for _, s := range services {
			s.Service.Spec.TrafficDistribution = &value
		}
	}
	for name, c := range map[string]struct {
		edit func([]plan.Placed)
		// accepted and programmed are "status reason"; message is a part of Programmed's.
		accepted, programmed, message string
	}{
		"all endpoints have hints": {
			edit: func([]plan.Placed) {}, accepted: "True Accepted", programmed: "True Programmed",
		},
		"no Service asks for anything": {
			edit: func(s []plan.Placed) {
				for _, p := range s {
					p.Service.Spec.TrafficDistribution = nil
				}
			},
		},
		"one endpoint is in no zone": {
			edit:     func(s []plan.Placed) { s[stable].Endpoints = places("a", "", "c") },
			accepted: "True Accepted", programmed: "False HintsMissing",
			message: `endpoints of Service "web-stable" are ignored, since its endpoint "pod-1" is in no zone that is known; set the label topology.kubernetes.io/zone`,
		},
		"the controller of the endpoints has not given its hint yet": {
			edit:     func(s []plan.Placed) { s[canary].Endpoints[1].ZoneHint = false },
			accepted: "True Accepted", programmed: "False HintsMissing", message: `endpoint "pod-1" has none yet`,
		},
		"a backend written by hand has no distribution": {
			edit: func(s []plan.Placed) {
				s[canary].Service.Spec.TrafficDistribution = nil
				s[canary].Endpoints[0].ZoneHint = false
			},
			accepted: "True Accepted", programmed: "False HintsMissing", message: `Service "web-canary" has no spec.trafficDistribution`,
		},
		"the annotation wins": {
			edit:     func(s []plan.Placed) { annotate(&s[root], corev1.AnnotationTopologyMode, "Auto") },
			accepted: "False Overridden", programmed: "False Overridden",
			message: `Service "web" has the annotation service.kubernetes.io/topology-mode: Auto, which wins over its spec.trafficDistribution; remove the annotation`,
		},
		"the old name of the annotation wins too": {
			edit:     func(s []plan.Placed) { annotate(&s[canary], corev1.DeprecatedAnnotationTopologyAwareHints, "auto") },
			accepted: "False Overridden", programmed: "False Overridden", message: "service.kubernetes.io/topology-aware-hints",
		},
		"an annotation that is switched off does not": {
			edit:     func(s []plan.Placed) { annotate(&s[root], corev1.AnnotationTopologyMode, "Disabled") },
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"the old annotation, switched off, goes before the new one": {
			edit: func(s []plan.Placed) {
				s[root].Service.Annotations = map[string]string{
					corev1.DeprecatedAnnotationTopologyAwareHints: "disabled", corev1.AnnotationTopologyMode: "Auto",
				}
			},
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"a value of another implementation": {
			edit:     func(s []plan.Placed) { set("example.com/fast", &s[stable]) },
			accepted: "False UnknownValue", programmed: "False UnknownValue", message: `"example.com/fast" of Service "web-stable"`,
		},
		"the previous name of the same zone": {
			edit:     func(s []plan.Placed) { set("PreferClose", &s[root], &s[stable], &s[canary]) },
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"the same node needs hints for nodes": {
			edit:     func(s []plan.Placed) { set("PreferSameNode", &s[canary]) },
			accepted: "True Accepted", programmed: "False HintsMissing", message: `"web-canary" are ignored, since its endpoint "pod-0" has none yet`,
		},
		"the same node needs no zones": {
			edit: func(s []plan.Placed) {
				for i := range s {
					set("PreferSameNode", &s[i])
					s[i].Endpoints = []plan.Endpoint{{Name: "p", NodeHint: true}}
				}
			},
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"the canary is in fewer zones": {
			edit:     func(s []plan.Placed) { s[canary].Endpoints = places("b") },
			accepted: "True Accepted", programmed: "False ZonesDiffer",
			message: `Service "web-canary" has no ready endpoint in a, c, where another backend has some, so its requests leave the zone there and it can't be compared fairly; give it at least 3 pods`,
		},
		"stable is in fewer zones": {
			edit:     func(s []plan.Placed) { s[stable].Endpoints = places("a", "b") },
			accepted: "True Accepted", programmed: "False ZonesDiffer", message: `Service "web-stable" has no ready endpoint in c`,
		},
		"a backend without weight may be anywhere": {
			edit:     func(s []plan.Placed) { s[canary].Weight, s[canary].Endpoints = 0, places("b") },
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"a backend without weight may have no endpoint": {
			edit:     func(s []plan.Placed) { s[canary].Weight, s[canary].Endpoints = 0, nil },
			accepted: "True Accepted", programmed: "True Programmed",
		},
		"a backend with a weight needs endpoints": {
			edit:     func(s []plan.Placed) { s[canary].Endpoints = nil },
			accepted: "True Accepted", programmed: "False NoEndpoints", message: `Service "web-canary" has no ready endpoint`,
		},
		"the root Service needs endpoints": {
			edit:     func(s []plan.Placed) { s[root].Endpoints = nil },
			accepted: "True Accepted", programmed: "False NoEndpoints", message: `Service "web" has no ready endpoint`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			services := inZones()
			c.edit(services)
			d := plan.Distribute(services)
			if d == nil {
				if c.accepted != "" {
					t.Error("nothing is said")
				}
				return
			}
			accepted := fmt.Sprintf("%s %s", d.Accepted.Status, d.Accepted.Reason)
			programmed := fmt.Sprintf("%s %s", d.Programmed.Status, d.Programmed.Reason)
			if accepted != c.accepted || programmed != c.programmed || !strings.Contains(d.Programmed.Message, c.message) {
				t.Errorf("Accepted %s, want %s; Programmed %s (%s), want %s (…%s…)", accepted, c.accepted, programmed, d.Programmed.Message, c.programmed, c.message)
			}
		})
	}
}
