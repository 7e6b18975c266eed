// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// Most traps have their tests where they belong; docs/analysis.md lists them.

// Clients that ask again after a failure turn one failure into several, for both
// versions, and those of the version that got less traffic weigh more.
func TestRetriesOfClientsDoNotFailAGoodCanary(t *testing.T) {
	const runs, attempts = 100, 4
	retried := func(flow *traffic, a analysis.Variant) analysis.Variant {
		for failed, i := a.Failures, 1; i < attempts; i++ {
			// Three in four of the requests that failed fail again.
			again := flow.binomial(failed, .75)
			a.Requests, a.Failures, failed = a.Requests+failed, a.Failures+again, again
		}
		return a
	}
	rolledBack := 0
	for seed := range uint64(runs) {
		flow := newTraffic(seed, 200)
		flow.stable, flow.canary, flow.weight = always(.01), always(.01), planned
		var s judge.State
		var r judge.Result
		for flow.at < 10*time.Minute && r.Verdict != judge.Fail {
			w := flow.next()
			w.Canary, w.Stable = retried(flow, w.Canary), retried(flow, w.Stable)
			s, r = judge.Defaults().Next(s, w)
		}
		if r.Verdict == judge.Fail {
			rolledBack++
		}
	}
	t.Logf("%d of %d rolled back", rolledBack, runs)
	if rolledBack > 4 {
		t.Errorf("%d of %d good canaries rolled back because clients ask again", rolledBack, runs)
	}
}

// A late scrape would tell of time that was judged already. It changes nothing,
// and the window that follows is judged as if it had not come.
func TestALateWindowNeverRevisesOneThatWasJudged(t *testing.T) {
	s, _ := plain().Next(judge.State{}, window(0, 50, variant(100, 0), variant(100, 0)))
	s, _ = plain().Next(s, window(1, 50, variant(100, 0), variant(100, 0)))
	late, r := plain().Next(s, window(0, 50, variant(100, 90), variant(100, 0)))
	if late != s || r.Reason != judge.ReasonOutOfOrder {
		t.Errorf("a late window was judged %s (%s) and changed the state: %v", r.Verdict, r.Reason, late != s)
	}
	next := window(2, 50, variant(100, 1), variant(100, 1))
	want, _ := plain().Next(s, next)
	if got, _ := plain().Next(late, next); got != want {
		t.Error("the window after it was judged otherwise")
	}
}

// What comes of a canary that is cold beyond what the start-up phase tolerates
// is for the user to say; what it tolerates must not count later either.
func TestAColdStartIsForgotten(t *testing.T) {
	cold, warm := judge.State{}, judge.State{}
	for i := range 60 {
		failures := int64(0)
		if i < 3 {
			failures = 20 // of 100: less than the 25 pp that are tolerated
		}
		cold, _ = judge.Defaults().Next(cold, window(i, 50, variant(100, failures), variant(100, 0)))
		warm, _ = judge.Defaults().Next(warm, window(i, 50, variant(100, 0), variant(100, 0)))
	}
	if cold.Evidence() > 2*warm.Evidence() {
		t.Errorf("evidence = %v after a cold start, and %v without one", cold.Evidence(), warm.Evidence())
	}
}
