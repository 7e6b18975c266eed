// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var release = Release{
	Namespace: "shop", Name: "website", Service: "web", StableService: "web-stable", CanaryService: "web-canary",
	StableRevision: "aaa", CanaryRevision: "bbb", Step: 2,
}

func web(name string) v1alpha1.Metric {
	return v1alpha1.Metric{
		MetricSettings: v1alpha1.MetricSettings{Name: name, Max: "1.5"},
		Provider:       v1alpha1.MetricProvider{Type: v1alpha1.ProviderWeb, BasicProviders: v1alpha1.BasicProviders{Web: &v1alpha1.WebQuery{URL: "http://a"}}},
	}
}

func inline(m v1alpha1.Metric) v1alpha1.InlineMetric {
	return v1alpha1.InlineMetric{MetricSettings: m.MetricSettings, Provider: v1alpha1.InlineProvider{Type: m.Provider.Type, BasicProviders: m.Provider.BasicProviders}}
}

func template(kind, name string, args []v1alpha1.MetricArgument, metrics ...v1alpha1.Metric) Template {
	return Template{Kind: kind, Name: name, Spec: v1alpha1.AnalysisTemplateSpec{Args: args, Metrics: metrics}}
}

func TestMetricsOfTheRolloutAndOfItsTemplates(t *testing.T) {
	arguments := []v1alpha1.MetricArgument{
		{Name: "fixed", Value: new("x")},
		{Name: "changed", Value: new("x")},
		{Name: "given"},
		{Name: "arm", Field: v1alpha1.FieldArmService},
		{Name: "revision", Field: v1alpha1.FieldArmRevision},
		{Name: "space", Field: v1alpha1.FieldNamespace},
		{Name: "token", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "s", Key: "k"}},
	}
	a := &v1alpha1.Analysis{
		Metrics: []v1alpha1.InlineMetric{inline(web("own"))},
		TemplateRefs: []v1alpha1.TemplateReference{
			{Name: "errors", Args: []v1alpha1.ArgumentValue{{Name: "given", Value: "y"}, {Name: "changed", Value: ""}}},
			{Name: "errors", Kind: v1alpha1.KindClusterAnalysisTemplate},
		},
	}
	got, err := Resolve(a, []Template{
		template(v1alpha1.KindClusterAnalysisTemplate, "errors", nil, web("everywhere")),
		template(v1alpha1.KindAnalysisTemplate, "errors", arguments, web("of-template")),
	}, release)
	if err != nil {
		t.Fatal(err)
	}
	unstepped := release
	unstepped.Step = 0
	metric := func(name, field string) Metric {
		return Metric{
			Name: name, Field: field, Provider: web("").Provider, Max: new(1.5), Interval: 30 * time.Second, ConsecutiveFailureLimit: 3, MinSamples: 1, Release: unstepped,
			Stable: map[string]string{}, Canary: map[string]string{}, Secrets: map[string]v1alpha1.SecretKeyReference{},
		}
	}
	want := []Metric{
		metric("own", "spec.analysis.metrics[0]"),
		metric("of-template", "AnalysisTemplate errors: spec.metrics[0]"),
		metric("everywhere", "ClusterAnalysisTemplate errors: spec.metrics[0]"),
	}
	want[1].Stable = map[string]string{"fixed": "x", "changed": "", "given": "y", "arm": "web-stable", "revision": "aaa", "space": "shop"}
	want[1].Canary = map[string]string{"fixed": "x", "changed": "", "given": "y", "arm": "web-canary", "revision": "bbb", "space": "shop"}
	want[1].Secrets = map[string]v1alpha1.SecretKeyReference{"token": {Name: "s", Key: "k"}}
	want[2].Trusted = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsOfAMetric(t *testing.T) {
	one := func(change func(*v1alpha1.Metric)) (Metric, error) {
		m := web("a")
		change(&m)
		list, err := Resolve(&v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "t"}}}, []Template{template(v1alpha1.KindAnalysisTemplate, "t", nil, m)}, release)
		if err != nil {
			return Metric{}, err
		}
		return list[0], nil
	}
	m, err := one(func(m *v1alpha1.Metric) {
		m.Min, m.Interval, m.ConsecutiveFailureLimit, m.MinSamples, m.DryRun = "-0.5", "1m", new(int32(7)), new(int32(9)), true
	})
	if err != nil || *m.Min != -.5 || m.Interval != time.Minute || m.ConsecutiveFailureLimit != 7 || m.MinSamples != 9 || !m.DryRun {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = one(func(m *v1alpha1.Metric) {
		m.Compare = &v1alpha1.Comparison{Better: v1alpha1.BetterMore, Weight: new(int32(3)), Tolerance: "2pp"}
	})
	if diff := cmp.Diff(&Comparison{More: true, Weight: 3, Tolerance: new(.02)}, m.Compare); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	m, err = one(func(m *v1alpha1.Metric) { m.Compare = &v1alpha1.Comparison{} })
	if diff := cmp.Diff(&Comparison{Weight: 10}, m.Compare); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	m, err = one(func(m *v1alpha1.Metric) {
		m.Max, m.Provider = "", v1alpha1.MetricProvider{Type: v1alpha1.ProviderJob, BasicProviders: v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{}}}
	})
	if err != nil || *m.Min != 1 || m.ConsecutiveFailureLimit != 1 || m.Release.Step != 2 {
		t.Errorf("a job of each step: %+v, %v", m, err)
	}
	job := func(repeat bool) v1alpha1.MetricProvider {
		return v1alpha1.MetricProvider{Type: v1alpha1.ProviderJob, BasicProviders: v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{Repeat: repeat}}}
	}
	m, err = one(func(m *v1alpha1.Metric) { m.Provider = job(true) })
	if err != nil || m.ConsecutiveFailureLimit != 3 || m.Release.Step != 0 {
		t.Errorf("a job that is repeated: %+v, %v", m, err)
	}
	m, err = one(func(m *v1alpha1.Metric) { m.Provider, m.ConsecutiveFailureLimit = job(false), new(int32(2)) })
	if err != nil || m.ConsecutiveFailureLimit != 2 {
		t.Errorf("a job that may fail once: %+v, %v", m, err)
	}
	for _, interval := range []v1alpha1.Duration{"5s", "1h"} {
		if _, err := one(func(m *v1alpha1.Metric) { m.Interval = interval }); err != nil {
			t.Error(err)
		}
	}
}

