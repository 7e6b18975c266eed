// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// exported are the series of a Prometheus that scrapes two managers and the proxies of two
// namespaces: the values of one sample after another, in the notation of promtool. Counters
// count so much between two scrapes.
var exported = map[string]string{
	`serin_rollouts{pod="m-0",state="Stable"}`:             "3x40",
	`serin_rollouts{pod="m-0",state="WaitingForEvidence"}`: "2x40",
	`serin_rollouts{pod="m-0",state="Conflict"}`:           "0x40",
	`serin_rollouts{pod="m-1",state="Stable"}`:             "0x40",

	`serin_rollout_weight{pod="m-0",namespace="shop",name="web"}`:          "20x40",
	`serin_rollout_weight{pod="m-0",namespace="bank",name="api"}`:          "5x40",
	`serin_rollout_step{pod="m-0",namespace="shop",name="web"}`:            "3x40",
	`serin_rollout_step{pod="m-0",namespace="bank",name="api"}`:            "1x40",
	`serin_rollout_evidence_ratio{pod="m-0",namespace="shop",name="web"}`:  "0.5x40",
	`serin_rollout_promotion_ratio{pod="m-0",namespace="shop",name="web"}`: "0.75x40",

	`serin_releases_total{pod="m-0",outcome="Promoted"}`:   "0+2x40",
	`serin_releases_total{pod="m-0",outcome="RolledBack"}`: "0+1x40",
	`serin_rollbacks_total{pod="m-0",cause="LimitMissed"}`: "0+1x40",
	`serin_rollbacks_total{pod="m-0",cause="Aborted"}`:     "0x40",
	`serin_verdicts_total{pod="m-0",verdict="Pass"}`:       "0+3x40",
	`serin_interventions_total{pod="m-0",action="Abort"}`:  "0+1x40",

	`serin_release_duration_seconds_bucket{pod="m-0",outcome="Promoted",le="300"}`:    "0+5x40",
	`serin_release_duration_seconds_bucket{pod="m-0",outcome="Promoted",le="600"}`:    "0+9x40",
	`serin_release_duration_seconds_bucket{pod="m-0",outcome="Promoted",le="+Inf"}`:   "0+10x40",
	`serin_release_duration_seconds_bucket{pod="m-0",outcome="RolledBack",le="+Inf"}`: "0+10x40",

	`serin_proxy_requests_total{pod="p-0",namespace="shop",serin_dev_proxy="web",backend="web",code="200"}`:        "0+90x40",
	`serin_proxy_requests_total{pod="p-1",namespace="shop",serin_dev_proxy="web",backend="web",code="200"}`:        "0+60x40",
	`serin_proxy_requests_total{pod="p-0",namespace="shop",serin_dev_proxy="web",backend="web-canary",code="200"}`: "0+90x40",
	`serin_proxy_requests_total{pod="p-0",namespace="shop",serin_dev_proxy="web",backend="web-canary",code="503"}`: "0+30x40",
	`serin_proxy_requests_total{pod="p-2",namespace="bank",serin_dev_proxy="api",backend="api",code="200"}`:        "0+30x40",

	`serin_proxy_request_duration_seconds_bucket{pod="p-0",namespace="shop",serin_dev_proxy="web",backend="web",le="0.25"}`: "0+2970x40",
	`serin_proxy_request_duration_seconds_bucket{pod="p-0",namespace="shop",serin_dev_proxy="web",backend="web",le="+Inf"}`: "0+3000x40",

	`serin_proxy_generation{pod="p-0",namespace="shop",serin_dev_proxy="web"}`:                         "7x40",
	`serin_proxy_generation{pod="p-1",namespace="shop",serin_dev_proxy="web"}`:                         "8x40",
	`serin_proxy_generation{pod="p-2",namespace="bank",serin_dev_proxy="api"}`:                         "2x40",
	`serin_proxy_unrouted_requests_total{pod="p-0",namespace="shop",serin_dev_proxy="web",code="400"}`: "0+60x40",
	`serin_proxy_workers_killed_total{pod="p-0",namespace="shop",serin_dev_proxy="web"}`:               "0+1x40",
	`serin_proxy_nginx_restarts_total{pod="p-0",namespace="shop",serin_dev_proxy="web"}`:               "0+2x40",
	`serin_proxy_log_lines_dropped_total{pod="p-0",namespace="shop",serin_dev_proxy="web"}`:            "0+3x40",

	`leader_election_master_status{pod="m-0",name="manager.serin.dev"}`:                          "1x40",
	`leader_election_master_status{pod="m-1",name="manager.serin.dev"}`:                          "0x40",
	`controller_runtime_reconcile_total{pod="m-0",controller="rollout",result="success"}`:        "0+60x40",
	`controller_runtime_reconcile_total{pod="m-0",controller="trafficsplit",result="error"}`:     "0+30x40",
	`controller_runtime_reconcile_time_seconds_bucket{pod="m-0",controller="rollout",le="0.5"}`:  "0+2970x40",
	`controller_runtime_reconcile_time_seconds_bucket{pod="m-0",controller="rollout",le="+Inf"}`: "0+3000x40",
	`workqueue_depth{pod="m-0",name="rollout",controller="rollout",priority=""}`:                 "4x40",
	`serin_outbound_attempts_total{pod="m-0",outcome="delivered"}`:                               "0+60x40",
	`serin_outbound_unsettled{pod="m-0"}`:                                                        "5x40",
	`serin_metrics_certificate_expiry_timestamp_seconds{pod="s-0"}`:                              "87600x40",
	`serin_slots_busy{pod="m-0",work="metrics"}`:                                                 "32x40",
	`serin_slots_waiting{pod="m-0",work="metrics"}`:                                              "6x40",
	`serin_slots_namespace_waiting{pod="m-0",work="metrics",namespace="shop"}`:                   "5x40",
	`serin_slots_namespace_waiting{pod="m-0",work="metrics",namespace="bank"}`:                   "1x40",
}

