// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
)

// Names of fields of routes.
const (
	fieldMatches     = "matches"
	fieldFilters     = "filters"
	fieldBackendRefs = "backendRefs"
	fieldWeight      = "weight"
	fieldName        = "name"
	fieldPort        = "port"
	fieldKind        = "kind"
	fieldType        = "type"
	fieldValue       = "value"
	fieldHeaders     = "headers"
	fieldMethod      = "method"
	fieldPath        = "path"
)

// kindService is the kind of backends.
const kindService = "Service"

// objectsOf are the objects of a list. What is no object is left out: the API server
// lets none through.
func objectsOf(list any) []map[string]any {
	items, _ := list.([]any)
	objects := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// listOf is the opposite of objectsOf.
func listOf(objects []map[string]any) []any {
	list := make([]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object)
	}
	return list
}

// text is a field that is a string, or "" when it is absent or something else.
func text(object map[string]any, field string) string {
	s, _ := object[field].(string)
	return s
}

// number is a field that is a number, or otherwise when it is absent.
func number(object map[string]any, field string, otherwise int64) int64 {
	switch n := object[field].(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	default:
		return otherwise
	}
}

// copyOf is a deep copy.
func copyOf(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }

// with is a rule with another list of references.
func with(rule map[string]any, refs []map[string]any) map[string]any {
	changed := maps.Clone(rule)
	changed[fieldBackendRefs] = listOf(refs)
	return changed
}

// leadsToRoot is true for a reference that sends traffic to the root Service. Its
// namespace is the split's own.
func leadsToRoot(ref map[string]any, split traffic.Split) bool {
	namespace := text(ref, "namespace")
	return text(ref, "group") == "" && slices.Contains([]string{"", kindService}, text(ref, fieldKind)) &&
		text(ref, fieldName) == split.Root && (namespace == "" || namespace == split.Namespace) &&
		number(ref, fieldWeight, 1) > 0
}

// concerned is true for a rule that sends traffic to the root Service.
func concerned(rule map[string]any, split traffic.Split) bool {
	return slices.ContainsFunc(objectsOf(rule[fieldBackendRefs]), func(ref map[string]any) bool { return leadsToRoot(ref, split) })
}
