// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/serin-dev/serin/traffic"
)

// Keep puts the keys that the operator added to the selector of a Service back into the write by
// which another actor drops them: a server-side apply replaces a selector as a whole. A Service
// without such a key, so between releases, stays as it is.
func Keep(r Request) []jsonpatch.Operation {
	old, was := at(r.Old, "spec", "selector").(map[string]any)
	selector, is := at(r.Object, "spec", "selector").(map[string]any)
	if !was || !is || r.FieldManager == traffic.FieldManager {
		return nil
	}
	pin, _ := annotation(r.Old, traffic.AnnotationPin)
	var changes []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(old)) {
		value, _ := old[key].(string)
		// The pin has the keys by which the Service is narrowed to one version, as JSON.
		ours := key == traffic.LabelProxy || strings.Contains(pin, `"`+key+`":"`+value+`"`)
		if _, kept := selector[key]; ours && !kept {
			changes = append(changes, jsonpatch.NewOperation("add", "/spec/selector/"+jsonpointer.Escape(key), value))
		}
	}
	return changes
}
