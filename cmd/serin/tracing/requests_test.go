// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

func recorder(t *testing.T) (*Traces, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	traces := New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { _ = traces.Stop(context.WithoutCancel(t.Context())) })
	return traces, spans
}

// server keeps the headers of what it is asked, by the query of the request.
func server(t *testing.T, status int) (address string, traceparents *[]string) {
	t.Helper()
	traceparents = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*traceparents = append(*traceparents, r.Header.Get("traceparent"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL, traceparents
}

func names(spans *tracetest.SpanRecorder) (all []string) {
	for _, s := range spans.Ended() {
		all = append(all, s.Name())
	}
	return all
}

func TestRequestsToTheAPIServerBelongToTheirReconcile(t *testing.T) {
	traces, spans := recorder(t)
	address, traceparents := server(t, http.StatusOK)
	config := &rest.Config{Host: address}
	traces.API(config)
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := cluster.CoreV1().ConfigMaps("shop")
	ctx := traces.Into(t.Context())
	if _, err := maps.Get(ctx, "of-no-reconcile", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = tracing.Reconciler("rollout", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if _, err := maps.Patch(ctx, "a", types.ApplyPatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "serin"}, "status"); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, cluster.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	})).Reconcile(ctx, reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"patch configmaps/status", "GET", "reconcile rollout"}; !slices.Equal(names(spans), want) {
		t.Fatalf("spans %q, want %q", names(spans), want)
	}
	ended := spans.Ended()
	root, patch := ended[2].SpanContext(), ended[0]
	if patch.Parent().SpanID() != root.SpanID() {
		t.Error("the request is not below the reconcile")
	}
	want := "00-" + root.TraceID().String() + "-" + patch.SpanContext().SpanID().String() + "-01"
	if got := *traceparents; len(got) != 3 || got[0] != "" || got[1] != want {
		t.Errorf("the API server was told %q, want nothing and %s", got, want)
	}
}

func TestOnlyTheClustersOwnSystemsAreToldOfTraces(t *testing.T) {
	loopback := egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for name, tell := range map[string]bool{"what a tenant names": false, "what a cluster admin names": true} {
		t.Run(name, func(t *testing.T) {
			traces, spans := recorder(t)
			address, traceparents := server(t, http.StatusForbidden)
			client := traces.Outbound(egress.NewClient(loopback, egress.Options{Timeout: time.Minute}), tell)
			ctx, parent := tracing.Start(traces.Into(t.Context()), "measure")
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/services/a-secret?key=a-secret", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			parent.End()
			ended := spans.Ended()
			if len(ended) != 2 || ended[0].Name() != http.MethodGet || ended[0].Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Fatalf("spans %q", names(spans))
			}
			told := (*traceparents)[0]
			if has := strings.Contains(told, parent.SpanContext().TraceID().String()); has != tell || told != "" && !tell {
				t.Errorf("told %q, want %t", told, tell)
			}
			if request.Header.Get("traceparent") != "" {
				t.Error("the request of the caller was changed")
			}
			want := map[string]string{"http.request.method": "GET", "server.address": strings.TrimPrefix(address, "http://"), "http.response.status_code": "403"}
			for _, a := range ended[0].Attributes() {
				if got := a.Value.String(); want[string(a.Key)] != got {
					t.Errorf("%s = %q", a.Key, got)
				}
				delete(want, string(a.Key))
			}
			if len(want) > 0 || ended[0].Status().Description != "Forbidden" {
				t.Errorf("lacks %v, status %v", want, ended[0].Status())
			}
		})
	}
}

func TestARequestThatFailsIsRecordedWithoutItsURL(t *testing.T) {
	traces, spans := recorder(t)
	client := traces.Outbound(egress.NewClient(egress.Policy{}, egress.Options{Timeout: time.Minute}), false)
	ctx, parent := tracing.Start(traces.Into(t.Context()), "measure")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1/services/a-secret", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
		t.Fatal("loopback was reached")
	}
	parent.End()
	why := spans.Ended()[0].Status().Description
	if !strings.Contains(why, "loopback") || strings.Contains(why, "secret") {
		t.Errorf("it failed because %q", why)
	}
}

type measurer struct{ err error }

func (m measurer) Measure(context.Context, time.Time) (source.Sample, error) {
	return source.Sample{}, m.err
}

func TestMeasurementsAreTracesOfTheirOwn(t *testing.T) {
	traces, spans := recorder(t)
	gone := &source.MissingError{Reason: source.Unreachable, Message: "no HTTP answer"}
	build := traces.Metrics(func(resolve.Metric) (source.Measurer, error) { return measurer{gone}, nil })
	m, err := build(resolve.Metric{
		Name: "latency", Provider: v1alpha1.MetricProvider{Type: v1alpha1.ProviderPrometheus},
		Release: resolve.Release{Namespace: "shop", Name: "website", CanaryRevision: "5d4f"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Measure(traces.Into(t.Context()), time.Unix(0, 0)); err != gone { //nolint:errorlint // the same one
		t.Errorf("got %v", err)
	}
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "measure" || !strings.Contains(ended[0].Status().Description, "no HTTP answer") {
		t.Fatalf("spans %q", names(spans))
	}
	want := map[string]string{
		"k8s.namespace.name": "shop", "k8s.object.name": "website", "serin.release.revision": "5d4f", "serin.metric": "latency", "serin.provider": string(v1alpha1.ProviderPrometheus),
	}
	for _, a := range ended[0].Attributes() {
		if want[string(a.Key)] != a.Value.String() {
			t.Errorf("%s = %q", a.Key, a.Value.String())
		}
		delete(want, string(a.Key))
	}
	if len(want) > 0 {
		t.Errorf("lacks %v", want)
	}
}

func TestWithoutTracesNothingIsWrapped(t *testing.T) {
	var off *Traces
	config := &rest.Config{}
	off.API(config)
	client := &http.Client{}
	if config.WrapTransport != nil || off.Outbound(client, true).Transport != nil || off.Into(t.Context()) != t.Context() {
		t.Error("something is wrapped")
	}
	m, err := off.Metrics(func(resolve.Metric) (source.Measurer, error) { return measurer{}, nil })(resolve.Metric{})
	if _, plain := m.(measurer); err != nil || !plain {
		t.Errorf("a measurement is wrapped: %T %v", m, err)
	}
	if err := off.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
