// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/job"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/providers"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

func TestTheExamplesOfThePageAboutMetricsAreValid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "analysistemplate.md"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		objects, err := decode(block[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetNamespace() != "" {
				o.SetNamespace("default")
			}
			if err := admin.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
			tried++
		}
	}
	if tried < 7 {
		t.Errorf("the page has %d examples", tried)
	}
}

// startMetrics measures under the rights of the chart's service account.
func startMetrics(t *testing.T) *metrics.Loop {
	t.Helper()
	api, err := client.New(managerConfig(t), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	local := egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	p := providers.Providers{
		Caller: &fetch.Caller{HTTP: egress.NewClient(local, egress.Options{Timeout: 5 * time.Second}), UserAgent: "serin/test"},
		Reader: api, Writer: api, Clock: clock.RealClock{}, ServiceAccount: operatorSpace + "/" + release,
	}
	l := metrics.New(p.Build, api, clock.RealClock{}, metrics.Options{WriteEvery: 100 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// awaitObject reads an object until it is as wanted.
func (s *scene) awaitObject(what string, o client.Object, name string, holds func() bool) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, neverAfter, true, func(ctx context.Context) (bool, error) {
		if err := admin.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, o); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return holds(), nil
	})
	if err != nil {
		s.Fatalf("%s: %v; the last was %+v", what, err, o)
	}
}

func TestMetricsAreMeasuredAndReportedUnderTheRightsOfTheChart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"v": 0.5}`)) }))
	t.Cleanup(endpoint.Close)
	ro := &v1alpha1.Rollout{}
	if err := yaml.UnmarshalStrict([]byte(smallest), ro); err != nil {
		t.Fatal(err)
	}
	s.create(ro)
	// The cluster itself ends the Job when its time is over.
	template := []byte(`{"spec":{"activeDeadlineSeconds":1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"example.invalid/test:1"}]}}}}`)
	release := resolve.Release{Namespace: s.namespace, Name: ro.Name, UID: string(ro.UID), CanaryRevision: "abc", CanaryService: "website-canary"}
	measured, err := resolve.Resolve(&v1alpha1.Analysis{Metrics: []v1alpha1.InlineMetric{
		inlineMetric("web", v1alpha1.ProviderWeb, v1alpha1.BasicProviders{Web: &v1alpha1.WebQuery{URL: v1alpha1.URL(endpoint.URL), JSONPath: "{.v}"}}),
		inlineMetric("job", v1alpha1.ProviderJob, v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{Template: runtime.RawExtension{Raw: template}}}),
		inlineMetric("secret", v1alpha1.ProviderPrometheus, v1alpha1.BasicProviders{Prometheus: &v1alpha1.PrometheusQuery{
			Address: v1alpha1.URL(endpoint.URL), Query: "up", CredentialsRef: &v1alpha1.CredentialsReference{Name: "prometheus"},
		}}),
	}}, nil, release)
	if err != nil {
		t.Fatal(err)
	}
	loop := startMetrics(t)
	key := client.ObjectKeyFromObject(ro)
	loop.Watch(key, metrics.Release{Owner: ro.UID, Revision: "abc", Metrics: measured})
	t.Cleanup(func() { loop.Forget(key) })

	j := &batchv1.Job{}
	name := job.Spec{Owner: ro.UID, Revision: "abc", Metric: "job"}.Name("step-0-")
	s.awaitObject("the Job", j, name, func() bool { return metav1.IsControlledBy(j, ro) })
	result := &v1alpha1.AnalysisResult{}
	s.awaitObject("the result", result, ro.Name, func() bool {
		m := result.Status.Metrics
		return len(m) == 3 && m[0].Measured >= 2 && m[1].Measured == 1 && m[2].Missing >= 1
	})
	m := result.Status.Metrics
	if m[0].Measurements[0].Value != "0.5" || m[1].Measurements[len(m[1].Measurements)-1].Value != "0" || !metav1.IsControlledBy(result, ro) {
		t.Errorf("got %+v", result)
	}
	if want := "Serin is not allowed to read it: create a Role in " + s.namespace + " that allows get on the Secret prometheus"; len(m[2].Message) < len(want) || m[2].Message[:len(want)] != want {
		t.Errorf("the message is %q", m[2].Message)
	}
}

func inlineMetric(name string, kind v1alpha1.ProviderType, p v1alpha1.BasicProviders) v1alpha1.InlineMetric {
	m := v1alpha1.InlineMetric{MetricSettings: v1alpha1.MetricSettings{Name: name, Interval: "5s"}, Provider: v1alpha1.InlineProvider{Type: kind, BasicProviders: p}}
	if kind != v1alpha1.ProviderJob {
		m.Max = "1"
	}
	return m
}
