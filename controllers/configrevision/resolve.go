// SPDX-License-Identifier: Apache-2.0

package configrevision

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Copy is a copy that exists.
type Copy struct {
	Kind            v1alpha1.ConfigurationKind
	Name            string
	UID             types.UID
	ResourceVersion string
}

// Facts are what is known of a workload's configuration.
type Facts struct {
	// References of the workload's template.
	References []Reference
	// Present are the names that the copies of the present contents have. Objects
	// that don't exist, or can't be copied, are not in it.
	Present Mapping
	// Template is the annotation of the workload's template.
	Template Mapping
	// Released is whether there is a ReplicaSet of just this template.
	Released bool
	// Recorded is what was last made part of a version.
	Recorded Mapping
	// Versions are the annotations of the ReplicaSets of the workload.
	Versions []Mapping
	// Copies that exist.
	Copies []Copy
}

// Resolution is what has to be so.
type Resolution struct {
	// Template is what the annotation of the workload's template has to say.
	Template Mapping
	// Recorded is what was last made part of a version.
	Recorded Mapping
	// Missing are the objects whose present content is to be copied.
	Missing []Reference
	// Unused are copies that no version reads.
	Unused []Copy
}

// Resolve decides which contents belong to the workload's template.
//
//	the object             the template          then it reads
//	differs from record    any                   the present content
//	is as recorded         of a known version    what it reads: a user returned to it
//	is as recorded         new                   the present content
//	does not exist         any                   what it reads
//
// A content that is gone for good is replaced by the present one.
func Resolve(f Facts) Resolution {
	r := Resolution{Template: Mapping{}, Recorded: Mapping{}}
	for _, ref := range f.References {
		present, exists := f.Present[ref]
		has := f.Template[ref]
		if has != "" && has != present && !f.exists(ref.Kind, has) {
			has = ""
		}
		back := has != "" && f.Released && f.Recorded[ref] == present
		switch {
		case exists && !back:
			r.Template[ref] = present
		case has != "":
			r.Template[ref] = has
		}
		r.record(f, ref)
	}
	r.Missing = f.missing(r.Template)
	r.Unused = f.unused(r.Template)
	return r
}

// record notes a content once the template has it, and not before: a crash between
// the two would lose the change.
func (r *Resolution) record(f Facts, ref Reference) {
	switch present := f.Present[ref]; {
	case present != "" && f.Template[ref] == present:
		r.Recorded[ref] = present
	case f.Recorded[ref] != "":
		r.Recorded[ref] = f.Recorded[ref]
	}
}

func (f Facts) exists(kind v1alpha1.ConfigurationKind, name string) bool {
	return slices.ContainsFunc(f.Copies, func(c Copy) bool { return c.Kind == kind && c.Name == name })
}

// missing are the copies that some version reads, as far as their content is still
// there.
func (f Facts) missing(template Mapping) (out []Reference) {
	for _, m := range append([]Mapping{template}, f.Versions...) {
		for ref, name := range m {
			if f.Present[ref] == name && !f.exists(ref.Kind, name) && !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	slices.SortFunc(out, compare)
	return out
}

func (f Facts) unused(template Mapping) (out []Copy) {
	read := map[Reference]bool{}
	for _, m := range append([]Mapping{template, f.Template}, f.Versions...) {
		for ref, name := range maps.All(m) {
			read[Reference{Kind: ref.Kind, Name: name}] = true
		}
	}
	for _, c := range f.Copies {
		if !read[Reference{Kind: c.Kind, Name: c.Name}] {
			out = append(out, c)
		}
	}
	return out
}
