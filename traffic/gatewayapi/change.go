// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// holderOf is the split whose backends a user's route names, or "".
func holderOf(route *unstructured.Unstructured) string {
	annotations := route.GetAnnotations()
	if name := annotations[traffic.AnnotationSplit]; name != "" {
		return name
	}
	r, _ := readRecord(annotations)
	return r.Split
}

// rulesOf are the rules of a route. They are shared with it.
func rulesOf(route *unstructured.Unstructured) []map[string]any {
	rules, _, _ := unstructured.NestedFieldNoCopy(route.Object, "spec", "rules")
	return objectsOf(rules)
}

// originalRules are the rules that the owner of a route means it to have without the
// split. A record that was lost is made up for by what the split says.
func originalRules(route *unstructured.Unstructured, split *splitv1.TrafficSplit) []map[string]any {
	rules := rulesOf(route)
	if r, found := readRecord(route.GetAnnotations()); found {
		return r.original(rules)
	}
	if route.GetAnnotations()[traffic.AnnotationSplit] != split.Name {
		return rules
	}
	lost := record{Split: split.Name}
	lost.Root, _ = traffic.RootName(split)
	if routing, _ := splitv1.RoutingOf(split); routing.StickyCookie != nil {
		lost.Sessions = sessionName(routing.StickyCookie.Name, routing.StickyCookie.Session)
	}
	for _, b := range split.Spec.Backends {
		lost.Backends = append(lost.Backends, b.Service)
	}
	return lost.original(rules)
}

// Changed is a user's route with the backends of a split in the place of its root
// Service, and with the record by which that can be undone. The route is not modified.
func Changed(route *unstructured.Unstructured, target traffic.Target, schema Schema) (*unstructured.Unstructured, error) {
	rules := originalRules(route, target.Split)
	rendered, err := Render(route.GetKind(), rules, target.Resolved, schema)
	if err != nil {
		return nil, err
	}
	encoded, err := newRecord(target.Resolved, rules, rendered).encode()
	if err != nil {
		return nil, err
	}
	changed := route.DeepCopy()
	routes.Annotate(changed, map[string]string{traffic.AnnotationSplit: target.Split.Name, AnnotationRecord: encoded})
	return changed, setRules(changed, fieldsOf(rendered))
}

// Restored is a user's route as its owner means it to be without the split. The route
// is not modified.
func Restored(route *unstructured.Unstructured, split *splitv1.TrafficSplit) (*unstructured.Unstructured, error) {
	restored := route.DeepCopy()
	routes.Annotate(restored, map[string]string{traffic.AnnotationSplit: "", AnnotationRecord: ""})
	return restored, setRules(restored, originalRules(route, split))
}

func setRules(route *unstructured.Unstructured, rules []map[string]any) error {
	list := make([]any, 0, len(rules))
	for _, rule := range rules {
		list = append(list, copyOf(rule))
	}
	return unstructured.SetNestedSlice(route.Object, list, "spec", "rules")
}

// same is true when two states of a route differ in nothing that this router writes.
func same(a, b *unstructured.Unstructured) bool {
	for _, name := range []string{traffic.AnnotationSplit, AnnotationRecord} {
		if a.GetAnnotations()[name] != b.GetAnnotations()[name] {
			return false
		}
	}
	return slices.EqualFunc(rulesOf(a), rulesOf(b), func(x, y map[string]any) bool { return routes.Digest(x) == routes.Digest(y) })
}
