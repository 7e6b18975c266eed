// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials"
)

// Traces are those of the manager.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New makes Traces of a provider of spans.
func New(provider *sdktrace.TracerProvider) *Traces {
	return &Traces{provider: provider, tracer: provider.Tracer("github.com/serin-dev/serin")}
}

// Start makes Traces that are exported as the environment says (OTEL_EXPORTER_OTLP_*,
// OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES). Without certificates in the
// environment, the roots verify the receiver. An error names the variable. A receiver that
// can't be reached is no error: that is logged, and spans are dropped.
func Start(ctx context.Context, version string, roots *x509.CertPool) (*Traces, error) {
	log := logr.FromContextOrDiscard(ctx).WithName("traces")
	otel.SetLogger(log)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Info("Traces are not exported as configured", "reason", err.Error()) }))
	exporter, err := newExporter(ctx, roots)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname() // the name of the pod
	if err != nil {
		return nil, fmt.Errorf("read the name of the host: %w", err)
	}
	// What the environment says comes last, and wins.
	of, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("serin-manager"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(host)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return New(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(of))), nil
}

// Stop exports what is left, until the context ends.
func (t *Traces) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// setting is the one for traces, or else the one for all that is exported by OTLP.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

var errNoEndpoint = errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: give the URL of an OTLP receiver, such as http://collector.monitoring:4317")

func newExporter(ctx context.Context, roots *x509.CertPool) (sdktrace.SpanExporter, error) {
	endpoint := setting("ENDPOINT")
	if endpoint == "" {
		return nil, errNoEndpoint // the libraries would send to localhost
	}
	// Options replace what the environment says of TLS.
	ours := strings.HasPrefix(endpoint, "https://") && setting("CERTIFICATE") == "" && setting("CLIENT_CERTIFICATE") == ""
	verify := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	switch protocol := setting("PROTOCOL"); protocol {
	case "grpc":
		var options []otlptracegrpc.Option
		if ours {
			options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(verify)))
		}
		return otlptracegrpc.New(ctx, options...)
	case "", "http/protobuf":
		var options []otlptracehttp.Option
		if ours {
			options = append(options, otlptracehttp.WithTLSClientConfig(verify))
		}
		return otlptracehttp.New(ctx, options...)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not one of grpc, http/protobuf", protocol)
	}
}
