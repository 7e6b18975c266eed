// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func routed(text string) *TrafficSplit {
	return &TrafficSplit{ObjectMeta: metav1.ObjectMeta{Generation: 3, Annotations: map[string]string{AnnotationRouting: text}}}
}

func TestRoutingThatIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"[1]":                                  "can't be read",
		"mirorr: {}":                           `unknown field "mirorr"`,
		"router: a\nrouter: b":                 "already set",
		"ports: {80/TCP: {weights: {a: 0.5}}}": "the weight 0.5 is not a whole number",
		"ports: {80/TCP: {weights: {a: -1}}}":  "the weight -1 is not a whole number",
		"ports: {80/TCP: {weights: {a: 2147483648}}}":     "is not a whole number from 0 to 2147483647",
		"ports: {80/TCP: {weights: {a: null}}}":           "the weight null is not a whole number",
		"router: " + strings.Repeat("a", maxRoutingBytes): "bytes",
	} {
		routing, err := RoutingOf(routed(text))
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "metadata.annotations[serin.dev/routing]: ") {
			t.Errorf("%.60q gives %+v, %v, want an error with %q", text, routing, err, says)
		}
	}
}

func TestRoutingIsReadAsItWasWritten(t *testing.T) {
	want := Routing{Router: "nginx", Ports: map[string]PortRouting{"80/TCP": {Weights: map[string]PortWeight{"a": 2147483647, "b": 0}}}}
	split := &TrafficSplit{}
	SetRouting(split, want)
	got, err := RoutingOf(split)
	if err != nil || got.Router != want.Router || len(got.Ports["80/TCP"].Weights) != 2 || got.Ports["80/TCP"].Weights["a"] != 2147483647 {
		t.Errorf("got %+v, %v", got, err)
	}
	EditRouting(split, func(r *Routing) { *r = Routing{} })
	if text, found := split.Annotations[AnnotationRouting]; found {
		t.Errorf("an empty routing is written as %q", text)
	}
}

func TestAConditionIsCurrentForOneGenerationAndRouting(t *testing.T) {
	split := routed("router: nginx")
	split.Status.ObservedRouting = RoutingDigest(split)
	split.Status.Conditions = []metav1.Condition{{Type: ConditionProgrammed, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
	if CurrentCondition(split, ConditionProgrammed) == nil {
		t.Error("a condition of the present generation and routing is not current")
	}
	if CurrentCondition(split, ConditionAccepted) != nil {
		t.Error("a condition that is not there is current")
	}
	for what, change := range map[string]func(*TrafficSplit){
		"generation": func(s *TrafficSplit) { s.Generation++ },
		"routing":    func(s *TrafficSplit) { s.Annotations[AnnotationRouting] = "router: istio" },
		"no routing": func(s *TrafficSplit) { s.Annotations = nil },
	} {
		other := split.DeepCopy()
		change(other)
		if CurrentCondition(other, ConditionProgrammed) != nil {
			t.Errorf("a condition about another %s is current", what)
		}
	}
}

func BenchmarkRoutingOf(b *testing.B) {
	for name, text := range map[string]string{
		"JSON": `{"router":"nginx","defaultBackend":"website-stable","mirror":{"service":"website-canary","percent":10}}`,
		"YAML": "router: nginx\ndefaultBackend: website-stable\nmirror: {service: website-canary, percent: 10}\n",
	} {
		b.Run(name, func(b *testing.B) {
			ts := &TrafficSplit{}
			metav1.SetMetaDataAnnotation(&ts.ObjectMeta, AnnotationRouting, text)
			for b.Loop() {
				if _, err := RoutingOf(ts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
