// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/certificate"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/controllers/rollout"
	"github.com/serin-dev/serin/poll/fair"
)

var (
	rulesFile     = filepath.Join(dir, "files", "monitoring", "rules.yaml")
	dashboardFile = filepath.Join(dir, "files", "monitoring", "dashboard.json")
	runbooks      = filepath.Join(root, "docs", "runbooks.md")
)

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func alerts(t *testing.T, text []byte) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups[0].Rules
}

func TestTheOperatorsRulesAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	text, err := render(t, "monitoring: {prometheusRule: {enabled: true}}", operatorKinds...)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(objects(t, text, "PrometheusRule")["serin"]), &object); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(alerts(t, object.Spec)), fmt.Sprint(alerts(t, read(t, rulesFile))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTheDashboardOfTheChartIsTheFile(t *testing.T) {
	t.Parallel()
	text, err := render(t, "monitoring: {dashboard: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal([]byte(objects(t, text, "ConfigMap")["serin-dashboard"]), &object); err != nil {
		t.Fatal(err)
	}
	if object.Data["serin.json"] != strings.TrimSpace(string(read(t, dashboardFile))) {
		t.Error("the ConfigMap has another dashboard than the file")
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		testenv.Missing(t, "there is no promtool", "install the package prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// promtoolTest has promtool test rules or queries.
func promtoolTest(t *testing.T, tests map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(tests)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

func TestPrometheusTakesTheRules(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", rulesFile)
}

func TestAlertsFireOnTheirSeriesAndOnNoOther(t *testing.T) {
	t.Parallel()
	cases := filepath.Join("testdata", "rules_test.yaml")
	text := string(read(t, cases))
	for _, a := range alerts(t, read(t, rulesFile)) {
		for _, test := range []string{" fires", " stays silent"} {
			if !strings.Contains(text, "name: "+a.Alert+test+"\n") {
				t.Errorf("%s has no test %q", cases, a.Alert+test)
			}
		}
	}
	promtool(t, "test", "rules", cases)
}

// expressions are the queries of the dashboard, by panel, and those of the alerts.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, q := range queries(t) {
		all["panel "+q.panel] = q.in(".*")
	}
	for _, a := range alerts(t, read(t, rulesFile)) {
		all[a.Alert] = a.Expr
	}
	page := read(t, filepath.Join(root, "docs", "metrics.md"))
	for i, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllSubmatch(page, -1) {
		all[fmt.Sprintf("docs/metrics.md, expression %d", i+1)] = string(block[1])
	}
	return all
}

// free marks a label whose values are not known here.
const free = "*"

// noCertificate is a server that shows none.
type noCertificate struct{}

func (noCertificate) CurrentCertKeyContent() ([]byte, []byte) { return nil, nil }

// served are the labels of each metric, with their values, that a component registers.
// Prometheus adds the namespace and the split of a proxy.
func served(t *testing.T) map[string]map[string][]string {
	t.Helper()
	all := map[string]map[string][]string{"up": {}}
	// Those that have series only with a release, a proxy or a leader.
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{rollout.New(nil, nil, rollout.Options{}).Metrics(), notify.New(nil, egress.Policy{}, clock.RealClock{}, notify.Options{}), certificate.Expiry("metrics", noCertificate{}), certificate.Expiry("webhook", noCertificate{}), bounds.NewSlotUse("metrics", fair.NewSlots(fair.Limits{Slots: 32})), bounds.NewSlotUse("outbound", fair.NewSlots(fair.Limits{Slots: 32}))} {
		registry.MustRegister(c)
		described(c, all)
	}
	page := string(read(t, filepath.Join(root, "docs", "proxy.md"))) // kept true by TestThePageListsEveryMetricOfTheProxyWithItsLabels
	for _, m := range regexp.MustCompile("`(serin_proxy_[a-z_]+)(?:\\{([a-z,]+)\\})?`").FindAllStringSubmatch(page, -1) {
		add(all, m[1], strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' }))
	}
	for _, g := range []prometheus.Gatherer{registry, metrics.Registry} {
		families, err := g.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			known(all, f)
		}
	}
	// What the controller runtime describes, and serves once controllers run.
	described(metrics.Registry.(prometheus.Collector), all)
	controllers := []string{"rollout", "trafficsplit", "canaryrelease", "freeze"}
	for label, names := range map[string][]string{
		"controller": {"controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_timeouts_total", "controller_runtime_reconcile_time_seconds_bucket"},
		"name":       {"workqueue_depth", "workqueue_longest_running_processor_seconds"},
	} {
		for _, name := range names {
			if all[name] == nil {
				t.Fatalf("the controller runtime has no %s", name)
			}
			all[name][label] = controllers
		}
	}
	all["leader_election_master_status"]["name"] = []string{"manager.serin.dev"}
	for name, values := range all {
		if strings.HasPrefix(name, "serin_proxy_") || name == "up" {
			values["namespace"], values["serin_dev_proxy"] = []string{free}, []string{free}
		}
	}
	return all
}

func add(all map[string]map[string][]string, name string, names []string) {
	for _, n := range []string{name, name + "_bucket"} {
		if all[n] == nil {
			all[n] = map[string][]string{"le": {free}}
		}
		for _, label := range names {
			if all[n][label] == nil {
				all[n][label] = []string{free}
			}
		}
	}
}

// known replaces what is free by the values of series that are there from the start.
func known(all map[string]map[string][]string, f *dto.MetricFamily) {
	values := map[string][]string{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			values[l.GetName()] = append(values[l.GetName()], l.GetValue())
		}
	}
	if labels, ok := all[f.GetName()]; ok {
		maps.Copy(labels, values)
	}
}

func TestQueriesAskForWhatIsServed(t *testing.T) {
	t.Parallel()
	metrics := served(t)
	all := expressions(t)
	if len(all) < 49 {
		t.Fatalf("there are only %d expressions", len(all))
	}
	for name, text := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var selected []string
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				selected = append(selected, s.Name)
				if metrics[s.Name] == nil {
					t.Errorf("%s: no component serves %s", name, s.Name)
				}
				for _, m := range s.LabelMatchers {
					checkMatcher(t, name, m, metrics[s.Name])
				}
			}
			return nil
		})
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if a, ok := n.(*parser.AggregateExpr); ok {
				for _, label := range a.Grouping {
					if !slices.ContainsFunc(selected, func(s string) bool { return metrics[s][label] != nil }) {
						t.Errorf("%s: none of %v has the label %s", name, selected, label)
					}
				}
			}
			return nil
		})
	}
}

