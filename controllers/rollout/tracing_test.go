// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/controllers/kit/tracing"
)

var ofWebsite = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "website"}}

func TestATraceNamesTheReleaseAndEachAction(t *testing.T) {
	r, _, _ := newReconciler(t, func(string) error { return nil })
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	traced := tracing.Reconciler("rollout", r)
	for range 3 { // the first ones find out what is there
		if _, err := traced.Reconcile(tracing.Into(t.Context(), provider.Tracer("test")), ofWebsite); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, span := range spans.Ended() {
		seen[span.Name()] = true
		for _, a := range span.Attributes() {
			seen[span.Name()+": "+string(a.Key)+"="+a.Value.String()] = true
		}
	}
	for _, want := range []string{"decide", "act: serin.action=pause the Deployment", "reconcile rollout: serin.release.revision=1", "reconcile rollout: serin.state=Deploying"} {
		if !seen[want] {
			t.Errorf("no span says %q: %v", want, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// BenchmarkReconcile is a pass that changes nothing. What is off costs what "plain" does, which
// is the Reconciler alone.
func BenchmarkReconcile(b *testing.B) {
	provider := sdktrace.NewTracerProvider()
	for name, ctx := range map[string]context.Context{
		"plain": b.Context(), "off": b.Context(), "sampled": tracing.Into(b.Context(), provider.Tracer("test")),
	} {
		b.Run(name, func(b *testing.B) {
			r, _, _ := newReconciler(b, func(string) error { return nil })
			var of reconcile.Reconciler = r
			if name != "plain" {
				of = tracing.Reconciler("rollout", r)
			}
			for range 5 {
				if _, err := of.Reconcile(ctx, ofWebsite); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := of.Reconcile(ctx, ofWebsite); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
