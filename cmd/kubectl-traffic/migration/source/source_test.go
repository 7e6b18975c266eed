// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

func read(t *testing.T, text string) (*source.Object, *source.Report) {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	s := source.NewSet()
	s.Add("a.yaml", content)
	return s.Objects[0], s.Report
}

const header = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: website, namespace: shop, uid: x}\nstatus: {phase: Healthy}\n"

func TestWhatNoConverterAsksForIsReportedOrRefused(t *testing.T) {
	o, report := read(t, header+"spec: {replicas: 3, steps: [{weight: 1}, {plugin: {name: a, config: {b: c}}}, {pause: {}}], mispelt: {v: 1, w: 2}, labels: {a.b/c: d}}")
	o.Field("spec", "replicas").Int(0, 0, 9)
	o.Field("spec", "steps").Items()[0].At("weight").Int(0, 0, 9)
	o.Finish(map[string]string{"spec.steps[].plugin": "no plugins", "spec.steps[]": "another step", "spec.labels": "no labels"})
	var got []string
	for _, i := range report.Items {
		got = append(got, i.String())
	}
	want := []string{
		"a.yaml: rollout.argoproj.io/shop/website: spec.labels: no equivalent: no labels",
		"a.yaml: rollout.argoproj.io/shop/website: spec.steps[1].plugin: no equivalent: no plugins",
		"a.yaml: rollout.argoproj.io/shop/website: spec.steps[2]: no equivalent: another step",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantErr := "a.yaml: rollout.argoproj.io/shop/website: spec.mispelt.v: is not a field that is known here: correct its name, or remove it\n" +
		"a.yaml: rollout.argoproj.io/shop/website: spec.mispelt.w: is not a field that is known here: correct its name, or remove it"
	if err := report.Err(); err == nil || err.Error() != wantErr {
		t.Errorf("got %v", err)
	}
}

func TestAValueOfAnotherTypeIsAnErrorThatNamesTheField(t *testing.T) {
	tests := []struct {
		spec, says string
		ask        func(source.Field)
	}{
		{"{a: 1}", "spec.a: 1 is not a string", func(f source.Field) { f.At("a").Text() }},
		{"{a: x}", "spec.a: x is not a number", func(f source.Field) { f.At("a").Number() }},
		{"{a: 1.5}", "spec.a: 1.5 is not a whole number from 0 to 10", func(f source.Field) { f.At("a").Int(0, 0, 10) }},
		{"{a: 11}", "spec.a: 11 is not a whole number from 0 to 10", func(f source.Field) { f.At("a").Int(0, 0, 10) }},
		{"{a: yes please}", "spec.a: yes please is not true or false", func(f source.Field) { f.At("a").Flag(false) }},
		{"{a: soon}", `spec.a: "soon" is not a duration`, func(f source.Field) { f.At("a").Duration() }},
		{"{a: {}}", "spec.a: is not a list", func(f source.Field) { f.At("a").Items() }},
		{"{a: x}", "spec.a: must have fields", func(f source.Field) { f.At("a", "b") }},
		{"{a: x}", "spec.a: must have fields", func(f source.Field) { f.At("a").Keys() }},
		{"{a: {imagee: x}}", `spec.a: unknown field "imagee"`, func(f source.Field) { f.At("a").Decode(&corev1.Container{}) }},
		{"{}", "spec.a: is missing: name it", func(f source.Field) { f.At("a").Missing("name it") }},
	}
	for _, test := range tests {
		o, report := read(t, header+"spec: "+test.spec)
		test.ask(o.Field("spec"))
		if err := report.Err(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", test.spec, err, test.says)
		}
	}
}

func TestValues(t *testing.T) {
	o, report := read(t, header+`spec: {d: 1m30s, s: 90, q: "90", r: 2.5, l: {a: b}}`)
	f := o.Field("spec")
	for _, name := range []string{"d", "s", "q"} {
		if got := f.At(name).Duration(); got != 90*time.Second {
			t.Errorf("%s: %v", name, got)
		}
	}
	if f.At("r").Number() != 2.5 || f.At("none").Int(7, 0, 9) != 7 || !f.At("none").Flag(true) || f.At("none").Duration() != 0 || f.At("none").Text() != "" {
		t.Error("a number or what is unset is wrong")
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, f.At("l").Texts()); diff != "" {
		t.Error(diff)
	}
	if o.Finish(nil); report.Err() != nil {
		t.Error(report.Err())
	}
}
