// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
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
		"a shared Prometheus":  "provider: {type: prometheus, providerRef: {name: shared}, prometheus: {query: up}}\nmax: \"1\"",
		"a shared Datadog":     "provider: {type: datadog, providerRef: {name: shared}, datadog: {query: 'avg:a{b}'}}\nmax: \"1\"",
		"a shared CloudWatch":  "provider: {type: cloudWatch, providerRef: {name: shared}, cloudWatch: {region: eu-central-1, expression: 'a/b'}}\nmax: \"1\"",
		"a shared New Relic":   "provider: {type: newRelic, providerRef: {name: shared}, newRelic: {accountID: 1, query: SELECT 1}}\nmax: \"1\"",
		"a shared Graphite":    "provider: {type: graphite, providerRef: {name: shared}, graphite: {target: a.b}}\nmax: \"1\"",
		"a shared InfluxDB":    "provider: {type: influxDB, providerRef: {name: shared}, influxDB: {organization: o, query: q}}\nmax: \"1\"",
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
		"a shared endpoint":             {"provider: {type: web, providerRef: {name: shared}, web: {url: http://a, jsonPath: a}}\nmax: \"1\"", "providerRef: is for systems that a ClusterMetricProvider can name, not for trafficMetrics, web and job; remove it"},
		"no address":                    {"provider: {type: prometheus, prometheus: {query: up}}\nmax: \"1\"", "prometheus.address: give it or providerRef, not both and not neither"},
		"two addresses":                 {"provider: {type: prometheus, providerRef: {name: shared}, prometheus: {address: http://p, query: up}}\nmax: \"1\"", "prometheus.address: give it or providerRef"},
		"credentials for a shared one":  {"provider: {type: prometheus, providerRef: {name: shared}, prometheus: {query: up, credentialsRef: {name: a}}}\nmax: \"1\"", "prometheus.credentialsRef: providerRef has its own; remove one of them"},
		"two addresses of Graphite":     {"provider: {type: graphite, providerRef: {name: shared}, graphite: {address: http://g, target: a}}\nmax: \"1\"", "graphite.address: give it or providerRef"},
		"credentials of Graphite":       {"provider: {type: graphite, providerRef: {name: shared}, graphite: {target: a, credentialsRef: {name: a}}}\nmax: \"1\"", "graphite.credentialsRef: providerRef has its own"},
		"no address of InfluxDB":        {"provider: {type: influxDB, influxDB: {organization: o, query: q, credentialsRef: {name: a}}}\nmax: \"1\"", "influxDB.address: give it or providerRef"},
		"no credentials of InfluxDB":    {"provider: {type: influxDB, influxDB: {address: http://i, organization: o, query: q}}\nmax: \"1\"", "influxDB.credentialsRef: give it or providerRef"},
		"no credentials of Datadog":     {"provider: {type: datadog, datadog: {query: a}}\nmax: \"1\"", "datadog.credentialsRef: give it or providerRef, not both and not neither"},
		"two credentials of New Relic":  {"provider: {type: newRelic, providerRef: {name: shared}, newRelic: {accountID: 1, query: q, credentialsRef: {name: a}}}\nmax: \"1\"", "newRelic.credentialsRef: give it or providerRef"},
		"two addresses of CloudWatch":   {"provider: {type: cloudWatch, providerRef: {name: shared}, cloudWatch: {region: eu-central-1, expression: a, address: http://a}}\nmax: \"1\"", "cloudWatch.address: providerRef has its own; remove one of them"},
		"no credentials of CloudWatch":  {"provider: {type: cloudWatch, cloudWatch: {region: eu-central-1, expression: a}}\nmax: \"1\"", "cloudWatch.credentialsRef: give it or providerRef"},
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
		"a shared system":   `{metrics: [{name: a, max: "1", provider: {type: prometheus, providerRef: {name: shared}, prometheus: {query: up}}}]}`,
		"a startup of none": `{startup: {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := dryRun(t.Context(), analysis(text)); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"two addresses":                 {`{metrics: [{name: a, max: "1", provider: {type: prometheus, providerRef: {name: shared}, prometheus: {address: "http://p", query: up}}}]}`, "prometheus.address: give it or providerRef"},
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

func TestClusterMetricProvidersThatContradictThemselvesAreRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spec, want string }{
		"a Prometheus":                   {"{type: prometheus, address: http://p:9090}", ""},
		"all settings":                   {"{type: prometheus, address: http://p, credentialsRef: {name: a}, namespaceSelector: {matchLabels: {a: b}}, namespaceLabel: exported_namespace}", ""},
		"an account":                     {"{type: datadog, credentialsRef: {name: a}}", ""},
		"no address":                     {"{type: graphite}", "address: this type has no default; add it"},
		"no credentials":                 {"{type: newRelic}", "credentialsRef: this type needs credentials; add it"},
		"a label of another type":        {"{type: graphite, address: http://g, namespaceLabel: a}", "namespaceLabel: is for the type prometheus; remove it"},
		"a label that is none":           {"{type: prometheus, address: http://p, namespaceLabel: a-b}", "spec.namespaceLabel"},
		"a type that can't be shared":    {"{type: web, address: http://p}", "spec.type"},
		"a user name in the address":     {"{type: prometheus, address: http://a:b@p}", "spec.address"},
		"an address of another protocol": {"{type: prometheus, address: ftp://p}", "spec.address"},
	} {
		t.Run(name, func(t *testing.T) {
			err := dryRunCluster(t.Context(), "apiVersion: serin.dev/v1alpha1\nkind: ClusterMetricProvider\nmetadata: {name: schema}\nspec: "+c.spec+"\n")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// What a reader of the page applies is taken, and belongs together.
func TestTheSharedProviderOfThePageIsAdmitted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var secret corev1.Secret
	var provider v1alpha1.ClusterMetricProvider
	var template v1alpha1.AnalysisTemplate
	into := []client.Object{&secret, &provider, &template}
	for _, section := range page(t, "how-to/shared-metrics.md") {
		for _, b := range section.blocks {
			if b.kind != "yaml" {
				continue
			}
			if len(into) == 0 {
				t.Fatalf("line %d: what is that?", b.line)
			}
			if err := yaml.UnmarshalStrict([]byte(b.text), into[0]); err != nil {
				t.Fatalf("line %d: %v", b.line, err)
			}
			into = into[1:]
		}
	}
	if len(into) > 0 {
		t.Fatalf("the page shows %d objects less", len(into))
	}
	u, err := url.Parse(string(provider.Spec.Address))
	if err != nil || secret.Annotations[v1alpha1.AnnotationAllowedHosts] != u.Hostname() || secret.Namespace != operatorSpace || secret.Name != provider.Spec.CredentialsRef.Name {
		t.Errorf("the Secret %s/%s %v is not that of %+v: %v", secret.Namespace, secret.Name, secret.Annotations, provider.Spec, err)
	}
	if ref := template.Spec.Metrics[0].Provider; ref.ProviderRef.Name != provider.Name || ref.Type != provider.Spec.Type {
		t.Errorf("the template names %+v", ref)
	}
	secret.Namespace, template.Namespace = s.namespace, s.namespace
	provider.Name = s.namespace // another test applies the example of the page, which has its name
	for _, o := range []client.Object{&secret, &provider, &template} {
		if err := admin.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Error(err)
		}
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
		if info.Size() >= 120_000 { // a fifth more than at first, for the abilities of Rollouts that came since
			t.Errorf("%s has %d bytes: a kind that size is slow to read, for people and for the API server", file, info.Size())
		}
	}
}
