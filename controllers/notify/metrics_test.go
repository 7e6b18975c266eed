// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	good, refusing, waiting := listen(t, nil), listen(t, status(http.StatusForbidden)), block(t)
	s := play(t, cluster(), loopback, Options{})
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(s.Sender); err != nil {
		t.Fatal(err)
	}
	s.Send(website, question("a", good.URL))
	s.Send(website, question("b", good.URL))
	s.Send(website, question("c", refusing.URL))
	s.Send(website, question("d", waiting.URL))
	s.outcome("a", Delivered)
	s.outcome("b", Delivered)
	s.outcome("c", Refused)
	receive(t, "d", waiting.arrived)
	const attempts = `
# HELP serin_outbound_attempts_total Requests sent to hooks and notifications, by outcome: delivered, not_yet, refused, failed.
# TYPE serin_outbound_attempts_total counter
serin_outbound_attempts_total{outcome="delivered"} 2
serin_outbound_attempts_total{outcome="failed"} 0
serin_outbound_attempts_total{outcome="not_yet"} 0
serin_outbound_attempts_total{outcome="refused"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(attempts), "serin_outbound_attempts_total"); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(s.metrics.unsettled); got != 1 {
		t.Errorf("%v unsettled, want the one that waits", got)
	}
	s.Keep(website, nil)
	if got := testutil.ToFloat64(s.metrics.unsettled); got != 0 {
		t.Errorf("%v unsettled after all was forgotten", got)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestEveryOutcomeHasALabel(t *testing.T) {
	seen := map[string]bool{}
	for o := Pending; o <= Failed; o++ {
		seen[o.String()] = true
	}
	if len(seen) != 5 {
		t.Errorf("got %v", seen)
	}
}