// shown are the series of each query of the dashboard with their values, 20 minutes later and
// for all namespaces.
var shown = map[string][]string{
	"Rollouts by state A":                     {`{state="Stable"} 3`, `{state="WaitingForEvidence"} 2`},
	"Live weight of canaries A":               {`{namespace="shop",name="web"} 20`, `{namespace="bank",name="api"} 5`},
	"Step A":                                  {`{namespace="shop",name="web"} 3`, `{namespace="bank",name="api"} 1`},
	"Evidence against the canary A":           {`{namespace="shop",name="web"} 0.5`},
	"Evidence for an early promotion A":       {`{namespace="shop",name="web"} 0.75`},
	"Releases that ended per day A":           {`{outcome="Promoted"} 80`, `{outcome="RolledBack"} 40`},
	"Rollbacks by cause per day A":            {`{cause="LimitMissed"} 40`},
	"Time to promotion A":                     {`{} 300`},
	"Time to promotion B":                     {`{} 600`},
	"Verdicts and decisions of users A":       {`{verdict="Pass"} 120`},
	"Verdicts and decisions of users B":       {`{action="Abort"} 40`},
	"Requests of each backend A":              {`{namespace="shop",backend="web"} 5`, `{namespace="shop",backend="web-canary"} 4`, `{namespace="bank",backend="api"} 1`},
	"Share of 5xx responses A":                {`{namespace="shop",backend="web-canary"} 0.25`},
	"Latency, 99th percentile A":              {`{namespace="shop",backend="web"} 0.25`},
	"Programmed generation of the split A":    {`{namespace="shop",serin_dev_proxy="web"} 7`, `{namespace="bank",serin_dev_proxy="api"} 2`},
	"Programmed generation of the split B":    {`{namespace="shop",serin_dev_proxy="web"} 8`, `{namespace="bank",serin_dev_proxy="api"} 2`},
	"Responses by the proxies themselves A":   {`{namespace="shop",code="400"} 2`},
	"Errors: all should be zero A":            {`{namespace="shop"} 2`},
	"Errors: all should be zero B":            {`{namespace="shop"} 4`},
	"Errors: all should be zero C":            {`{namespace="shop"} 6`},
	"Leaders A":                               {`{} 1`},
	"Reconciles A":                            {`{controller="rollout",result="success"} 2`, `{controller="trafficsplit",result="error"} 1`},
	"Reconcile time, 99th percentile A":       {`{controller="rollout"} 0.5`},
	"Queues A":                                {`{name="rollout"} 4`},
	"Hooks and notifications A":               {`{outcome="delivered"} 2`},
	"Hooks and notifications B":               {`{} 5`},
	"Certificate of the metrics servers A":    {`{} 86400`},
	"Slots in use A":                          {`{work="metrics"} 32`},
	"Tasks that wait for slots A":             {`{work="metrics"} 6`},
	"Namespaces that wait for slots A":        {`{namespace="shop",work="metrics"} 5`, `{namespace="bank",work="metrics"} 1`},
	"the namespaces that one can choose from": {`{namespace="shop"} 1`, `{namespace="bank"} 1`},
}

