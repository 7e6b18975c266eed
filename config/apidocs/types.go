// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// kind is the type of a field in words.
func kind(s schema) string {
	switch {
	case s.XIntOrString:
		return "integer or text"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		if len(s.XListMapKeys) > 0 {
			return "list of " + kind(*s.Items.Schema) + ", each `" + strings.Join(s.XListMapKeys, "` with `") + "` once"
		}
		return "list of " + kind(*s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + kind(*s.AdditionalProperties.Schema)
	case s.Type == "string" && s.Format == "date-time":
		return "time"
	case s.Type == "string":
		return "text"
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

// limits are what values of a field have to keep.
func limits(s schema) (all []string) {
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			text := string(value.Raw)
			if text != `""` {
				text = strings.Trim(text, `"`)
			}
			values = append(values, "`"+text+"`")
		}
		all = append(all, "one of "+strings.Join(values, ", "))
	}
	all = append(all, between("", s.Minimum, s.Maximum)...)
	all = append(all, between(" characters", floats(s.MinLength), floats(s.MaxLength))...)
	all = append(all, between(" entries", floats(s.MinItems), floats(s.MaxItems))...)
	all = append(all, between(" keys", floats(s.MinProperties), floats(s.MaxProperties))...)
	if s.Pattern != "" {
		all = append(all, "matches `"+s.Pattern+"`")
	}
	if s.Items != nil && s.Items.Schema != nil && !isObject(*s.Items.Schema) {
		for _, limit := range limits(*s.Items.Schema) {
			all = append(all, "each "+limit)
		}
	}
	return all
}

func floats(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// between says a range with its unit.
func between(unit string, low, high *float64) []string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case low != nil && high != nil:
		return []string{fmt.Sprintf("%s to %s%s", number(*low), number(*high), unit)}
	case low != nil:
		return []string{fmt.Sprintf("at least %s%s", number(*low), unit)}
	case high != nil:
		return []string{fmt.Sprintf("at most %s%s", number(*high), unit)}
	}
	return nil
}
