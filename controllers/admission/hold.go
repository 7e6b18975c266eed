// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"reflect"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Hold pauses a managed Deployment in the write that changes its template, so that no
// version ever rolls out before its Rollout has seen it. While it is paused it stays so, and
// stays managed, whatever another actor than the operator writes, unless that has the
// annotation which resumes it.
func Hold(operator string) Rule {
	return func(r Request) []jsonpatch.Operation {
		_, managed := annotation(r.Object, v1alpha1.AnnotationRollout)
		by, wasManaged := annotation(r.Old, v1alpha1.AnnotationRollout)
		if r.Old == nil || !managed && !wasManaged || !mustHold(r, operator) {
			return nil
		}
		var changes []jsonpatch.Operation
		if at(r.Object, "spec", "paused") != true {
			changes = append(changes, jsonpatch.NewOperation("add", "/spec/paused", true))
		}
		if managed {
			return changes
		}
		if annotations, _ := at(r.Object, "metadata", "annotations").(map[string]any); annotations == nil {
			return append(changes, jsonpatch.NewOperation("add", "/metadata/annotations", map[string]any{v1alpha1.AnnotationRollout: by}))
		}
		return append(changes, jsonpatch.NewOperation("add", "/metadata/annotations/"+jsonpointer.Escape(v1alpha1.AnnotationRollout), by))
	}
}

func mustHold(r Request, operator string) bool {
	if !reflect.DeepEqual(at(r.Object, "spec", "template"), at(r.Old, "spec", "template")) {
		return true
	}
	resume, _ := annotation(r.Object, v1alpha1.AnnotationResume)
	return at(r.Old, "spec", "paused") == true && r.User != operator && resume != "true"
}