// A template for all namespaces is confined by the arguments that it takes from the release: a
// tenant must not name another namespace, nor another token.
func TestARolloutReplacesNoArgumentThatTheTemplateTakesFromElsewhere(t *testing.T) {
	for name, d := range map[string]v1alpha1.MetricArgument{
		"from the release": {Name: "space", Field: v1alpha1.FieldNamespace},
		"from a Secret":    {Name: "space", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "s", Key: "k"}},
	} {
		_, err := Resolve(&v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{
			{Name: "t", Kind: v1alpha1.KindClusterAnalysisTemplate, Args: []v1alpha1.ArgumentValue{{Name: "space", Value: "bank"}}},
		}}, []Template{template(v1alpha1.KindClusterAnalysisTemplate, "t", []v1alpha1.MetricArgument{d}, web("a"))}, release)
		if want := "spec.analysis.templateRefs[0].args: space has its value from the template; remove it"; err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakesNameTheFieldAndTheFix(t *testing.T) {
	own := func(change func(*v1alpha1.InlineMetric)) *v1alpha1.Analysis {
		m := inline(web("a"))
		change(&m)
		return &v1alpha1.Analysis{Metrics: []v1alpha1.InlineMetric{m}}
	}
	var many []v1alpha1.Metric
	for i := range 8 {
		many = append(many, web(fmt.Sprint("m", i)))
	}
	templates := []Template{
		template(v1alpha1.KindAnalysisTemplate, "t", []v1alpha1.MetricArgument{{Name: "x"}}, web("a")),
		template(v1alpha1.KindAnalysisTemplate, "plain", nil, web("a")), template(v1alpha1.KindAnalysisTemplate, "many", nil, many...),
	}
	ref := func(name string, args ...v1alpha1.ArgumentValue) *v1alpha1.Analysis {
		return &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: name, Args: args}}}
	}
	both := ref("plain")
	both.Metrics = []v1alpha1.InlineMetric{inline(web("a"))}
	tooMany := &v1alpha1.Analysis{Metrics: both.Metrics, TemplateRefs: []v1alpha1.TemplateReference{{Name: "many"}, {Name: "many"}}}
	for name, test := range map[string]struct {
		analysis *v1alpha1.Analysis
		want     string
	}{
		"no such template":                  {ref("nothing"), "spec.analysis.templateRefs[0]: there is no AnalysisTemplate nothing; create it or correct the name"},
		"one in the namespace, not for all": {&v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "t", Kind: v1alpha1.KindClusterAnalysisTemplate}}}, "spec.analysis.templateRefs[0]: there is no ClusterAnalysisTemplate t"},
		"a value is missing":                {ref("t"), "spec.analysis.templateRefs[0].args: x has no value, and the template has none for it; add it"},
		"an unknown argument":               {ref("t", v1alpha1.ArgumentValue{Name: "x"}, v1alpha1.ArgumentValue{Name: "y"}), "spec.analysis.templateRefs[0].args[1]: the template has no argument y; remove it"},
		"an own argument without a value":   {&v1alpha1.Analysis{Args: []v1alpha1.MetricArgument{{Name: "x"}}}, "spec.analysis.args[0]: x has no value; give value, field or secretKeyRef"},
		"a field that is none":              {&v1alpha1.Analysis{Args: []v1alpha1.MetricArgument{{Name: "x", Field: "Y"}}}, `spec.analysis.args[0].field: "Y" is not a field that an argument can have`},
		"two metrics of one name":           {both, "AnalysisTemplate plain: spec.metrics[0].name: a is the name of spec.analysis.metrics[0] too; rename one of them"},
		"too many":                          {tooMany, "spec.analysis: has 17 metrics with those of its templates; 16 are possible"},
		"a limit that is no number":         {own(func(m *v1alpha1.InlineMetric) { m.Max = "low" }), "spec.analysis.metrics[0].max: "},
		"a lower limit that is no number":   {own(func(m *v1alpha1.InlineMetric) { m.Min = "low" }), "spec.analysis.metrics[0].min: "},
		"an interval that is none":          {own(func(m *v1alpha1.InlineMetric) { m.Interval = "often" }), "spec.analysis.metrics[0].interval: "},
		"too short an interval":             {own(func(m *v1alpha1.InlineMetric) { m.Interval = "1s" }), "spec.analysis.metrics[0].interval: 1s; give 5s to 1h0m0s"},
		"too long a window":                 {own(func(m *v1alpha1.InlineMetric) { m.Interval, m.Compare = "1m", &v1alpha1.Comparison{} }), "spec.analysis.metrics[0].interval: 1m0s; give 5s to 50s"},
		"a tolerance that is none":          {own(func(m *v1alpha1.InlineMetric) { m.Compare = &v1alpha1.Comparison{Tolerance: "2"} }), "spec.analysis.metrics[0].compare.tolerance: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(test.analysis, templates, release)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || got != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if got, err := Resolve(nil, nil, release); got != nil || err != nil {
		t.Errorf("without analysis: %+v, %v", got, err)
	}
}
