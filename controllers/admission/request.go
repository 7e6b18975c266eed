// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Request is a write that the API server has not stored yet. Objects are compared as they
// were sent: a field that a newer API server has counts too.
type Request struct {
	// Object is to be stored; Old is stored, nil for an object that is made.
	Object, Old map[string]any
	// User who writes, and FieldManager, as which they say that they do.
	User, FieldManager string
}

// Rule says what to change in a write, and must not change the request.
type Rule func(Request) []jsonpatch.Operation

func parse(r *admissionv1.AdmissionRequest) (Request, error) {
	object, err := parseObject(r.Object)
	if err != nil {
		return Request{}, fmt.Errorf("read the object: %w", err)
	}
	old, err := parseObject(r.OldObject)
	if err != nil {
		return Request{}, fmt.Errorf("read the stored object: %w", err)
	}
	options, err := parseObject(r.Options)
	if err != nil {
		return Request{}, fmt.Errorf("read the options: %w", err)
	}
	manager, _ := options["fieldManager"].(string)
	return Request{Object: object, Old: old, User: r.UserInfo.Username, FieldManager: manager}, nil
}

func parseObject(raw runtime.RawExtension) (object map[string]any, err error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	return object, json.Unmarshal(raw.Raw, &object) // whole numbers become int64
}

// at is what an object has below some fields; nil when it has nothing there.
func at(object map[string]any, fields ...string) any {
	var value any = object
	for _, field := range fields {
		below, _ := value.(map[string]any)
		value = below[field]
	}
	return value
}

func annotation(object map[string]any, name string) (value string, has bool) {
	value, has = at(object, "metadata", "annotations", name).(string)
	return value, has
}
