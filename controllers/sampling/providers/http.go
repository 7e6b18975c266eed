// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/cloudwatch"
	"github.com/serin-dev/serin/analysis/source/datadog"
	"github.com/serin-dev/serin/analysis/source/graphite"
	"github.com/serin-dev/serin/analysis/source/influxdb"
	"github.com/serin-dev/serin/analysis/source/newrelic"
	"github.com/serin-dev/serin/analysis/source/prometheus"
	"github.com/serin-dev/serin/analysis/source/web"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// duration reads a duration that may be unset.
func duration(field string, d v1alpha1.Duration, otherwise time.Duration) (time.Duration, error) {
	if d == "" {
		return otherwise, nil
	}
	v, err := d.Parse()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return v, nil
}

// noSecret refuses arguments that come from Secrets: a query may be logged by who it is
// sent to, and shown.
func (r request) noSecret(field string, texts ...string) error {
	for _, text := range texts {
		for _, name := range args.Names(text) {
			if _, secret := r.metric.Secrets[name]; secret {
				return fmt.Errorf("%s: the argument %s is from a Secret, which can only be in web.headers", field, name)
			}
		}
	}
	return nil
}

func buildPrometheus(r request, q *v1alpha1.PrometheusQuery) (source.Measurer, error) {
	query := prometheus.Query{
		Address: string(q.Address), Bearer: key(q.CredentialsRef, keyToken), PromQL: q.Query,
		Stable: r.scope(r.metric.Stable), Canary: r.scope(r.metric.Canary),
	}
	texts := []string{q.Query}
	if c := q.Counters; c != nil {
		query.Counters = &prometheus.Counters{Requests: c.Requests, Failures: c.Failures, Latency: c.Latency}
		texts = append(texts, c.Requests, c.Failures, c.Latency)
	}
	if err := r.noSecret("query", texts...); err != nil {
		return nil, err
	}
	var err error
	if query.MaxAge, err = duration("maxAge", q.MaxAge, 0); err != nil {
		return nil, err
	}
	if query.Range, err = stretch(q.Range); err != nil {
		return nil, fmt.Errorf("range.%w", err)
	}
	return prometheus.New(r.Caller, r.secrets, query)
}

func (r request) scope(values map[string]string) prometheus.Scope {
	s := prometheus.Scope{Args: values, NamespaceLabel: r.NamespaceLabel}
	if !r.metric.Trusted {
		s.Namespace = r.metric.Release.Namespace
	}
	return s
}

func stretch(q *v1alpha1.QueryRange) (*prometheus.Range, error) {
	if q == nil {
		return nil, nil
	}
	over, err := duration("over", q.Over, 0)
	if err != nil {
		return nil, err
	}
	step, err := duration("step", q.Step, 0)
	if err != nil {
		return nil, err
	}
	return &prometheus.Range{Over: over, Step: step, Reduce: prometheus.Reduction(q.Reduce)}, nil
}

func buildWeb(r request, q *v1alpha1.WebQuery) (source.Measurer, error) {
	if err := r.noSecret("url", string(q.URL)); err != nil {
		return nil, err
	}
	query := web.Query{URL: string(q.URL), JSONPath: q.JSONPath, Args: r.metric.Canary, Confined: !r.metric.Trusted}
	for i, h := range q.Headers {
		header, err := r.header(h)
		if err != nil {
			return nil, fmt.Errorf("headers[%d].value: %w", i, err)
		}
		query.Headers = append(query.Headers, header)
	}
	return web.New(r.Caller, r.secrets, query)
}

// header fills the arguments in, but for the one from a Secret, whose value is read when
// it is sent.
func (r request) header(h v1alpha1.WebHeader) (web.Header, error) {
	header := web.Header{Name: h.Name}
	values := map[string]string{}
	var from []string
	for name, value := range r.metric.Canary {
		// Else a value could stand for the Secret.
		values[name] = strings.ReplaceAll(value, web.SecretPlace, "")
	}
	for _, name := range args.Names(h.Value) {
		if ref, secret := r.metric.Secrets[name]; secret {
			values[name] = web.SecretPlace
			header.Secret = source.SecretKey{Name: ref.Name, Key: ref.Key}
			if !slices.Contains(from, name) {
				from = append(from, name)
			}
		}
	}
	if len(from) > 1 {
		return header, fmt.Errorf("has the arguments %s, all from Secrets; put each into a header of its own", strings.Join(from, " and "))
	}
	var err error
	header.Value, err = args.Expand(h.Value, values, args.Verbatim)
	return header, err
}

func buildDatadog(r request, q *v1alpha1.DatadogQuery) (source.Measurer, error) {
	window, err := duration("window", q.Window, 5*time.Minute)
	if err == nil {
		err = r.noSecret("query", q.Query)
	}
	if err != nil {
		return nil, err
	}
	return datadog.New(r.Caller, r.secrets, datadog.Query{
		Address: string(q.Address), Query: q.Query, Args: r.metric.Canary, Window: window,
		APIKey: key(q.CredentialsRef, keyAPIKey), AppKey: key(q.CredentialsRef, keyAppKey),
	})
}

func buildCloudWatch(r request, q *v1alpha1.CloudWatchQuery) (source.Measurer, error) {
	window, err := duration("window", q.Window, 10*time.Minute)
	if err != nil {
		return nil, err
	}
	period, err := duration("period", q.Period, time.Minute)
	if err == nil {
		err = r.noSecret("expression", q.Expression)
	}
	if err != nil {
		return nil, err
	}
	query := cloudwatch.Query{
		Region: q.Region, Address: string(q.Address), Expression: q.Expression, Args: r.metric.Canary, Period: period, Window: window,
		AccessKeyID: key(q.CredentialsRef, keyAccessKeyID), SecretAccessKey: key(q.CredentialsRef, keySecretAccessKey),
	}
	if q.TemporaryCredentials {
		query.SessionToken = key(q.CredentialsRef, keySessionToken)
	}
	return cloudwatch.New(r.Caller, r.secrets, query)
}

func buildNewRelic(r request, q *v1alpha1.NewRelicQuery) (source.Measurer, error) {
	if err := r.noSecret("query", q.Query); err != nil {
		return nil, err
	}
	return newrelic.New(r.Caller, r.secrets, newrelic.Query{
		Address: string(q.Address), AccountID: q.AccountID, NRQL: q.Query, Args: r.metric.Canary, APIKey: key(q.CredentialsRef, keyAPIKey),
	})
}

func buildGraphite(r request, q *v1alpha1.GraphiteQuery) (source.Measurer, error) {
	window, err := duration("window", q.Window, 5*time.Minute)
	if err == nil {
		err = r.noSecret("target", q.Target)
	}
	if err != nil {
		return nil, err
	}
	return graphite.New(r.Caller, r.secrets, graphite.Query{
		Address: string(q.Address), Target: q.Target, Args: r.metric.Canary, Window: window,
		Username: key(q.CredentialsRef, keyUsername), Password: key(q.CredentialsRef, keyPassword),
	})
}

func buildInfluxDB(r request, q *v1alpha1.InfluxDBQuery) (source.Measurer, error) {
	maxAge, err := duration("maxAge", q.MaxAge, 5*time.Minute)
	if err == nil {
		err = r.noSecret("query", q.Query)
	}
	if err != nil {
		return nil, err
	}
	return influxdb.New(r.Caller, r.secrets, influxdb.Query{
		Address: string(q.Address), Organization: q.Organization, Flux: q.Query, Args: r.metric.Canary, MaxAge: maxAge,
		Token: key(q.CredentialsRef, keyToken),
	})
}
