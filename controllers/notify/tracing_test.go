// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/controllers/kit/tracing"
)

func TestEachAttemptIsATraceWithoutItsPathAndTellsNoOneOfIt(t *testing.T) {
	for code, want := range map[int]struct {
		result string
		status codes.Code
	}{
		http.StatusOK: {"delivered", codes.Unset}, http.StatusAccepted: {"not_yet", codes.Unset}, http.StatusForbidden: {"refused", codes.Unset},
		http.StatusBadGateway: {"failed", codes.Error},
	} {
		e := listen(t, status(code))
		spans := tracetest.NewSpanRecorder()
		ctx := tracing.Into(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"))
		s := New(cluster(), loopback, clock.RealClock{}, Options{})
		s.Send(website, question("q", e.URL+"/services/a-secret"))
		d, _ := s.queue.Get()
		s.deliver(ctx, d)

		heard, ended := e.heard(), spans.Ended()
		if len(heard) != 1 || heard[0].header.Get("traceparent") != "" {
			t.Errorf("%d: heard %+v", code, heard)
		}
		if len(ended) != 1 || ended[0].Name() != "notify" || ended[0].Status().Code != want.status {
			t.Fatalf("%d: spans %v", code, ended)
		}
		got := map[string]string{}
		for _, a := range ended[0].Attributes() {
			got[string(a.Key)] = a.Value.String()
		}
		if diff := cmp.Diff(map[string]string{
			"k8s.namespace.name": website.Namespace, "k8s.object.name": website.Name,
			"server.address": strings.TrimPrefix(e.URL, "http://"), "serin.result": want.result,
		}, got); diff != "" {
			t.Errorf("%d: %s", code, diff)
		}
	}
}