// checkMatcher: every value that an expression looks for can occur.
func checkMatcher(t *testing.T, name string, m *labels.Matcher, values map[string][]string) {
	t.Helper()
	if m.Name == model.MetricNameLabel {
		return
	}
	can := values[m.Name]
	if can == nil {
		t.Errorf("%s: there is no label %s", name, m.Name)
	}
	if slices.Contains(can, free) {
		return
	}
	for value := range strings.SplitSeq(m.Value, "|") {
		if !slices.Contains(can, value) {
			t.Errorf("%s: the label %s is never %s, only one of %v", name, m.Name, value, can)
		}
	}
}

// section finds what a heading of the page of runbooks introduces.
func section(page, heading string) string {
	_, text, found := strings.Cut(page, "\n### "+heading+"\n")
	if !found {
		return ""
	}
	if end := regexp.MustCompile(`(?m)^##`).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return text
}

func TestEachAlertAndEachReasonHasARunbook(t *testing.T) {
	t.Parallel()
	page := string(read(t, runbooks))
	check := func(heading string) {
		text := section(page, heading)
		for _, part := range []string{"**Seen:**", "**Means:**", "**Type:**", "```sh\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the section %s has no %q", runbooks, heading, part)
			}
		}
	}
	for _, a := range alerts(t, read(t, rulesFile)) {
		check(a.Alert)
		if want := "https://github.com/serin-dev/serin/blob/main/docs/runbooks.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s links to %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	for _, reason := range stalledReasons(t) {
		check(reason)
	}
}
