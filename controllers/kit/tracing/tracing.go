// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Attributes of spans. Those of OpenTelemetry's conventions have its names.
const (
	// Controller is the name of the controller, as in the label of controller-runtime's metrics.
	Controller = attribute.Key("serin.controller")
	// Namespace and Name are those of the object.
	Namespace = attribute.Key("k8s.namespace.name")
	Name      = attribute.Key("k8s.object.name")
	// ReconcileID is that of the log, by which lines without a trace_id are found.
	ReconcileID = attribute.Key("serin.reconcile.id")
	// Result of a reconcile: success, requeue_after or error, as in controller-runtime's metrics.
	// Of a request it is what the caller made of the answer.
	Result = attribute.Key("serin.result")
	// Revision is that of the version that is being released, or of stable between releases.
	Revision = attribute.Key("serin.release.revision")
	// State is the reason of the condition Ready.
	State = attribute.Key("serin.state")
	// Host that is asked. No path and no query is recorded: they may be secret.
	Host = attribute.Key("server.address")
	// Action is what was done, as in the log.
	Action = attribute.Key("serin.action")
)

type tracerKey struct{}

// Into returns a context in which Start records spans with the tracer.
func Into(ctx context.Context, t trace.Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// tracer is that of a context; nil while tracing is off.
func tracer(ctx context.Context) trace.Tracer {
	t, _ := ctx.Value(tracerKey{}).(trace.Tracer)
	return t
}

// none records nothing.
var none trace.Span = noop.Span{}

// Start begins a span, below the one of the context if there is one. Without a tracer in the
// context it returns that context, and a span that records nothing.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t := tracer(ctx); t != nil {
		return t.Start(ctx, name, options...)
	}
	return ctx, none
}

// End ends a span, as failed where there is an error.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Note adds an attribute to the span of the context; an empty one is left out.
func Note(ctx context.Context, key attribute.Key, value string) {
	if span := trace.SpanFromContext(ctx); value != "" && span.IsRecording() {
		span.SetAttributes(key.String(value))
	}
}

// Background begins a span of what is done for an object in the background.
func Background(ctx context.Context, name string, of types.NamespacedName) (context.Context, trace.Span) {
	ctx, span := Start(ctx, name)
	if span.IsRecording() {
		span.SetAttributes(Namespace.String(of.Namespace), Name.String(of.Name))
	}
	return ctx, span
}

// Act does one action of a reconcile in a span of its own.
func Act(ctx context.Context, action fmt.Stringer, do func(context.Context) error) error {
	ctx, span := Start(ctx, "act")
	if span.IsRecording() {
		span.SetAttributes(Action.String(action.String()))
	}
	err := do(ctx)
	End(span, err)
	return err
}

// Reconciler gives each reconcile a trace, and its lines of the log the trace's ID.
func Reconciler(name string, next reconcile.Reconciler) reconcile.Reconciler {
	title := "reconcile " + name
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		ctx, span := Start(ctx, title)
		defer span.End() // it records a panic and lets it pass
		if !span.IsRecording() {
			return next.Reconcile(ctx, req)
		}
		span.SetAttributes(Controller.String(name), Namespace.String(req.Namespace), Name.String(req.Name),
			ReconcileID.String(string(controller.ReconcileIDFromContext(ctx))))
		of := span.SpanContext()
		ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("trace_id", of.TraceID().String(), "span_id", of.SpanID().String()))
		result, err := next.Reconcile(ctx, req)
		span.SetAttributes(Result.String(outcome(result, err)))
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return result, err
	})
}

func outcome(result reconcile.Result, err error) string {
	switch {
	case err != nil:
		return "error"
	case result.RequeueAfter > 0:
		return "requeue_after"
	}
	return "success"
}
