// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"regexp"
	"strings"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// metrics are limits of Serin's own counts, and a template for what a query measures.
func (c *canary) metrics(f source.Field, interval time.Duration, threshold int32) {
	a := &v1alpha1.Analysis{ConsecutiveFailureLimit: &threshold}
	c.serin.Spec.Analysis = a
	t := target.Template(v1alpha1.KindAnalysisTemplate, target.Meta(c.object, c.object.Name()))
	for _, m := range f.At("metrics").Items() {
		switch m.At("name").Text() {
		case "request-success-rate":
			c.successRate(m, a)
		case "request-duration":
			c.duration(m, a)
		default:
			if metric := c.metric(m, interval, threshold); metric != nil {
				t.Spec.Metrics = append(t.Spec.Metrics, *metric)
			}
		}
	}
	if n := len(t.Spec.Metrics); n > target.MostMetrics {
		f.At("metrics").Fail("has %d metrics with queries: at most %d are possible, so remove some", n, target.MostMetrics)
	}
	if len(t.Spec.Metrics) == 0 {
		return
	}
	c.made = append(c.made, t)
	a.TemplateRefs = []v1alpha1.TemplateReference{{Name: t.Name, Kind: v1alpha1.KindAnalysisTemplate}}
	f.At("metrics").Note(source.Differs, "queries of a Prometheus are confined to series with the label namespace=%q: where yours have none, write a ClusterAnalysisTemplate", c.object.Namespace())
}

// window is that of the built-in metrics.
func window(m source.Field) { m.At("interval").Read() }

func (c *canary) successRate(m source.Field, a *v1alpha1.Analysis) {
	window(m)
	lowest := m.At("thresholdRange", "min")
	if !lowest.Present() {
		lowest = m.At("threshold")
	}
	if n := lowest.Number(); n < 0 || n > 100 {
		lowest.Fail("%v is not a percentage: write 0 to 100", n)
	} else if n > 0 {
		a.MinSuccessRate = v1alpha1.Percent(target.Decimal(n)) + "%"
	}
	m.At("name").Note(source.Differs, "is measured by what Serin's proxies count, or by TrafficMetrics with another router; beside it the canary is compared with stable")
}

func (c *canary) duration(m source.Field, a *v1alpha1.Analysis) {
	window(m)
	most := m.At("thresholdRange", "max")
	if !most.Present() {
		most = m.At("threshold")
	}
	if n := most.Number(); n >= 1 {
		a.MaxLatency = []v1alpha1.LatencyLimit{{Quantile: "p99", Max: target.Duration(time.Duration(n) * time.Millisecond)}}
	} else if most.Present() {
		most.Fail("%v is not a time in milliseconds: write 1 or more", n)
	}
}

// metric is one that a query measures; nil when it has no equivalent.
func (c *canary) metric(m source.Field, interval time.Duration, threshold int32) *v1alpha1.Metric {
	name := target.Name(m.At("name").Text(), target.LongestMetric)
	every := min(max(interval, 5*time.Second), time.Hour)
	metric := &v1alpha1.Metric{MetricSettings: v1alpha1.MetricSettings{Name: name, Interval: target.Duration(every), ConsecutiveFailureLimit: &threshold}}
	if lowest := m.At("thresholdRange", "min"); lowest.Present() {
		metric.Min = target.Decimal(lowest.Number())
	}
	if highest := m.At("thresholdRange", "max"); highest.Present() {
		metric.Max = target.Decimal(highest.Number())
	} else if old := m.At("threshold"); old.Present() {
		metric.Max = target.Decimal(old.Number())
	}
	if metric.Min == "" && metric.Max == "" {
		m.At("thresholdRange").Missing("write min or max, or both")
	}
	vars := c.variables(m, windowOf(m))
	query, ref := m.At("query"), m.At("templateRef")
	if query.Present() {
		metric.Provider.Type, metric.Provider.Prometheus = v1alpha1.ProviderPrometheus, &v1alpha1.PrometheusQuery{Query: c.fill(query, vars)}
		return c.atServer(m, metric)
	}
	namespace := ref.At("namespace").Text()
	if namespace == "" {
		namespace = c.object.Namespace()
	}
	t := c.set.Find(Group, "MetricTemplate", namespace, ref.At("name").Text())
	if t == nil {
		ref.At("name").Fail("the MetricTemplate %s in the namespace %s was not given: give its file too, or remove the metric", ref.At("name").Text(), namespace)
		return nil
	}
	defer t.Finish(knownInTemplate)
	return c.measured(m, t, metric, vars)
}

