// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/controllers/kit/tracing"
)

// received is what a receiver of OTLP was sent.
type received struct {
	*collector.ExportTraceServiceRequest
	// token is a header, or gRPC's metadata.
	token string
}

// receiver takes spans by gRPC and by HTTP.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	got chan received
}

func (r receiver) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.got <- received{request, strings.Join(metadata.ValueFromIncomingContext(ctx, "x-token"), "")}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	sent := &collector.ExportTraceServiceRequest{}
	if err != nil || proto.Unmarshal(body, sent) != nil || request.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.got <- received{sent, request.Header.Get("X-Token")}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// serve starts a receiver on loopback, and returns its URL, its certificate and what it gets.
func serve(t *testing.T, protocol string, encrypted bool) (string, *x509.Certificate, <-chan received) {
	t.Helper()
	r := receiver{got: make(chan received, 1)}
	web, scheme := httptest.NewUnstartedServer(r), "http://"
	if encrypted {
		scheme = "https://"
		web.StartTLS()
	} else {
		web.Start()
	}
	t.Cleanup(web.Close)
	if protocol != "grpc" {
		return web.URL, web.Certificate(), r.got
	}
	var options []grpc.ServerOption
	if encrypted {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	}
	s := grpc.NewServer(options...)
	collector.RegisterTraceServiceServer(s, r)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return scheme + listener.Addr().String(), web.Certificate(), r.got
}

// environment is the one for the receiver.
func environment(t *testing.T, of map[string]string) {
	t.Helper()
	for _, set := range os.Environ() { // of the machine
		if name, value, _ := strings.Cut(set, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, value) // it is put back
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range of {
		t.Setenv(name, value)
	}
}

func TestSpansOfAReconcileArrive(t *testing.T) {
	for name, test := range map[string]struct {
		protocol  string
		encrypted bool
		// ca has the environment name the certificate that verifies the receiver.
		ca bool
	}{
		"by gRPC":                          {protocol: "grpc"},
		"by HTTP":                          {protocol: "http/protobuf"},
		"without a protocol, by HTTP":      {},
		"encrypted, by gRPC":               {protocol: "grpc", encrypted: true},
		"encrypted, by HTTP":               {protocol: "http/protobuf", encrypted: true},
		"of an authority of its own, gRPC": {protocol: "grpc", encrypted: true, ca: true},
		"of an authority of its own, HTTP": {protocol: "http/protobuf", encrypted: true, ca: true},
	} {
		t.Run(name, func(t *testing.T) {
			url, certificate, got := serve(t, test.protocol, test.encrypted)
			settings := map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": test.protocol, "OTEL_EXPORTER_OTLP_HEADERS": "x-token=abc",
				"OTEL_RESOURCE_ATTRIBUTES": "k8s.cluster.name=north",
			}
			roots := x509.NewCertPool()
			switch {
			case test.ca:
				settings["OTEL_EXPORTER_OTLP_CERTIFICATE"] = filepath.Join(t.TempDir(), "ca.crt")
				text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
				if err := os.WriteFile(settings["OTEL_EXPORTER_OTLP_CERTIFICATE"], text, 0o600); err != nil {
					t.Fatal(err)
				}
			case test.encrypted:
				roots.AddCert(certificate)
			}
			environment(t, settings)
			traces, err := Start(t.Context(), "1.2.3", roots)
			if err != nil {
				t.Fatal(err)
			}
			r := tracing.Reconciler("rollout", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				_, deciding := tracing.Start(ctx, "decide")
				deciding.End()
				return reconcile.Result{}, nil
			}))
			if _, err := r.Reconcile(traces.Into(t.Context()), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if err := traces.Stop(t.Context()); err != nil { // it returns when all has been taken
				t.Fatal(err)
			}
			check(t, <-got)
		})
	}
}

func check(t *testing.T, of received) {
	t.Helper()
	if of.token != "abc" || len(of.ResourceSpans) != 1 || len(of.ResourceSpans[0].ScopeSpans) != 1 {
		t.Fatalf("received with the token %q: %v", of.token, of.ResourceSpans)
	}
	known := map[string]string{}
	for _, a := range of.ResourceSpans[0].Resource.Attributes {
		known[a.Key] = a.Value.GetStringValue()
	}
	for key, want := range map[string]string{"service.name": "serin-manager", "service.version": "1.2.3", "k8s.cluster.name": "north"} {
		if known[key] != want {
			t.Errorf("%s = %q, want %q", key, known[key], want)
		}
	}
	spans := of.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || spans[0].Name != "decide" || spans[1].Name != "reconcile rollout" || string(spans[0].TraceId) != string(spans[1].TraceId) {
		t.Errorf("spans %v", spans)
	}
}

func TestSettingsThatExportNothingAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"no endpoint":         {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_ENDPOINT: give the URL"},
		"an unknown protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" is not one of grpc, http/protobuf`},
		"no attributes":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_RESOURCE_ATTRIBUTES": "cluster"}, "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, test.settings)
			if _, err := Start(t.Context(), "1.2.3", nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
