// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/traffic"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/job"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
	"github.com/serin-dev/serin/controllers/secretkey"
)

// Providers makes Measurers. Its fields are not changed once it is used.
type Providers struct {
	// Caller makes HTTP calls, over the client of package egress.
	Caller *fetch.Caller
	// Shared makes those to ClusterMetricProviders, which are not bound to the lists of what
	// tenants may reach.
	Shared *fetch.Caller
	// Reader reads Secrets and Jobs one by one from the API, not from a cache.
	Reader client.Reader
	// Writer makes and deletes Jobs.
	Writer client.Writer
	// Clock tells when a measurement of the own proxies begins.
	Clock clock.PassiveClock
	// Traffic returns the windows of a release.
	Traffic func(resolve.Release) traffic.Windows
	// ServiceAccount of the operator, "namespace/name", for messages.
	ServiceAccount string
	// NamespaceLabel is the label of Prometheus that queries are confined by;
	// "namespace" when empty.
	NamespaceLabel string
}

// Build makes what measures a metric. Its error begins with the field, below that of
// the provider, and says the fix.
func (p Providers) Build(m resolve.Metric) (source.Measurer, error) {
	build, known := builders[m.Provider.Type]
	if !known {
		return nil, fmt.Errorf("type: %q is not a provider; correct it", m.Provider.Type)
	}
	s := secrets{secretkey.Reader{Secrets: p.Reader, Namespace: m.Release.Namespace, ServiceAccount: p.ServiceAccount}}
	if m.Provider.ProviderRef != nil {
		var err error
		if p, m, err = p.shared(m); err != nil {
			return nil, fmt.Errorf("providerRef: %w", err)
		}
		s.Namespace, _, _ = strings.Cut(p.ServiceAccount, "/")
	}
	measurer, err := build(p, m, s)
	if err != nil {
		return nil, err
	}
	return measurer, nil
}

// builder makes the Measurer of one kind of provider.
type builder func(Providers, resolve.Metric, secrets) (source.Measurer, error)

// builders has every kind of provider. A new one is one more line.
var builders = map[v1alpha1.ProviderType]builder{
	v1alpha1.ProviderTrafficMetrics: given(func(m resolve.Metric) *v1alpha1.TrafficMetricsQuery { return m.Provider.TrafficMetrics }, buildTraffic),
	v1alpha1.ProviderPrometheus:     given(func(m resolve.Metric) *v1alpha1.PrometheusQuery { return m.Provider.Prometheus }, buildPrometheus),
	v1alpha1.ProviderWeb:            given(func(m resolve.Metric) *v1alpha1.WebQuery { return m.Provider.Web }, buildWeb),
	v1alpha1.ProviderJob:            given(func(m resolve.Metric) *v1alpha1.JobQuery { return m.Provider.Job }, buildJob),
	v1alpha1.ProviderDatadog:        given(func(m resolve.Metric) *v1alpha1.DatadogQuery { return m.Provider.Datadog }, buildDatadog),
	v1alpha1.ProviderCloudWatch:     given(func(m resolve.Metric) *v1alpha1.CloudWatchQuery { return m.Provider.CloudWatch }, buildCloudWatch),
	v1alpha1.ProviderNewRelic:       given(func(m resolve.Metric) *v1alpha1.NewRelicQuery { return m.Provider.NewRelic }, buildNewRelic),
	v1alpha1.ProviderGraphite:       given(func(m resolve.Metric) *v1alpha1.GraphiteQuery { return m.Provider.Graphite }, buildGraphite),
	v1alpha1.ProviderInfluxDB:       given(func(m resolve.Metric) *v1alpha1.InfluxDBQuery { return m.Provider.InfluxDB }, buildInfluxDB),
}

// request is what a builder needs in addition to the query.
type request struct {
	Providers
	metric  resolve.Metric
	secrets secrets
}

// given calls a builder with the query, which the schema requires but an object that
// slipped past it may lack.
func given[Q any](query func(resolve.Metric) *Q, build func(request, *Q) (source.Measurer, error)) builder {
	return func(p Providers, m resolve.Metric, s secrets) (source.Measurer, error) {
		q := query(m)
		if q == nil {
			return nil, errors.New("query: missing; give the field that type names")
		}
		return build(request{Providers: p, metric: m, secrets: s}, q)
	}
}

func buildTraffic(r request, q *v1alpha1.TrafficMetricsQuery) (source.Measurer, error) {
	if r.Traffic == nil {
		return nil, errors.New("quantity: this operator measures no traffic; use another provider")
	}
	return traffic.New(r.Traffic(r.metric.Release), traffic.Quantity(q.Quantity), r.Clock.Now())
}

func buildJob(r request, q *v1alpha1.JobQuery) (source.Measurer, error) {
	of := r.metric.Release
	return job.New(r.Reader, r.Writer, job.Spec{
		Namespace: of.Namespace, Rollout: of.Name, Owner: types.UID(of.UID), Revision: of.CanaryRevision, Metric: r.metric.Name,
		Template: q.Template, Args: r.metric.Canary, Repeat: q.Repeat, Interval: r.metric.Interval, Step: of.Step, Began: of.Began,
	})
}
