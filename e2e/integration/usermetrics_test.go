// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/traffic"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/providers"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// ahead is the time of the traffic that is made up.
type ahead struct {
	clock.RealClock
	m *measurements
}

func (a ahead) Now() time.Time { return a.m.Now() }

// metricsOf measures the metrics of users at places in this process.
func metricsOf(t *testing.T, mgr ctrl.Manager, m *measurements) *metrics.Loop {
	t.Helper()
	direct := uncached(t, mgr)
	// Longer than a test waits: who waits for an answer that never comes is seen.
	const patience = 10 * time.Minute
	local := egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	p := providers.Providers{
		Caller: &fetch.Caller{HTTP: egress.NewClient(local, egress.Options{Timeout: patience}), UserAgent: "serin/test", Timeout: patience},
		Reader: direct, Writer: direct, Clock: ahead{m: m}, ServiceAccount: operatorSpace + "/" + release,
		Traffic: func(resolve.Release) traffic.Windows {
			return func(time.Time) ([]analysis.Window, analysis.Health) { return nil, analysis.Health{} }
		},
	}
	return metrics.New(p.Build, direct, ahead{m: m}, metrics.Options{WriteEvery: 100 * time.Millisecond})
}

// uncached is a client that watches nothing.
func uncached(t *testing.T, mgr ctrl.Manager) client.Client {
	t.Helper()
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gauge serves one number as JSON, or nothing.
func gauge(t *testing.T) (url string, set func(string)) {
	t.Helper()
	var value atomic.Value
	value.Store(`{"depth": 1}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, value.Load()) }))
	t.Cleanup(server.Close)
	return server.URL, func(s string) { value.Store(s) }
}

// depth is a template that allows a depth of at most ten.
func depth(url string) *v1alpha1.AnalysisTemplate {
	return &v1alpha1.AnalysisTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "depth"},
		Spec: v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{{
			Provider: v1alpha1.MetricProvider{Type: v1alpha1.ProviderWeb, BasicProviders: v1alpha1.BasicProviders{
				Web: &v1alpha1.WebQuery{URL: v1alpha1.URL(url), JSONPath: "{.depth}"},
			}},
			MetricSettings: v1alpha1.MetricSettings{Name: "depth", Max: "10", Interval: "5s", ConsecutiveFailureLimit: new(int32(2))},
		}}},
	}
}

// measured plays until the first step of a release is held that is measured by depth.
func measured(t *testing.T) (*stage, func(string)) {
	t.Helper()
	url, set := gauge(t)
	p := begin(t, func(c *cast) {
		c.rollout.Spec.Analysis = &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "depth"}}}
		c.extras = append(c.extras, depth(url))
	})
	p.release()
	return p, set
}

func TestAReleaseGoesOnOnlyWithANumberOfTheUsers(t *testing.T) {
	t.Parallel()
	p, set := measured(t)
	set(`{}`)
	p.eventually("the number is missing", func(context.Context) bool {
		p.pass(5 * time.Second)
		a := p.rollout().Status.Analysis
		return a != nil && a.Reason == "LimitMissing"
	})
	p.pass(time.Hour)
	p.waitReason(v1alpha1.ReasonWaitingForEvidence)
	set(`{"depth": 3}`)
	p.eventually("the second step is held", func(context.Context) bool {
		p.pass(5 * time.Second)
		st := p.rollout().Status.Step
		return st != nil && st.Index == 1 && st.ProgrammedAt != nil
	})
	p.eventually("the result is on record", func(ctx context.Context) bool {
		r := &v1alpha1.AnalysisResult{}
		return admin.Get(ctx, p.key("website"), r) == nil && len(r.Status.Metrics) == 1 && len(r.Status.Metrics[0].Measurements) > 0
	})
}

func TestANumberOutsideOfItsLimitRollsBack(t *testing.T) {
	t.Parallel()
	p, set := measured(t)
	set(`{"depth": 11}`)
	p.eventually("rolled back", func(context.Context) bool {
		p.pass(5 * time.Second)
		_, reason, _ := ready(p.rollout())
		return reason == v1alpha1.ReasonRolledBack
	})
	if d := p.rollout().Status.Decision; d == nil || d.Reason != "LimitMissed" || !strings.Contains(d.Message, "depth") {
		t.Errorf("decided %+v", d)
	}
	p.comesOutAgain()
}

// comesOutAgain judges the recording of the release that ended last again: with the traffic
// and the numbers that were measured, and the settings of the templates.
func (p *stage) comesOutAgain() {
	p.Helper()
	ended := p.rollout().Status.History[0]
	var text v1alpha1.Recording
	p.eventually("the recording is stored", func(ctx context.Context) bool {
		r := &v1alpha1.AnalysisResult{}
		err := admin.Get(ctx, p.key("website"), r)
		text = r.Status.Recordings[recording.Key(ended.Revision, ended.StartedAt.Time)]
		return err == nil && text != ""
	})
	lines, err := recording.ReadText(string(text))
	if err != nil {
		p.Fatal(err)
	}
	var position recording.Position
	var last recording.Judged
	values := 0
	for i := range lines {
		got, _, err := position.Next(&lines[i])
		if said := lines[i].Judged; err != nil || !said.Same(got) || lines[i].Resume != "" {
			p.Errorf("line %d comes out as %+v, recorded %+v: %v", i+1, got, *said, err)
		}
		last, values = got, values+len(lines[i].Values)
	}
	if last.Verdict != judge.Fail || last.Reason != judge.ReasonLimitMissed || last.Action != policy.RollBack || values < 2 {
		p.Errorf("after %d lines with %d numbers: %+v", len(lines), values, last)
	}
}

func TestATemplateThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	p := begin(t)
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		ro.Spec.Analysis = &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "depth"}}}
	})
	p.waitReason(v1alpha1.ReasonInvalidSpec)
	url, _ := gauge(t)
	p.create(depth(url))
	p.eventually("Ready", func(context.Context) bool { is, _, _ := ready(p.rollout()); return is })
}

func TestARolloutWaitsUntilItsNamespaceMayUseTheSharedProvider(t *testing.T) {
	t.Parallel()
	p := begin(t)
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		ro.Spec.Analysis = &v1alpha1.Analysis{Metrics: []v1alpha1.InlineMetric{inlineMetric("errors", v1alpha1.ProviderPrometheus, v1alpha1.BasicProviders{
			ProviderRef: &v1alpha1.MetricProviderReference{Name: p.namespace}, Prometheus: &v1alpha1.PrometheusQuery{Query: "up"},
		})}}
	})
	says := func(want string) {
		p.eventually(want, func(context.Context) bool {
			_, reason, message := ready(p.rollout())
			return reason == v1alpha1.ReasonInvalidSpec && strings.Contains(message, want)
		})
	}
	says("spec.analysis.metrics[0].provider.providerRef: there is no ClusterMetricProvider " + p.namespace)
	shared := &v1alpha1.ClusterMetricProvider{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: v1alpha1.ClusterMetricProviderSpec{
		Type: v1alpha1.ProviderPrometheus, Address: "http://prometheus.monitoring:9090", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"serin.dev/metrics": "shared"}},
	}}
	if err := admin.Create(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), shared); err != nil {
			t.Error(err)
		}
	})
	says("does not select this namespace")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	if err := admin.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"serin.dev/metrics":"shared"}}}`))); err != nil {
		t.Fatal(err)
	}
	p.eventually("Ready", func(context.Context) bool { is, _, _ := ready(p.rollout()); return is })
}

// A place of measurement that never answers holds nobody up but the release.
func TestAPersonAbortsWhileAPlaceOfMeasurementHangs(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-hanging:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hanging) })
	p := begin(t, func(c *cast) {
		c.rollout.Spec.Analysis = &v1alpha1.Analysis{TemplateRefs: []v1alpha1.TemplateReference{{Name: "depth"}}}
		c.extras = append(c.extras, depth(server.URL))
	})
	p.release()
	revision := p.rollout().Status.Canary.Revision
	change(p.scene, "website", &v1alpha1.Rollout{}, func(ro *v1alpha1.Rollout) {
		ro.Spec.Control = &v1alpha1.Control{Revision: revision, Action: v1alpha1.ControlAbort}
	})
	p.eventually("all traffic is asked back", func(context.Context) bool {
		d := p.rollout().Status.Decision
		return d != nil && d.Action == v1alpha1.ActionRollBack
	})
	p.waitReason(v1alpha1.ReasonRolledBack)
}
