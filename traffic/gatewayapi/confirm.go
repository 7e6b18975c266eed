// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/traffic"
)

// confirm reads in the status of a route what its parents, Gateways or Services, say
// about its present generation, and what there is to wait for or to fix.
//
// Every parent that the route names has to have taken it. Of several controllers that
// speak for one parent, such as one that was replaced and left its last word, a single
// one that takes the present generation is enough; but none may refuse it.
func confirm(route *unstructured.Unstructured) (traffic.Confirmation, string) {
	wanted, _, _ := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
	said, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	parents := objectsOf(wanted)
	if len(parents) == 0 {
		return traffic.ConfirmationRefused, "spec.parentRefs is empty, so no gateway serves it; name one"
	}
	confirmation, why := traffic.ConfirmationGiven, ""
	for _, parent := range parents {
		switch c, message := confirmParent(route, parent, objectsOf(said)); c {
		case traffic.ConfirmationRefused:
			return c, message
		case traffic.ConfirmationGiven:
		default:
			confirmation, why = c, cmp.Or(why, message)
		}
	}
	return confirmation, why
}

func confirmParent(route *unstructured.Unstructured, parent map[string]any, said []map[string]any) (traffic.Confirmation, string) {
	name := fmt.Sprintf("%s %q", cmp.Or(text(parent, fieldKind), "Gateway"), text(parent, fieldName))
	taken, heard := false, false
	for _, s := range said {
		of, _ := s["parentRef"].(map[string]any)
		if !sameParent(parent, of, route.GetNamespace()) {
			continue
		}
		heard = true
		conditions := conditionsOf(s, route.GetGeneration())
		if refusal := refusalIn(conditions); refusal != "" {
			return traffic.ConfirmationRefused, fmt.Sprintf("%s (%s) says %s", name, text(s, "controllerName"), refusal)
		}
		taken = taken || text(conditions["Accepted"], "status") == "True" && text(conditions["ResolvedRefs"], "status") == "True"
	}
	switch {
	case taken:
		return traffic.ConfirmationGiven, ""
	case heard:
		return traffic.ConfirmationPending, fmt.Sprintf("%s has not reported yet whether it accepts generation %d", name, route.GetGeneration())
	default:
		return traffic.ConfirmationPending, name + " has reported nothing about it; check that it exists and that a controller serves it"
	}
}

// sameParent compares a reference with the one of a status. Absent fields have their
// defaults.
func sameParent(a, b map[string]any, namespace string) bool {
	for field, otherwise := range map[string]string{"group": Group, fieldKind: "Gateway", "namespace": namespace, fieldName: "", "sectionName": ""} {
		if stringOr(a, field, otherwise) != stringOr(b, field, otherwise) {
			return false
		}
	}
	return number(a, fieldPort, 0) == number(b, fieldPort, 0)
}

// stringOr is a field that may be set to "", as the group of Services is.
func stringOr(object map[string]any, field, otherwise string) string {
	if s, ok := object[field].(string); ok {
		return s
	}
	return otherwise
}

// conditionsOf are the conditions about a generation by type.
func conditionsOf(said map[string]any, generation int64) map[string]map[string]any {
	conditions := map[string]map[string]any{}
	for _, c := range objectsOf(said["conditions"]) {
		if number(c, "observedGeneration", 0) == generation {
			conditions[text(c, fieldType)] = c
		}
	}
	return conditions
}

// refusalIn is what a parent has against the route, or "".
func refusalIn(conditions map[string]map[string]any) string {
	for _, bad := range []struct{ condition, status string }{{"Accepted", "False"}, {"ResolvedRefs", "False"}, {"PartiallyInvalid", "True"}} {
		if c := conditions[bad.condition]; text(c, "status") == bad.status {
			return fmt.Sprintf("%s=%s, %s: %.300s", bad.condition, bad.status, text(c, "reason"), text(c, "message"))
		}
	}
	return ""
}
