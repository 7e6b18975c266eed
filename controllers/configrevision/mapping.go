// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"maps"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Mapping says which copy stands for which object.
type Mapping map[Reference]string

// ParseMapping reads the value of the annotation. What is no mapping, because a
// user wrote it, counts for nothing.
func ParseMapping(annotation string) Mapping {
	m := Mapping{}
	for pair := range strings.SplitSeq(annotation, ",") {
		object, name, ok := strings.Cut(pair, "=")
		kind, source, named := strings.Cut(object, "/")
		if ok && named && name != "" && source != "" {
			m[Reference{Kind: v1alpha1.ConfigurationKind(kind), Name: source}] = name
		}
	}
	return m
}

// String is the value of the annotation, from which ParseMapping makes an equal
// mapping; "" for none. Neither kinds nor names hold one of its separators.
func (m Mapping) String() string {
	pairs := make([]string, 0, len(m))
	for _, r := range slices.SortedFunc(maps.Keys(m), compare) {
		pairs = append(pairs, string(r.Kind)+"/"+r.Name+"="+m[r])
	}
	return strings.Join(pairs, ",")
}

// FromStatus is the mapping that a status has on record.
func FromStatus(list []v1alpha1.ConfigurationStatus) Mapping {
	m := Mapping{}
	for _, c := range list {
		m[Reference{Kind: c.Kind, Name: c.Name}] = c.Copy
	}
	return m
}

// Status is the mapping as a status has it on record; nil for none.
func (m Mapping) Status() []v1alpha1.ConfigurationStatus {
	var list []v1alpha1.ConfigurationStatus
	for _, r := range slices.SortedFunc(maps.Keys(m), compare) {
		list = append(list, v1alpha1.ConfigurationStatus{Kind: r.Kind, Name: r.Name, Copy: m[r]})
	}
	return list
}
