// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// TestThePagesExamplesCanBeMeasured resolves every template of the page, as the page's
// Rollout or one without arguments names it, and makes what measures its metrics.
func TestThePagesExamplesCanBeMeasured(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "analysistemplate.md"))
	if err != nil {
		t.Fatal(err)
	}
	release := resolve.Release{Namespace: "shop", Name: "website", CanaryService: "website-canary", StableService: "website-stable"}
	var templates []resolve.Template
	var rollouts []v1alpha1.Rollout
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for text := range strings.SplitSeq(block[1], "---\n") {
			var head struct{ Kind string }
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatal(err)
			}
			switch head.Kind {
			case v1alpha1.KindAnalysisTemplate, v1alpha1.KindClusterAnalysisTemplate:
				var example v1alpha1.AnalysisTemplate
				if err := yaml.UnmarshalStrict([]byte(text), &example); err != nil {
					t.Fatal(err)
				}
				templates = append(templates, resolve.Template{Kind: head.Kind, Name: example.Name, Spec: example.Spec})
			case "Rollout":
				var example v1alpha1.Rollout
				if err := yaml.UnmarshalStrict([]byte(text), &example); err != nil {
					t.Fatal(err)
				}
				rollouts = append(rollouts, example)
			}
		}
	}
	analyses := []*v1alpha1.Analysis{}
	for _, ro := range rollouts {
		analyses = append(analyses, ro.Spec.Analysis)
	}
	for _, example := range templates {
		analyses = append(analyses, &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Kind: example.Kind, Name: example.Name}}})
	}
	tried := map[v1alpha1.ProviderType]bool{}
	for _, a := range analyses {
		metrics, err := resolve.Resolve(a, templates, release)
		if err != nil {
			t.Error(err)
		}
		for _, m := range metrics {
			withDefaults(&m.Provider)
			if _, err := providers().Build(m); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
			tried[m.Provider.Type] = true
		}
	}
	if len(tried) != len(builders) {
		t.Errorf("the page has examples of %v only", tried)
	}
}

// TestMigratedTemplatesCanBeMeasured makes what measures the metrics of the templates that
// a migration writes.
func TestMigratedTemplatesCanBeMeasured(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "cmd", "kubectl-traffic", "migration", "testdata", "*", "*.out.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var templates []resolve.Template
		var analyses []*v1alpha1.Analysis
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var o struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct {
					v1alpha1.AnalysisTemplateSpec
					Analysis *v1alpha1.Analysis
				}
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch o.Kind {
			case v1alpha1.KindAnalysisTemplate, v1alpha1.KindClusterAnalysisTemplate:
				templates = append(templates, resolve.Template{Kind: o.Kind, Name: o.Metadata.Name, Spec: o.Spec.AnalysisTemplateSpec})
			case "Rollout":
				analyses = append(analyses, o.Spec.Analysis)
			}
		}
		if len(templates) == 0 {
			continue
		}
		for _, a := range analyses {
			metrics, err := resolve.Resolve(a, templates, resolve.Release{Namespace: "shop", Name: "website"})
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, m := range metrics {
				withDefaults(&m.Provider)
				if _, err := providers().Build(m); err != nil {
					t.Errorf("%s: %s: %v", file, m.Name, err)
				}
				tried++
			}
		}
	}
	if tried < 5 {
		t.Errorf("only %d metrics were tried", tried)
	}
}

// withDefaults fills in the addresses that the API server does.
func withDefaults(p *v1alpha1.MetricProvider) {
	if p.Datadog != nil {
		p.Datadog.Address = "https://api.datadoghq.com"
	}
	if p.NewRelic != nil {
		p.NewRelic.Address = "https://api.newrelic.com/graphql"
	}
}
