// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is what became of a field.
type Kind string

// What can become of a field.
const (
	// NoEqual: Serin has nothing like it, and it was left out.
	NoEqual Kind = "no equivalent"
	// Differs: it was converted, and means something else in a detail.
	Differs Kind = "differs"
	// Assumed: the input does not say it.
	Assumed Kind = "assumed"
	// ToDo: the user has to do something.
	ToDo Kind = "to do"
)

// Item is a line of the report.
type Item struct {
	File, Object, Field string
	Kind                Kind
	Text                string
}

func (i Item) String() string {
	return strings.Join(slices.DeleteFunc([]string{i.File, i.Object, i.Field, string(i.Kind), i.Text}, func(s string) bool { return s == "" }), ": ")
}

// Report is what a migration has to say beside the objects that it writes.
type Report struct {
	Items []Item
	errs  []error
}

// Err has everything that is wrong with the input.
func (r *Report) Err() error { return errors.Join(r.errs...) }

// Count is how many items are of a kind.
func (r *Report) Count(kind Kind) (n int) {
	for _, i := range r.Items {
		if i.Kind == kind {
			n++
		}
	}
	return n
}

func (r *Report) add(i Item) {
	if !slices.Contains(r.Items, i) {
		r.Items = append(r.Items, i)
	}
}

func (r *Report) fail(i Item) {
	i.Kind = ""
	r.errs = append(r.errs, fmt.Errorf("%s", i))
}
