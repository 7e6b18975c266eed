// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/controllers/rollout"
)

// expressions are the PromQL of a page, by the name of the alert.
func expressions(t *testing.T, page string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(content), -1) {
		out[fmt.Sprintf("expression %d", i+1)] = block[1]
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(groups:.*?)```").FindAllStringSubmatch(string(content), -1) {
		rules := struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []struct {
					Alert       string            `json:"alert"`
					Expr        string            `json:"expr"`
					For         string            `json:"for"`
					Annotations map[string]string `json:"annotations"`
				} `json:"rules"`
			} `json:"groups"`
		}{}
		if err := yaml.UnmarshalStrict([]byte(block[1]), &rules); err != nil {
			t.Fatal(err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				out[rule.Alert] = rule.Expr
			}
		}
	}
	return out
}

// servedByRollouts are the values of each label of each metric that a controller
// without any Rollout serves.
func servedByRollouts(t *testing.T) map[string]map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(rollout.New(nil, nil, rollout.Options{}).Metrics()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	// What has series only with a release, and what the controller runtime serves.
	out := map[string]map[string][]string{
		"serin_rollout_step": {}, "serin_rollout_weight": {}, "serin_rollout_evidence_ratio": {}, "serin_rollout_promotion_ratio": {}, "serin_release_duration_seconds_bucket": {"outcome": {"Promoted"}},
		"controller_runtime_reconcile_errors_total": {"controller": {"rollout"}},
	}
	for _, f := range families {
		values := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
		out[f.GetName()] = values
	}
	return out
}

func TestTheAlertsOfThePageAboutMetricsAskForWhatIsServed(t *testing.T) {
	t.Parallel()
	served := servedByRollouts(t)
	all := expressions(t, "metrics.md")
	if len(all) < 8 {
		t.Fatalf("the page has only %d expressions", len(all))
	}
	for name, text := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			values, known := served[s.Name]
			if !known {
				t.Errorf("%s: nobody serves %s", name, s.Name)
			}
			for _, m := range s.LabelMatchers {
				checkMatcher(t, name, m, values)
			}
			return nil
		})
	}
}

// checkMatcher: every value that an expression looks for can occur.
func checkMatcher(t *testing.T, name string, m *labels.Matcher, values map[string][]string) {
	t.Helper()
	if m.Name == "__name__" { // the selector has it too
		return
	}
	for value := range strings.SplitSeq(m.Value, "|") {
		if !slices.Contains(values[m.Name], value) {
			t.Errorf("%s: the label %s is never %s, only one of %v", name, m.Name, value, values[m.Name])
		}
	}
}
