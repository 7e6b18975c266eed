// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"reflect"

	"gomodules.xyz/jsonpatch/v2"
)

// mostOfAName is how many characters spec.control.by takes; names of service accounts can be
// longer.
const mostOfAName = 256

// Sign writes the name of the user beside a decision in spec.control, and keeps the name on a
// decision that stays as it was, so that a manifest without it can be applied again and again.
// Another name is left for the policy to refuse that looks at decisions, and what is no
// object or no name for the schema.
func Sign(r Request) []jsonpatch.Operation {
	control, is := at(r.Object, "spec", "control").(map[string]any)
	if !is {
		return nil
	}
	before, _ := at(r.Old, "spec", "control").(map[string]any)
	written, is := nameIn(control)
	if !is {
		return nil
	}
	known, _ := nameIn(before)
	by := written
	switch isNew := decided(control, before); {
	case isNew && (written == "" || written == known):
		by = beginning(r.User, mostOfAName) // a merge patch leaves the name of the decision before
	case !isNew && written == "":
		by = known
	}
	if by == written {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/control/by", by)}
}

// nameIn is the name beside a decision; it is "" where there is none.
func nameIn(control map[string]any) (name string, is bool) {
	value, has := control["by"]
	if !has {
		return "", true
	}
	name, is = value.(string)
	return name, is
}

// decided is whether anything of a decision but the name differs.
func decided(control, before map[string]any) bool {
	for key, value := range control {
		if was, has := before[key]; key != "by" && (!has || !reflect.DeepEqual(value, was)) {
			return true
		}
	}
	for key := range before {
		if _, has := control[key]; key != "by" && !has {
			return true
		}
	}
	return false
}

// beginning is as much of a text as has a number of characters.
func beginning(text string, characters int) string {
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:characters])
	}
	return text
}
