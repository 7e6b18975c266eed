// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/analysis/source/traffic"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

func providers(objects ...client.Object) Providers {
	api := fake.NewClientBuilder().WithObjects(objects...).Build()
	return Providers{
		Caller: sourcetest.Caller(5 * time.Second), Reader: api, Writer: api, Clock: clocktesting.NewFakePassiveClock(sourcetest.Now), ServiceAccount: "serin/serin",
		Traffic: func(resolve.Release) traffic.Windows {
			return func(time.Time) ([]analysis.Window, analysis.Health) { return nil, analysis.Health{} }
		},
	}
}

func metric(p v1alpha1.MetricProvider) resolve.Metric {
	return resolve.Metric{
		Name: "errors", Provider: p, Interval: time.Minute,
		Stable: map[string]string{"service": "web-stable"}, Canary: map[string]string{"service": "web-canary"},
		Secrets: map[string]v1alpha1.SecretKeyReference{"token": {Name: "api", Key: "token"}, "other": {Name: "api", Key: "other"}},
		Release: resolve.Release{Namespace: "shop", Name: "website", UID: "uid", CanaryRevision: "abc"},
	}
}

func basic(kind v1alpha1.ProviderType, p v1alpha1.BasicProviders) v1alpha1.MetricProvider {
	return v1alpha1.MetricProvider{Type: kind, BasicProviders: p}
}

var credentials = v1alpha1.CredentialsReference{Name: "api"}

// every is a query of each kind of provider.
func every() map[v1alpha1.ProviderType]v1alpha1.MetricProvider {
	jobTemplate := runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c"}]}}}}`)}
	return map[v1alpha1.ProviderType]v1alpha1.MetricProvider{
		v1alpha1.ProviderTrafficMetrics: basic("", v1alpha1.BasicProviders{TrafficMetrics: &v1alpha1.TrafficMetricsQuery{Quantity: v1alpha1.QuantityP99}}),
		v1alpha1.ProviderPrometheus:     basic("", v1alpha1.BasicProviders{Prometheus: &v1alpha1.PrometheusQuery{Address: "http://p", Query: `up{x="{{args.service}}"}`}}),
		v1alpha1.ProviderWeb:            basic("", v1alpha1.BasicProviders{Web: &v1alpha1.WebQuery{URL: "http://w/{{args.service}}", JSONPath: "{.a}"}}),
		v1alpha1.ProviderJob:            basic("", v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{Template: jobTemplate}}),
		v1alpha1.ProviderDatadog:        {Datadog: &v1alpha1.DatadogQuery{Address: "https://d", Query: "avg:x{service:{{args.service}}}", CredentialsRef: &credentials}},
		v1alpha1.ProviderCloudWatch:     {CloudWatch: &v1alpha1.CloudWatchQuery{Region: "eu-central-1", Expression: "{{args.service}}", CredentialsRef: &credentials}},
		v1alpha1.ProviderNewRelic:       {NewRelic: &v1alpha1.NewRelicQuery{Address: "https://n", AccountID: 1, Query: "{{args.service}}", CredentialsRef: &credentials}},
		v1alpha1.ProviderGraphite:       {Graphite: &v1alpha1.GraphiteQuery{Address: "http://g", Target: "{{args.service}}"}},
		v1alpha1.ProviderInfluxDB:       {InfluxDB: &v1alpha1.InfluxDBQuery{Address: "http://i", Organization: "o", Query: "{{args.service}}", CredentialsRef: &credentials}},
	}
}

func TestEveryProviderCanBeMeasured(t *testing.T) {
	for kind, p := range every() {
		p.Type = kind
		if m, err := providers().Build(metric(p)); err != nil || m == nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := providers().Build(metric(v1alpha1.MetricProvider{Type: kind})); err == nil {
			t.Errorf("%s is measured without a query", kind)
		}
	}
	if len(every()) != len(builders) {
		t.Errorf("%d of %d providers are tried", len(every()), len(builders))
	}
}