// query is one of the dashboard.
type query struct{ panel, expr, legend string }

// rateInterval is the shortest that Grafana takes for $__rate_interval: four times the scrape
// interval of a data source that says none, 15 s.
const rateInterval = "1m"

// in is the query as Grafana sends it with the variable namespace.
func (q query) in(namespace string) string {
	return strings.NewReplacer("$__rate_interval", rateInterval, "$namespace", namespace).Replace(q.expr)
}

// queries are those of the panels, also of rows that are collapsed.
func queries(t *testing.T) []query {
	t.Helper()
	type panel struct {
		Title   string `json:"title"`
		Panels  []panel
		Targets []struct{ RefID, Expr, LegendFormat string } `json:"targets"`
	}
	var board struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(read(t, dashboardFile), &board); err != nil {
		t.Fatal(err)
	}
	var all []query
	for _, p := range board.Panels {
		for _, p := range append([]panel{p}, p.Panels...) {
			for _, target := range p.Targets {
				all = append(all, query{p.Title + " " + target.RefID, target.Expr, target.LegendFormat})
			}
		}
	}
	return all
}

// choice is the query of the dashboard's variable namespace. Grafana asks for the series of its
// selector and takes the values of the label.
func choice(t *testing.T) query {
	t.Helper()
	m := regexp.MustCompile(`"label_values\((.*), (\w+)\)"`).FindStringSubmatch(string(read(t, dashboardFile)))
	if m == nil {
		t.Fatal("the dashboard has no variable with the values of a label")
	}
	return query{"the namespaces that one can choose from", "group by (" + m[2] + ") (" + strings.ReplaceAll(m[1], `\"`, `"`) + ")", ""}
}

func TestEachQueryOfTheDashboardShowsWhatIsExported(t *testing.T) {
	t.Parallel()
	requireServed(t, slices.Collect(maps.Keys(exported)))
	type object = map[string]any
	var series, tests []object
	for key, values := range exported {
		series = append(series, object{"series": key, "values": values})
	}
	known := map[string]bool{}
	for _, q := range append(queries(t), choice(t)) {
		known[q.panel] = true
		for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.legend, -1) {
			if len(shown[q.panel]) == 0 || !strings.Contains(shown[q.panel][0], label[1]+`="`) {
				t.Errorf("%s: no series has the label %s of the legend", q.panel, label[1])
			}
		}
		for _, namespace := range []string{".*", "shop"} { // all, as the dashboard says it, and one
			var samples []object
			for _, s := range shown[q.panel] {
				labels, value, _ := strings.Cut(s, " ")
				if namespace == ".*" || q.in(namespace) == q.in(".*") || strings.Contains(labels, `namespace="`+namespace+`"`) {
					samples = append(samples, object{"labels": labels, "value": json.Number(value)})
				}
			}
			if len(samples) == 0 {
				t.Errorf("%s: it is not said what it shows", q.panel)
			}
			tests = append(tests, object{"expr": q.in(namespace), "eval_time": "20m", "exp_samples": samples})
		}
	}
	for panel := range shown {
		if !known[panel] {
			t.Errorf("the dashboard has no query %s", panel)
		}
	}
	promtoolTest(t, object{"tests": []object{{"interval": scrapeInterval(t), "input_series": series, "promql_expr_test": tests}}})
}

// scrapeInterval is that of the chart's monitors.
func scrapeInterval(t *testing.T) string {
	t.Helper()
	var values struct {
		Monitoring struct {
			Interval string `json:"interval"`
		} `json:"monitoring"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	return values.Monitoring.Interval
}

// requireServed: series have the names and the labels of a metric that a component serves, all of
// them and no other but that of the pod.
func requireServed(t *testing.T, series []string) {
	t.Helper()
	metrics := served(t)
	for _, s := range series {
		matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		var name string
		given := map[string]bool{"pod": true, "le": true}
		for _, m := range matchers {
			if given[m.Name] = true; m.Name == "__name__" {
				name = m.Value
			}
		}
		if metrics[name] == nil {
			t.Errorf("no component serves %s", s)
			continue
		}
		for _, m := range matchers {
			if m.Name != "pod" {
				checkMatcher(t, s, m, metrics[name])
			}
		}
		for label := range metrics[name] {
			if !given[label] {
				t.Errorf("%s: the label %s is missing", s, label)
			}
		}
	}
}
