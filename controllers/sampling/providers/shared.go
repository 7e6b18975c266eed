// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"errors"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// shared has a metric measured at its ClusterMetricProvider: the address, the
// credentials and the label that confines it come from there, whatever the metric says.
func (p Providers) shared(m resolve.Metric) (Providers, resolve.Metric, error) {
	of := m.Shared
	switch {
	case of == nil || of.Type != m.Provider.Type:
		return p, m, errors.New("names no ClusterMetricProvider of this type; correct it")
	case p.Shared == nil || p.ServiceAccount == "":
		return p, m, errors.New("this operator uses no ClusterMetricProviders; give an address")
	}
	p.Caller = p.Shared
	if of.NamespaceLabel != "" {
		p.NamespaceLabel = of.NamespaceLabel
	}
	m.Provider = *m.Provider.DeepCopy()
	return p, m, redirect(&m.Provider, of)
}

// Addresses of systems that have one for everybody.
const (
	addressDatadog  = "https://api.datadoghq.com"
	addressNewRelic = "https://api.newrelic.com/graphql"
)

// redirect replaces the address and the credentials of a query.
func redirect(p *v1alpha1.MetricProvider, of *v1alpha1.ClusterMetricProviderSpec) error {
	otherwise := func(address v1alpha1.URL) v1alpha1.URL {
		if of.Address != "" {
			return of.Address
		}
		return address
	}
	switch {
	case p.Prometheus != nil:
		p.Prometheus.Address, p.Prometheus.CredentialsRef = of.Address, of.CredentialsRef
	case p.Graphite != nil:
		p.Graphite.Address, p.Graphite.CredentialsRef = of.Address, of.CredentialsRef
	case p.InfluxDB != nil:
		p.InfluxDB.Address, p.InfluxDB.CredentialsRef = of.Address, of.CredentialsRef
	case p.Datadog != nil:
		p.Datadog.Address, p.Datadog.CredentialsRef = otherwise(addressDatadog), of.CredentialsRef
	case p.NewRelic != nil:
		p.NewRelic.Address, p.NewRelic.CredentialsRef = otherwise(addressNewRelic), of.CredentialsRef
	case p.CloudWatch != nil: // each region has its own address
		p.CloudWatch.Address, p.CloudWatch.CredentialsRef = of.Address, of.CredentialsRef
	default:
		return errors.New("is for systems that a ClusterMetricProvider can name; remove it")
	}
	return nil
}
