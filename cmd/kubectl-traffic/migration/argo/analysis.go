// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"maps"
	"regexp"
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// templates adds references to the templates of an analysis.
func (r *rollout) templates(f source.Field) {
	for _, t := range f.At("templates").Items() {
		ref := v1alpha1.TemplateReference{Kind: v1alpha1.KindAnalysisTemplate, Name: t.At("templateName").Text()}
		if t.At("clusterScope").Flag(false) {
			ref.Kind = v1alpha1.KindClusterAnalysisTemplate
		}
		if ref.Name == "" {
			t.At("templateName").Missing("name the template")
			continue
		}
		u := r.use(ref.Kind, ref.Name)
		for _, d := range f.At("dryRun").Items() {
			u.dryRun = append(u.dryRun, d.At("metricName").Text())
		}
		r.arguments(f, &ref, u)
		r.refer(t, ref)
	}
	if f.At("dryRun").Present() {
		f.At("dryRun").Note(source.Differs, "dryRun is written into the templates, for every Rollout that uses them")
	}
}

// arguments are the values for those arguments that the template declares.
func (r *rollout) arguments(f source.Field, ref *v1alpha1.TemplateReference, u *use) {
	declared, known := r.declared(ref)
	for _, a := range f.At("args").Items() {
		name := a.At("name").Text()
		from := a.At("valueFrom")
		if known && !slices.Contains(declared, name) {
			a.Read() // another template's
			continue
		}
		if from.Present() {
			r.fromRelease(a, from, name, known, ref, u)
			continue
		}
		u.values[name] = true
		ref.Args = append(ref.Args, v1alpha1.ArgumentValue{Name: name, Value: a.At("value").Text()})
	}
}

// label is a label or an annotation of the Rollout in a fieldPath.
var label = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// fromRelease is an argument whose value is in the release, or in the Rollout itself.
func (r *rollout) fromRelease(a, from source.Field, name string, known bool, ref *v1alpha1.TemplateReference, u *use) {
	path := from.At("fieldRef", "fieldPath")
	if m := label.FindStringSubmatch(path.Text()); m != nil {
		value := r.object.Field("metadata", m[1]).Texts()[m[2]]
		path.Note(source.Differs, "is the value that %s has now, %q", path.Text(), value)
		u.values[name] = true
		ref.Args = append(ref.Args, v1alpha1.ArgumentValue{Name: name, Value: value})
		return
	}
	field := releaseField(from)
	switch {
	case field == "":
		a.Note(source.NoEqual, "an argument takes Name, Namespace, Service, or the Service or the revision of a version: give %s a value in spec.analysis.templateRefs", name)
	case known:
		u.fields[name] = field
	default:
		a.Note(source.ToDo, "the template %s was not given: declare the argument %s there with field: %s", ref.Name, name, field)
	}
}

// declared are the names of the arguments of a template; known is whether it was given.
func (r *rollout) declared(ref *v1alpha1.TemplateReference) (names []string, known bool) {
	namespace := r.object.Namespace()
	if ref.Kind == v1alpha1.KindClusterAnalysisTemplate {
		namespace = ""
	}
	o := r.set.Find(Group, ref.Kind, namespace, ref.Name)
	if o == nil {
		return nil, false
	}
	for _, a := range o.Field("spec", "args").Items() {
		names = append(names, a.At("name").Text())
	}
	return names, true
}

// refer adds a reference. A template that is referred to twice is measured once.
func (r *rollout) refer(f source.Field, ref v1alpha1.TemplateReference) {
	if r.serin.Spec.Analysis == nil {
		r.serin.Spec.Analysis = &v1alpha1.Analysis{}
	}
	refs := &r.serin.Spec.Analysis.TemplateRefs
	i := slices.IndexFunc(*refs, func(other v1alpha1.TemplateReference) bool { return other.Kind == ref.Kind && other.Name == ref.Name })
	if i < 0 {
		*refs = append(*refs, ref)
		if _, known := r.declared(&ref); !known {
			f.Note(source.ToDo, "the %s %s was not given, and is not written: migrate it too", ref.Kind, ref.Name)
		}
		return
	}
	if !maps.Equal(values((*refs)[i].Args), values(ref.Args)) {
		f.Note(source.NoEqual, "the template %s is used with other arguments already, and is measured with those: write another template for these", ref.Name)
	}
}

func values(args []v1alpha1.ArgumentValue) map[string]string {
	m := map[string]string{}
	for _, a := range args {
		m[a.Name] = a.Value
	}
	return m
}
