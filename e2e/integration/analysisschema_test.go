// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dryRunCluster creates an object without a namespace, and does not keep it.
func dryRunCluster(ctx context.Context, manifest string) error {
	objects, err := decode([]byte(manifest))
	if err != nil {
		return err
	}
	return admin.Create(ctx, objects[0], client.DryRunAll, client.FieldValidation("Strict"))
}

// templateWith is an AnalysisTemplate with one metric that has the given fields.
func templateWith(metric string) string {
	return "apiVersion: serin.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: errors}\nspec:\n  metrics:\n  - " +
		strings.ReplaceAll(strings.TrimSpace("name: errors\n"+metric), "\n", "\n    ") + "\n"
}

const (
	promQuery    = "provider: {type: prometheus, prometheus: {address: http://prometheus:9090, query: up}}\n"
	promCounters = "provider: {type: prometheus, prometheus: {address: http://prometheus:9090, counters: {requests: a_total, failures: b_total}}}\n"
	jobQuery     = "provider: {type: job, job: {template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}}}\n"
)

func TestEveryProviderAndSettingIsAccepted(t *testing.T) {
	t.Parallel()
	for name, metric := range map[string]string{
		"a query":              promQuery + `max: "0.05"`,
		"the own proxies":      "provider: {type: trafficMetrics, trafficMetrics: {quantity: P99}}\nmax: \"0.5\"",
		"a range":              "provider: {type: prometheus, prometheus: {address: http://p, query: up, range: {over: 5m, step: 15s, reduce: Max}, maxAge: 5m, credentialsRef: {name: prom}}}\nmin: \"-1\"\nmax: \"1\"",
		"counters":             promCounters + "compare: {better: More, weight: 5, tolerance: 2pp}\ninterval: 15s",
		"counters by default":  promCounters + "compare: {}",
		"latency":              "provider: {type: prometheus, prometheus: {address: http://p, counters: {latency: x_bucket}}}\ncompare: {}",
		"any endpoint":         "provider: {type: web, web: {url: 'https://a.example/{{args.service}}', jsonPath: '{.a}', headers: [{name: Authorization, value: 'Bearer {{args.token}}'}]}}\nmin: \"1\"",
		"a Job":                jobQuery + "dryRun: true\nconsecutiveFailureLimit: 1",
		"Datadog":              "provider: {type: datadog, datadog: {query: 'avg:a{b}', credentialsRef: {name: datadog}}}\nmax: \"1\"",
		"CloudWatch":           "provider: {type: cloudWatch, cloudWatch: {region: eu-central-1, expression: 'a/b', credentialsRef: {name: aws}}}\nmax: \"1\"",
		"New Relic":            "provider: {type: newRelic, newRelic: {accountID: 1, query: SELECT 1, credentialsRef: {name: newrelic}}}\nmax: \"1\"",
		"Graphite":             "provider: {type: graphite, graphite: {address: http://g, target: a.b}}\nmax: \"1\"",
		"InfluxDB":             "provider: {type: influxDB, influxDB: {address: http://i, organization: o, query: q, credentialsRef: {name: influx}}}\nmax: \"1\"",
		"all settings at once": promQuery + "min: \"0\"\nmax: \"0.123456789\"\ninterval: 1m\nconsecutiveFailureLimit: 100\nminSamples: 1000\ndryRun: true",
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), templateWith(metric)); err != nil {
				t.Error(err)
			}
			cluster := strings.Replace(templateWith(metric), "kind: AnalysisTemplate", "kind: ClusterAnalysisTemplate", 1)
			if err := dryRunCluster(t.Context(), cluster); err != nil {
				t.Errorf("for all namespaces: %v", err)
			}
		})
	}
}

func TestMetricsThatContradictThemselvesAreRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ metric, want string }{
		"no limit":                      {promQuery, "min, max: a plain number needs one or both of them"},
		"limits of a comparison":        {promCounters + "compare: {}\nmax: \"1\"", "min, max: a plain number needs one or both of them, and a comparison or a job none"},
		"limits of a Job":               {jobQuery + "max: \"1\"", "and a comparison or a job none"},
		"limits the wrong way round":    {promQuery + "min: \"2\"\nmax: \"1\"", "min: must not be greater than max; swap them"},
		"a comparison of a number":      {promQuery + "compare: {}", "compare: belongs to provider.prometheus.counters; give both or neither"},
		"counters without a comparison": {promCounters + "max: \"1\"", "compare: belongs to provider.prometheus.counters"},
		"a query and counters":          {"provider: {type: prometheus, prometheus: {address: http://p, query: up, counters: {requests: a, failures: b}}}\ncompare: {}", "query, counters: needs exactly one of them"},
		"neither":                       {"provider: {type: prometheus, prometheus: {address: http://p}}\nmax: \"1\"", "query, counters: needs exactly one of them"},
		"a range of counters":           {"provider: {type: prometheus, prometheus: {address: http://p, counters: {requests: a, failures: b}, range: {over: 1m, step: 1s, reduce: Max}}}\ncompare: {}", "range: is for a query and not for counters"},
		"only failures":                 {"provider: {type: prometheus, prometheus: {address: http://p, counters: {failures: a}}}\ncompare: {}", "requests, latency: needs at least one of them"},
		"only requests":                 {"provider: {type: prometheus, prometheus: {address: http://p, counters: {requests: a}}}\ncompare: {}", "failures, latency: nothing to compare"},
		"another type":                  {"provider: {type: web, prometheus: {address: http://p, query: up}}\nmax: \"1\"", "prometheus: belongs to type prometheus; give both or neither"},
		"a type without its field":      {"provider: {type: web}\nmax: \"1\"", "web: belongs to type web; give both or neither"},
		"a Job without its field":       {"provider: {type: job}", "job: belongs to type job"},
		"own proxies without a field":   {"provider: {type: trafficMetrics}\nmax: \"1\"", "trafficMetrics: belongs to type trafficMetrics"},
		"Datadog without its field":     {"provider: {type: datadog}\nmax: \"1\"", "datadog: belongs to type datadog"},
		"CloudWatch without its field":  {"provider: {type: cloudWatch}\nmax: \"1\"", "cloudWatch: belongs to type cloudWatch"},
		"New Relic without its field":   {"provider: {type: newRelic}\nmax: \"1\"", "newRelic: belongs to type newRelic"},
		"Graphite without its field":    {"provider: {type: graphite}\nmax: \"1\"", "graphite: belongs to type graphite"},
		"InfluxDB without its field":    {"provider: {type: influxDB}\nmax: \"1\"", "influxDB: belongs to type influxDB"},
		"an unknown provider":           {"provider: {type: wavefront}\nmax: \"1\"", "spec.metrics[0].provider.type"},
		"a limit in words":              {promQuery + "max: low", "spec.metrics[0].max"},
		"a limit that is a number":      {promQuery + "max: 0.5", "spec.metrics[0].max"},
		"an interval in words":          {promQuery + "max: \"1\"\ninterval: often", "spec.metrics[0].interval"},
		"another protocol":              {"provider: {type: prometheus, prometheus: {address: ftp://p, query: up}}\nmax: \"1\"", "spec.metrics[0].provider.prometheus.address"},
		"a password in an address":      {"provider: {type: web, web: {url: http://a:b@c, jsonPath: a}}\nmax: \"1\"", "spec.metrics[0].provider.web.url"},
		"an unknown quantity":           {"provider: {type: trafficMetrics, trafficMetrics: {quantity: P50.5}}\nmax: \"1\"", "quantity"},
		"a failure limit of none":       {promQuery + "max: \"1\"\nconsecutiveFailureLimit: 0", "spec.metrics[0].consecutiveFailureLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), templateWith(c.metric)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTheAnalysisOfARolloutNamesTemplatesAndMetrics(t *testing.T) {
	t.Parallel()
	analysis := func(text string) string { return rolloutWith(deploymentRef + oneStep + "analysis: " + text) }
	for name, text := range map[string]string{
		"all settings":      `{maxFalseRollback: 1%, tolerance: 0.5pp, maxBadPromotion: 2%, minEvidence: 1m, startup: {for: 30s, tolerate: 10pp}, maxCorrelatedFailures: 20, onInconclusive: Hold}`,
		"a template":        `{templateRefs: [{name: errors, args: [{name: service, value: a}]}, {name: errors, kind: ClusterAnalysisTemplate}]}`,
		"a metric":          `{args: [{name: service, field: ArmService}], metrics: [{name: errors, max: "1", provider: {type: web, web: {url: "http://a/{{args.service}}", jsonPath: "{.a}"}}}]}`,
		"a startup of none": `{startup: {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), analysis(text)); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"a kind that is none":           {`{templateRefs: [{name: errors, kind: Deployment}]}`, "spec.analysis.templateRefs[0].kind"},
		"a value from two places":       {`{args: [{name: a, value: b, field: Name}]}`, "value, field and secretKeyRef exclude each other; keep one of them"},
		"a field that is none":          {`{args: [{name: a, field: Password}]}`, "spec.analysis.args[0].field"},
		"an argument without a value":   {`{templateRefs: [{name: errors, args: [{name: a}]}]}`, "spec.analysis.templateRefs[0].args[0].value"},
		"a metric without a limit":      {`{metrics: [{name: a, provider: {type: trafficMetrics, trafficMetrics: {quantity: P50}}}]}`, "min, max: a plain number needs one or both of them"},
		"a provider of templates":       {`{metrics: [{name: a, max: "1", provider: {type: datadog, datadog: {query: a, credentialsRef: {name: a}}}}]}`, "datadog"},
		"one metric twice":              {`{metrics: [{name: a, max: "1", provider: {type: trafficMetrics, trafficMetrics: {quantity: P50}}}, {name: a, max: "1", provider: {type: trafficMetrics, trafficMetrics: {quantity: P50}}}]}`, "Duplicate value"},
		"a cluster of no requests":      {`{maxCorrelatedFailures: 0}`, "spec.analysis.maxCorrelatedFailures"},
		"a probability that is none":    {`{maxBadPromotion: 101%}`, "spec.analysis.maxBadPromotion"},
		"a startup that is no duration": {`{startup: {for: long}}`, "spec.analysis.startup.for"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), analysis(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestGeneratedKindsStaySmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() >= 110_000 { // a tenth more than at first, for the abilities of Rollouts that came since
			t.Errorf("%s has %d bytes: a kind that size is slow to read, for people and for the API server", file, info.Size())
		}
	}
}
