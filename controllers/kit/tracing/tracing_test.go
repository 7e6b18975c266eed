// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "website"}}

// traced is a context whose spans are kept, and whose log is written to a buffer.
func traced(t *testing.T, sampler sdktrace.Sampler) (context.Context, *tracetest.SpanRecorder, *bytes.Buffer) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler))
	written := &bytes.Buffer{}
	logger := funcr.New(func(_, line string) { written.WriteString(line + "\n") }, funcr.Options{})
	return Into(log.IntoContext(t.Context(), logger), provider.Tracer("test")), spans, written
}

// texts are the attributes of a span as texts.
func texts(span sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

type named string

func (n named) String() string { return string(n) }

func TestAReconcileIsOneTrace(t *testing.T) {
	failed := errors.New("the API server is on fire")
	for name, test := range map[string]struct {
		result reconcile.Result
		err    error
		want   string
		status sdktrace.Status
	}{
		"that is over":        {want: "success"},
		"that looks again":    {result: reconcile.Result{RequeueAfter: time.Second}, want: "requeue_after"},
		"that did not work":   {err: failed, want: "error", status: sdktrace.Status{Code: codes.Error, Description: failed.Error()}},
		"that will not do so": {err: reconcile.TerminalError(failed), want: "error", status: sdktrace.Status{Code: codes.Error, Description: "terminal error: " + failed.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, spans, written := traced(t, sdktrace.AlwaysSample())
			r := Reconciler("rollout", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				_, deciding := Start(ctx, "decide")
				deciding.End()
				Note(ctx, Revision, "5d4f")
				Note(ctx, State, "")
				err := Act(ctx, named("scale the canary"), func(ctx context.Context) error {
					log.FromContext(ctx).Info("acting")
					return test.err
				})
				return test.result, err
			}))
			result, err := r.Reconcile(ctx, request)
			if result != test.result || !errors.Is(err, test.err) {
				t.Errorf("got %v %v", result, err)
			}
			ended := spans.Ended()
			if len(ended) != 3 {
				t.Fatalf("%d spans", len(ended))
			}
			decide, act, root := ended[0], ended[1], ended[2]
			want := map[string]string{
				"serin.controller": "rollout", "k8s.namespace.name": "shop", "k8s.object.name": "website", "serin.reconcile.id": "",
				"serin.release.revision": "5d4f", "serin.result": test.want,
			}
			if diff := cmp.Diff(want, texts(root)); diff != "" || root.Name() != "reconcile rollout" || root.Status() != test.status {
				t.Errorf("%s %v: %s", root.Name(), root.Status(), diff)
			}
			if diff := cmp.Diff(map[string]string{"serin.action": "scale the canary"}, texts(act)); diff != "" || act.Status() != test.status {
				t.Errorf("%v: %s", act.Status(), diff)
			}
			for _, child := range []sdktrace.ReadOnlySpan{decide, act} {
				if child.Parent().SpanID() != root.SpanContext().SpanID() {
					t.Errorf("%s is not below the reconcile", child.Name())
				}
			}
			of := root.SpanContext()
			if line := `"msg"="acting" "trace_id"="` + of.TraceID().String() + `" "span_id"="` + of.SpanID().String() + `"`; !strings.Contains(written.String(), line) {
				t.Errorf("the log is %s, want %s", written, line)
			}
		})
	}
}

func TestAPanicEndsTheTraceAndGoesOn(t *testing.T) {
	ctx, spans, _ := traced(t, sdktrace.AlwaysSample())
	r := Reconciler("rollout", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { panic("nil map") }))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = r.Reconcile(ctx, request)
	}()
	ended := spans.Ended()
	if len(ended) != 1 || len(ended[0].Events()) != 1 || ended[0].Events()[0].Name != "exception" {
		t.Errorf("spans %v", ended)
	}
}

func TestWhatIsNotSampledIsNotRecordedAndNotInTheLog(t *testing.T) {
	ctx, spans, written := traced(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	r := Reconciler("rollout", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		log.FromContext(ctx).Info("reconciling")
		return reconcile.Result{}, Act(ctx, named("act"), func(context.Context) error { return nil })
	}))
	if _, err := r.Reconcile(ctx, request); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
	if !strings.Contains(written.String(), "reconciling") || strings.Contains(written.String(), "trace_id") {
		t.Errorf("the log is %s", written)
	}
}

func TestBackgroundWorkNamesItsObject(t *testing.T) {
	ctx, spans, _ := traced(t, sdktrace.AlwaysSample())
	_, span := Background(ctx, "notify", request.NamespacedName)
	End(span, nil)
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "notify" || ended[0].Status().Code != codes.Unset {
		t.Fatalf("spans %v", ended)
	}
	if diff := cmp.Diff(map[string]string{"k8s.namespace.name": "shop", "k8s.object.name": "website"}, texts(ended[0])); diff != "" {
		t.Error(diff)
	}
}

// pass is a reconcile with each kind of span and nothing else.
var pass = reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	_, deciding := Start(ctx, "decide")
	deciding.End()
	Note(ctx, Revision, "5d4f")
	return reconcile.Result{}, Act(ctx, named(""), func(context.Context) error { return nil })
})

func TestTracingThatIsOffAllocatesNothing(t *testing.T) {
	ctx, r := log.IntoContext(t.Context(), logr.Discard()), Reconciler("rollout", pass)
	if n := testing.AllocsPerRun(100, func() { _, _ = r.Reconcile(ctx, request) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkReconciler is what tracing costs a reconcile that does nothing.
func BenchmarkReconciler(b *testing.B) {
	provider := sdktrace.NewTracerProvider()
	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	for name, ctx := range map[string]context.Context{
		"off":       b.Context(),
		"unsampled": Into(b.Context(), unsampled.Tracer("test")),
		"sampled":   Into(b.Context(), provider.Tracer("test")),
	} {
		b.Run(name, func(b *testing.B) {
			r := Reconciler("rollout", pass)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.Reconcile(ctx, request)
			}
		})
	}
}