// windowOf is the time that a query looks back.
func windowOf(m source.Field) string {
	if w := m.At("interval").Text(); w != "" {
		return w
	}
	return "1m"
}

// measured fills in the provider of a template.
func (c *canary) measured(m source.Field, t *source.Object, metric *v1alpha1.Metric, vars map[string]string) *v1alpha1.Metric {
	spec := t.Field("spec")
	provider := spec.At("provider")
	address, query := v1alpha1.URL(provider.At("address").Text()), c.fill(spec.At("query"), vars)
	secret := provider.At("secretRef", "name")
	p := &metric.Provider
	switch kind := provider.At("type").Text(); kind {
	case "prometheus":
		p.Type, p.Prometheus = v1alpha1.ProviderPrometheus, &v1alpha1.PrometheusQuery{Address: address, Query: query}
		if secret.Present() {
			p.Prometheus.CredentialsRef = &v1alpha1.CredentialsReference{Name: secret.Text()}
			note(secret, c.object.Namespace(), "token; a name and a password are not sent")
		}
		return c.atServer(m, metric)
	case "datadog":
		p.Type, p.Datadog = v1alpha1.ProviderDatadog, &v1alpha1.DatadogQuery{Address: address, Query: query, CredentialsRef: &v1alpha1.CredentialsReference{Name: secret.Text()}}
		note(secret, c.object.Namespace(), "apiKey and appKey")
	case "graphite":
		p.Type, p.Graphite = v1alpha1.ProviderGraphite, &v1alpha1.GraphiteQuery{Address: address, Target: strings.TrimPrefix(query, "target=")}
		if secret.Present() {
			p.Graphite.CredentialsRef = &v1alpha1.CredentialsReference{Name: secret.Text()}
			note(secret, c.object.Namespace(), "username and password")
		}
	case "influxdb", "newrelic", "cloudwatch":
		m.Note(source.NoEqual, "Serin's provider for %s needs what the MetricTemplate does not say (an organization, an account, or one expression): write the metric by hand. The metric is left out", kind)
		provider.Read()
		return nil
	case "stackdriver", "dynatrace", "keptn", "splunk", "externalmetrics":
		m.Note(source.NoEqual, "Serin does not ask %s: use the provider web or job. The metric is left out", kind)
		provider.Read()
		return nil
	default:
		provider.At("type").Fail("is %q, which is not a provider that is known here: correct it", kind)
	}
	return metric
}

func note(secret source.Field, namespace, keys string) {
	secret.Note(source.ToDo, "the Secret has to be in the namespace %s, with the keys %s; its annotation serin.dev/allowed-hosts has to name the host it goes to, and a Role has to let the operator read it", namespace, keys)
}

// atServer is a metric of a Prometheus whose address is known; nil when it is not.
func (c *canary) atServer(m source.Field, metric *v1alpha1.Metric) *v1alpha1.Metric {
	p := metric.Provider.Prometheus
	if p.Address == "" {
		p.Address = v1alpha1.URL(c.object.Field("spec", "metricsServer").Text())
	}
	if p.Address == "" {
		m.Note(source.NoEqual, "the address of the Prometheus is in the settings of Flagger: write it in the MetricTemplate. The metric is left out")
		return nil
	}
	return metric
}

var variable = regexp.MustCompile(`\{\{\s*([a-z]+(?:\.[-A-Za-z0-9_]+)?)\s*\}\}`)

// fill fills a query in: each Canary has a template of its own, so that its values are known.
func (c *canary) fill(f source.Field, vars map[string]string) string {
	text := variable.ReplaceAllStringFunc(f.Text(), func(s string) string {
		name := variable.FindStringSubmatch(s)[1]
		value, known := vars[name]
		if !known {
			f.Fail("names {{ %s }}, which is not one of %s: correct it, or add it to templateVariables", name, strings.Join(names(vars), ", "))
		}
		if name == "target" || name == "name" {
			f.Note(source.ToDo, "%q selects the pods of both versions in Serin: add a label for the version, with an argument that has field: CanaryRevision (the label pod-template-hash) or CanaryService", value)
		}
		return value
	})
	return strings.TrimSpace(text)
}