func TestMistakesNameTheFieldOfTheProvider(t *testing.T) {
	for name, test := range map[string]struct {
		kind   v1alpha1.ProviderType
		change func(*v1alpha1.MetricProvider)
		want   string
	}{
		"an unknown provider":      {"wavefront", func(*v1alpha1.MetricProvider) {}, `type: "wavefront" is not a provider`},
		"an unknown quantity":      {v1alpha1.ProviderTrafficMetrics, func(p *v1alpha1.MetricProvider) { p.TrafficMetrics.Quantity = "P42" }, "quantity: "},
		"a query that is none":     {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Query = "(" }, "query: is not PromQL"},
		"a Secret in PromQL":       {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Query = `up{x="{{args.token}}"}` }, "query: the argument token is from a Secret"},
		"an age that is none":      {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.MaxAge = "x" }, "maxAge: "},
		"a range that is none":     {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Range = &v1alpha1.QueryRange{Over: "x"} }, "range.over: "},
		"a step that is none":      {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Range = &v1alpha1.QueryRange{Over: "1m", Step: "x"} }, "range.step: "},
		"a reduction that is none": {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Range = &v1alpha1.QueryRange{Over: "1m", Step: "10s"} }, "range.reduce: "},
		"a Secret in a URL":        {v1alpha1.ProviderWeb, func(p *v1alpha1.MetricProvider) { p.Web.URL = "http://w/{{args.token}}" }, "url: the argument token is from a Secret"},
		"two Secrets in a header": {v1alpha1.ProviderWeb, func(p *v1alpha1.MetricProvider) {
			p.Web.Headers = []v1alpha1.WebHeader{{Name: "a", Value: "{{args.token}}{{args.other}}"}}
		}, "headers[0].value: has the arguments token and other"},
		"no argument in a header": {v1alpha1.ProviderWeb, func(p *v1alpha1.MetricProvider) {
			p.Web.Headers = []v1alpha1.WebHeader{{Name: "a", Value: "{{args.x}}"}}
		}, "headers[0].value: there is no argument x"},
		"a Job that is none":          {v1alpha1.ProviderJob, func(p *v1alpha1.MetricProvider) { p.Job.Template.Raw = []byte("{}") }, "template.spec"},
		"a Secret for Datadog":        {v1alpha1.ProviderDatadog, func(p *v1alpha1.MetricProvider) { p.Datadog.Query = "{{args.token}}" }, "query: the argument token is from a Secret"},
		"a window of Datadog":         {v1alpha1.ProviderDatadog, func(p *v1alpha1.MetricProvider) { p.Datadog.Window = "x" }, "window: "},
		"a Secret for CloudWatch":     {v1alpha1.ProviderCloudWatch, func(p *v1alpha1.MetricProvider) { p.CloudWatch.Expression = "{{args.token}}" }, "expression: the argument token is from a Secret"},
		"a window of CloudWatch":      {v1alpha1.ProviderCloudWatch, func(p *v1alpha1.MetricProvider) { p.CloudWatch.Window = "x" }, "window: "},
		"a period of CloudWatch":      {v1alpha1.ProviderCloudWatch, func(p *v1alpha1.MetricProvider) { p.CloudWatch.Period = "x" }, "period: "},
		"a Secret for New Relic":      {v1alpha1.ProviderNewRelic, func(p *v1alpha1.MetricProvider) { p.NewRelic.Query = "{{args.token}}" }, "query: the argument token is from a Secret"},
		"a Secret for Graphite":       {v1alpha1.ProviderGraphite, func(p *v1alpha1.MetricProvider) { p.Graphite.Target = "{{args.token}}" }, "target: the argument token is from a Secret"},
		"a window of Graphite":        {v1alpha1.ProviderGraphite, func(p *v1alpha1.MetricProvider) { p.Graphite.Window = "x" }, "window: "},
		"a Secret for InfluxDB":       {v1alpha1.ProviderInfluxDB, func(p *v1alpha1.MetricProvider) { p.InfluxDB.Query = "{{args.token}}" }, "query: the argument token is from a Secret"},
		"an age of InfluxDB":          {v1alpha1.ProviderInfluxDB, func(p *v1alpha1.MetricProvider) { p.InfluxDB.MaxAge = "x" }, "maxAge: "},
		"counters and a query at all": {v1alpha1.ProviderPrometheus, func(p *v1alpha1.MetricProvider) { p.Prometheus.Counters = &v1alpha1.CounterQuery{Requests: "a"} }, "needs exactly one of"},
	} {
		t.Run(name, func(t *testing.T) {
			p := every()[test.kind]
			p.Type = test.kind
			test.change(&p)
			if _, err := providers().Build(metric(p)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyTrustedQueriesLookBeyondTheNamespace(t *testing.T) {
	var asked string
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	})
	for trusted, want := range map[bool]string{false: `up{namespace="shop",x="web-canary"}`, true: `up{x="web-canary"}`} {
		p := every()[v1alpha1.ProviderPrometheus]
		p.Type, p.Prometheus.Address = v1alpha1.ProviderPrometheus, v1alpha1.URL(address)
		of := metric(p)
		of.Trusted = trusted
		m, err := providers().Build(of)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Measure(t.Context(), sourcetest.Now); err != nil || asked != want {
			t.Errorf("trusted %v: asked %s, %v", trusted, asked, err)
		}
	}
}

func TestASecretGoesIntoItsHeaderOnly(t *testing.T) {
	var got string
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"a":1}`)
	})
	p := basic(v1alpha1.ProviderWeb, v1alpha1.BasicProviders{Web: &v1alpha1.WebQuery{
		URL: v1alpha1.URL(address), JSONPath: "{.a}", Headers: []v1alpha1.WebHeader{{Name: "Authorization", Value: "Bearer {{args.token}} {{args.service}}"}},
	}})
	of := metric(p)
	of.Canary["service"] = "a{{secret}}b" // an argument can't stand for the Secret
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", Annotations: map[string]string{"serin.dev/allowed-hosts": "127.0.0.1"}}, Data: map[string][]byte{"token": []byte("t0ken")}}
	m, err := providers(secret).Build(of)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Measure(t.Context(), sourcetest.Now); err != nil || got != "Bearer t0ken ab" {
		t.Errorf("sent %q, %v", got, err)
	}
	elsewhere := secret.DeepCopy()
	elsewhere.Namespace, elsewhere.ResourceVersion = "else", ""
	if m, err = providers(elsewhere).Build(of); err != nil {
		t.Fatal(err)
	}
	got = ""
	_, err = m.Measure(t.Context(), sourcetest.Now)
	var missing *source.MissingError
	if !errors.As(err, &missing) || missing.Reason != source.Credentials || got != "" {
		t.Errorf("sent %q, %v", got, err)
	}
}

func TestTheCredentialsOfEveryProviderAreReadFromItsSecret(t *testing.T) {
	for kind, want := range map[v1alpha1.ProviderType]string{
		v1alpha1.ProviderDatadog: "apiKey", v1alpha1.ProviderCloudWatch: "accessKeyID", v1alpha1.ProviderNewRelic: "apiKey",
		v1alpha1.ProviderGraphite: "username", v1alpha1.ProviderInfluxDB: "token", v1alpha1.ProviderPrometheus: "token",
	} {
		p := every()[kind]
		p.Type = kind
		switch kind {
		case v1alpha1.ProviderGraphite:
			p.Graphite.CredentialsRef = &credentials
		case v1alpha1.ProviderPrometheus:
			p.Prometheus.CredentialsRef = &credentials
		default:
		}
		empty := allKeys("p, d, n, g, i, *.amazonaws.com")
		empty.Data = nil
		m, err := providers(empty).Build(metric(p))
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Measure(t.Context(), sourcetest.Now)
		sourcetest.WantMissing(t, s, err, source.Credentials)
		if !strings.Contains(err.Error(), `no key "`+want+`"`) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
