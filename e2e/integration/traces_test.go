// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// receiver takes spans by OTLP.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    []*tracev1.Span
	services map[string]bool
}

func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.ResourceSpans {
		r.services[attribute(of.Resource.Attributes, "service.name")] = true
		for _, scope := range of.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func attribute(all []*commonv1.KeyValue, key string) string {
	for _, a := range all {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// listenForSpans starts a receiver and returns its URL.
func listenForSpans(t *testing.T) (*receiver, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, server := &receiver{services: map[string]bool{}}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)
	return r, "http://" + listener.Addr().String()
}

// find returns the spans of a name below a span.
func (r *receiver) find(name string, below []byte) (found []*tracev1.Span) {
	for _, span := range r.spans {
		if span.Name == name && bytes.Equal(span.ParentSpanId, below) {
			found = append(found, span)
		}
	}
	return found
}

// TestTheSpansOfAReconcileArrive runs the manager as a process, with the flag and the environment
// that the chart gives it.
func TestTheSpansOfAReconcileArrive(t *testing.T) {
	t.Parallel()
	binary, err := builtCommand()
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	s.create(deployment("website", 2), service("website"), newRollout())
	spans, endpoint := listenForSpans(t)
	process := exec.Command(binary, "manager", "--tracing", "--proxy-image=example.invalid/serin:test", "--log-level=debug", "--watch-namespace="+s.namespace,
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
	var log bytes.Buffer
	process.Stderr = &log
	process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(t, managerConfig(t), ""),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=1")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if process.ProcessState == nil {
			_ = process.Process.Kill()
			_ = process.Wait()
		}
		if t.Failed() {
			t.Logf("it says:\n%s", log.String())
		}
	})
	s.waitReady()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil { // it exports what is left before it ends
		t.Fatal(err)
	}

	spans.mu.Lock()
	defer spans.mu.Unlock()
	if !spans.services["serin-manager"] {
		t.Errorf("spans are of the services %v", spans.services)
	}
	if err := spans.check(s, log.String()); err != nil {
		t.Error(err)
	}
	for _, span := range spans.spans {
		if len(span.ParentSpanId) == 0 && !strings.HasPrefix(span.Name, "reconcile ") {
			t.Errorf("%q is a trace of its own, which a watch or the lease would be too", span.Name)
		}
	}
}

// check finds a reconcile of the Rollout with an action whose request to the API server was recorded, and that the log
// knows.
func (r *receiver) check(s *scene, log string) error {
	missing := "a reconcile of the Rollout"
	for _, root := range r.find("reconcile rollout", nil) {
		if attribute(root.Attributes, "k8s.namespace.name") != s.namespace || attribute(root.Attributes, "k8s.object.name") != "website" {
			continue
		}
		if attribute(root.Attributes, "serin.reconcile.id") == "" || attribute(root.Attributes, "serin.result") == "" {
			return fmt.Errorf("a reconcile has the attributes %v", root.Attributes)
		}
		if len(r.find("decide", root.SpanId)) != 1 || len(r.find("update rollouts/status", root.SpanId)) == 0 {
			missing = "a reconcile with its decision and its write of the status"
			continue
		}
		for _, act := range r.find("act", root.SpanId) {
			action := attribute(act.Attributes, "serin.action")
			for _, request := range r.find("patch rollouts", act.SpanId) {
				if url := attribute(request.Attributes, "url.full"); action == "" || !strings.Contains(url, "/namespaces/"+s.namespace+"/rollouts/website") {
					return fmt.Errorf("the action %q asked for %q", action, url)
				}
				if id := fmt.Sprintf(`"trace_id":"%x"`, root.TraceId); !strings.Contains(log, id) {
					return fmt.Errorf("no line of the log has %s", id)
				}
				return nil
			}
		}
		missing = "an action with its request"
	}
	return fmt.Errorf("there is no %s among %d spans", missing, len(r.spans))
}
