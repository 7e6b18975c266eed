// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// Into returns a context in which controllers and what runs in the background record spans.
func (t *Traces) Into(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return tracing.Into(ctx, t.tracer)
}

// API has the requests to the API server recorded that belong to a trace: no watches, and no
// renewals of the lease. They carry the trace's ID, for an API server that records spans too.
func (t *Traces) API(config *rest.Config) {
	if t == nil {
		return
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}),
			otelhttp.WithSpanNameFormatter(apiRequest), otelhttp.WithFilter(recorded))
	})
}

func recorded(r *http.Request) bool { return trace.SpanFromContext(r.Context()).IsRecording() }

var apiRequests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// apiRequest is the verb and the resource of a request, such as "patch rollouts/status".
func apiRequest(_ string, r *http.Request) string {
	info, err := apiRequests.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return r.Method
	}
	name := info.Verb + " " + info.Resource
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return name
}

// Metrics has each measurement of a metric recorded.
func (t *Traces) Metrics(build metrics.Builder) metrics.Builder {
	if t == nil {
		return build
	}
	return func(m resolve.Metric) (source.Measurer, error) {
		measurer, err := build(m)
		if err != nil {
			return nil, err
		}
		return measured{Measurer: measurer, metric: m}, nil
	}
}

type measured struct {
	source.Measurer
	metric resolve.Metric
}

func (m measured) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	of := m.metric.Release
	ctx, span := tracing.Background(ctx, "measure", types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	tracing.Note(ctx, tracing.Revision, of.CanaryRevision)
	tracing.Note(ctx, "serin.metric", m.metric.Name)
	tracing.Note(ctx, "serin.provider", string(m.metric.Provider.Type))
	sample, err := m.Measurer.Measure(ctx, at)
	tracing.End(span, err)
	return sample, err
}

// Outbound has the requests recorded that a client makes in a trace. With tell they carry the
// trace's ID: only for systems of the cluster's own. For a tenant, it would say when the operator
// records, and let them add spans to its traces.
func (t *Traces) Outbound(client *http.Client, tell bool) *http.Client {
	if t != nil {
		client.Transport = outbound{next: client.Transport, tell: tell}
	}
	return client
}

type outbound struct {
	next http.RoundTripper
	tell bool
}

func (o outbound) RoundTrip(r *http.Request) (*http.Response, error) {
	if !recorded(r) {
		return o.next.RoundTrip(r)
	}
	ctx, span := tracing.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), tracing.Host.String(r.URL.Host)))
	defer span.End()
	if o.tell {
		r = r.Clone(ctx)
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	began := time.Now()
	response, err := o.next.RoundTrip(r)
	if err != nil {
		span.SetStatus(codes.Error, egress.Describe(err, time.Since(began))) // it quotes nothing
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, http.StatusText(response.StatusCode))
	}
	return response, nil
}
