// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestReportAddsUp(t *testing.T) {
	start := time.Unix(1000, 0)
	r := newRecorder()
	r.begin(start)
	outcomes := []outcome{
		{kind: KindOK, version: "v1", status: 200, latency: time.Millisecond, opened: 1},
		{kind: KindOK, version: "v2", status: 200, latency: time.Millisecond, retries: 1, opened: 1},
		{kind: KindAppError, version: "v2", status: 500, latency: time.Millisecond, detail: "oops"},
		{kind: KindNoVersion, status: 502, latency: time.Second},
		{kind: KindReset, latency: time.Second, detail: "reset"},
		{kind: KindReset, latency: time.Second, detail: "reset"},
	}
	numbers := make([]int64, len(outcomes)+1)
	for i := range numbers {
		numbers[i] = r.send()
	}
	for i, number := range slices.Delete(numbers, 2, 3) { // the third stays in flight
		r.finish(start, number, outcomes[i])
	}
	r.skip(3)
	got := r.report(start.Add(time.Second))
	ms := Quantiles{P50: 1.04, P90: 1.04, P99: 1.04}
	want := Report{
		StartedAt: start, Time: start.Add(time.Second),
		Sent: 7, Settled: 2, InFlight: 1, Skipped: 3, Retried: 1, Connections: 2, Proxied: 2, Unanswered: 3,
		Versions: []VersionReport{
			{Version: "v1", Requests: 1, Latency: ms},
			{Version: "v2", Requests: 2, Failed: 1, Latency: ms},
		},
		Kinds: []KindReport{{Kind: KindNoVersion, Count: 1}, {Kind: KindReset, Count: 2}},
		Failures: []Failure{
			{Time: start, Kind: KindRepeated, Version: "v2", Status: 200, Seconds: 0.001},
			{Time: start, Kind: KindNoVersion, Status: 502, Seconds: 1},
			{Time: start, Kind: KindReset, Detail: "reset", Seconds: 1},
			{Time: start, Kind: KindReset, Detail: "reset", Seconds: 1},
			{Time: start, Kind: KindAppError, Version: "v2", Status: 500, Detail: "oops", Seconds: 0.001},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Failed() != 4 {
		t.Errorf("got %d failed, want 4", got.Failed())
	}
	if diff := cmp.Diff(VersionReport{Version: "v9"}, got.Version("v9")); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresOfTheAppNeverHideTheUnansweredOnes(t *testing.T) {
	r := newRecorder()
	r.finish(time.Unix(1, 0), r.send(), outcome{kind: KindRefused})
	for range 10 * kept {
		r.finish(time.Unix(2, 0), r.send(), outcome{kind: KindAppError, version: "v3", status: 500})
	}
	report := r.report(time.Unix(3, 0))
	if report.Settled != report.Sent {
		t.Errorf("%d of %d requests are settled, and all have an outcome", report.Settled, report.Sent)
	}
	failures := report.Failures
	if len(failures) != kept+1 {
		t.Fatalf("got %d failures, want %d", len(failures), kept+1)
	}
	if failures[0].Kind != KindRefused {
		t.Errorf("the unanswered request is gone: %v", failures[0])
	}
}

func TestAnAnswerThatTookLongIsAmongTheFailures(t *testing.T) {
	r := newRecorder()
	r.finish(time.Unix(1, 0), r.send(), outcome{kind: KindOK, version: "v1", status: 200, latency: slow - 1})
	r.finish(time.Unix(2, 0), r.send(), outcome{kind: KindOK, version: "v1", status: 200, latency: slow})
	report := r.report(time.Unix(3, 0))
	want := []Failure{{Time: time.Unix(2, 0), Kind: KindSlow, Version: "v1", Status: 200, Seconds: 1}}
	if diff := cmp.Diff(want, report.Failures); diff != "" || report.Failed() != 0 {
		t.Errorf("%d failed, -want +got:\n%s", report.Failed(), diff)
	}
}

// TestAReportIsSettledWhenNothingOfBeforeIsUnderWay has one request of each kind under way.
func TestAReportIsSettledWhenNothingOfBeforeIsUnderWay(t *testing.T) {
	g := &Generator{clock: clock.RealClock{}, recorder: newRecorder(), pool: newPool(DefaultConfig("http://website"), nil)}
	number := g.recorder.send()
	list := map[string]*Counter{"control": &g.control, "probes": &g.probes, "probes of the control": &g.controlProbes, "streams": &g.streams, "held": &g.held}
	numbers := map[string]int64{}
	for what, s := range list {
		numbers[what] = s.begin()
	}
	before := g.Report()
	for what, s := range list {
		s.begin() // which does not count
		if g.Report().SettledSince(before) {
			t.Errorf("it is settled while one of the %s is under way", what)
		}
		s.finish(time.Unix(1, 0), numbers[what], outcome{kind: KindOK})
	}
	if g.Report().SettledSince(before) {
		t.Error("it is settled while one of the main load is under way")
	}
	g.recorder.finish(time.Unix(1, 0), number, outcome{kind: KindOK})
	if !g.Report().SettledSince(before) {
		t.Errorf("it is not settled when all of before have ended: %+v", g.Report())
	}
}

func TestQuantilesAreAtMostFivePercentAbove(t *testing.T) {
	for _, latency := range []time.Duration{
		time.Microsecond, 100 * time.Microsecond, 101 * time.Microsecond, time.Millisecond,
		17 * time.Millisecond, time.Second, time.Minute,
	} {
		var h histogram
		h.add(latency)
		exact := max(latency, lowest).Seconds() * 1000
		for _, q := range []float64{0.5, 0.99} {
			if got := h.quantile(q); got < exact*0.9999 || got > exact*growth*1.0001 {
				t.Errorf("%s: got %v ms", latency, got)
			}
		}
	}
}

func TestQuantilesOfNothingAreZero(t *testing.T) {
	var h histogram
	if diff := cmp.Diff(Quantiles{}, h.quantiles()); diff != "" {
		t.Error(diff)
	}
}

func TestQuantilesAreOrdered(t *testing.T) {
	var h histogram
	for n := range 1000 {
		h.add(time.Duration(n) * time.Millisecond)
	}
	q := h.quantiles()
	for _, check := range []struct{ got, want float64 }{{q.P50, 500}, {q.P90, 900}, {q.P99, 990}} {
		if check.got < check.want*0.99 || check.got > check.want*1.06 {
			t.Errorf("got %v ms, want %v", check.got, check.want)
		}
	}
}

func TestConnectionsToProxiesAreCountedSinceAnAnswerWithoutOne(t *testing.T) {
	through := outcome{kind: KindOK, version: "v2", opened: 1}
	past := outcome{kind: KindOK, version: "v1", opened: 1, direct: true}
	kept := func(o outcome) outcome { o.opened = 0; return o }
	tests := []struct {
		name     string
		outcomes []outcome
		want     int64
	}{
		{name: "connections to proxies count once", outcomes: []outcome{through, through, kept(through)}, want: 2},
		{name: "an answer on a new connection without one begins the count anew", outcomes: []outcome{through, past, through}, want: 1},
		{name: "and so does one on a connection that was kept", outcomes: []outcome{through, kept(past), through}, want: 1},
		{name: "a connection without an answer of the app tells nothing", outcomes: []outcome{through, {kind: KindNoVersion, opened: 1}, {kind: KindReset, opened: 1}}, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRecorder()
			for _, o := range test.outcomes {
				r.finish(time.Unix(0, 0), r.send(), o)
			}
			if got := r.report(time.Unix(0, 0)).Proxied; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
