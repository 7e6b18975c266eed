// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// Group of the API of Argo Rollouts.
const Group = "argoproj.io"

// Kinds are those that are read.
var Kinds = []string{"Rollout", v1alpha1.KindAnalysisTemplate, v1alpha1.KindClusterAnalysisTemplate, "AnalysisRun", "Experiment"}

// converter turns all objects of a set.
type converter struct {
	set  *source.Set
	out  *target.Output
	uses map[string]*use
}

// Convert adds to an output what the Rollouts and templates of a set become.
func Convert(set *source.Set, out *target.Output) error {
	c := converter{set: set, out: out, uses: map[string]*use{}}
	var rollouts []*rollout
	for _, o := range set.Of(Group, "Rollout") {
		r := &rollout{converter: &c, object: o}
		r.convert()
		rollouts = append(rollouts, r)
	}
	gone := map[string]bool{}
	for _, kind := range []string{v1alpha1.KindClusterAnalysisTemplate, v1alpha1.KindAnalysisTemplate} {
		for _, o := range set.Of(Group, kind) {
			t := c.template(o)
			if t == nil {
				gone[kind+"/"+o.Name()] = true
				continue
			}
			if err := out.Add(o, t); err != nil {
				return err
			}
		}
	}
	for _, r := range rollouts {
		r.forget(gone)
		for _, object := range r.made {
			if err := out.Add(r.object, object); err != nil {
				return err
			}
		}
	}
	for _, kind := range []string{"Experiment", "AnalysisRun"} {
		for _, o := range set.Of(Group, kind) {
			o.Field("spec").Note(source.NoEqual, "an object of the kind %s is left out: Serin compares canary and stable by itself, and has no such kind", kind)
		}
	}
	return nil
}

func (c *converter) use(kind, name string) *use {
	key := kind + "/" + name
	if c.uses[key] == nil {
		c.uses[key] = &use{fields: map[string]v1alpha1.ReleaseField{}, values: map[string]bool{}}
	}
	return c.uses[key]
}

// forget removes references to templates that are left out.
func (r *rollout) forget(gone map[string]bool) {
	if a := r.serin.Spec.Analysis; a != nil {
		a.TemplateRefs = slices.DeleteFunc(a.TemplateRefs, func(t v1alpha1.TemplateReference) bool { return gone[t.Kind+"/"+t.Name] })
		if len(a.TemplateRefs) == 0 {
			r.serin.Spec.Analysis = nil
		}
	}
}
