// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Header is one condition on a header.
type Header struct {
	// Name of the header, in any case.
	Name string `json:"name"`
	// Regex is the regular expression (RE2) for its value.
	Regex string `json:"regex"`
}

// Headers are the header conditions of a match, sorted by name. The
// specification's text writes them as a map and its published schema as a list
// of maps: both are read, a map is written.
//
// Invalid says why a value could not be read. Decoding itself never fails, so
// that one bad object can't stop the whole kind from being listed.
type Headers struct {
	Items   []Header `json:"-"`
	Invalid string   `json:"-"`
}

// IsZero reports whether there are no header conditions at all.
func (h Headers) IsZero() bool { return len(h.Items) == 0 && h.Invalid == "" }

// MarshalJSON writes the map form.
func (h Headers) MarshalJSON() ([]byte, error) {
	m := make(map[string]string, len(h.Items))
	for _, i := range h.Items {
		m[i.Name] = i.Regex
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads the map form and the list form. What fits neither is
// reported in Invalid.
func (h *Headers) UnmarshalJSON(b []byte) error {
	*h = Headers{}
	var single map[string]string
	if json.Unmarshal(b, &single) == nil {
		h.add(single)
		return nil
	}
	var list []map[string]string
	if json.Unmarshal(b, &list) != nil {
		h.Invalid = "headers: must be a map from header name to regular expression, or a list of such maps"
		return nil //nolint:nilerr // reported in Invalid: an error would stop the list
	}
	for _, m := range list {
		h.add(m)
	}
	return nil
}

func (h *Headers) add(m map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if slices.ContainsFunc(h.Items, func(i Header) bool { return i.Name == name }) {
			h.Invalid = fmt.Sprintf("headers: %q is named twice; keep one of them", name)
			continue
		}
		h.Items = append(h.Items, Header{Name: name, Regex: m[name]})
	}
	slices.SortFunc(h.Items, func(a, b Header) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}
