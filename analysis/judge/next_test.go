// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// everything is a configuration that uses every ability.
func everything() judge.Config {
	c := comparing("orders", "sizes")
	c.Startup = judge.Startup{For: 10 * time.Second, Tolerate: .25}
	c.MinEvidence = 5 * time.Second
	c.Shares = true
	c.Limits = []judge.Limit{judge.MinSuccessRate(.5), judge.MaxLatency(.9, 600*time.Millisecond), judge.ValueBetween("queue", 0, 100)}
	return c
}

// script makes windows of what a fuzzer or a generator of random numbers says.
type script struct {
	bytes []byte
	now   time.Time
}

func (s *script) more() bool { return len(s.bytes) > 0 }

func (s *script) pick() byte {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return b
}

// count is mostly a plausible number.
func (s *script) count() int64 {
	odd := []int64{0, 0, 1, 2, -1, math.MaxInt64, math.MinInt64, analysis.MaxCount, analysis.MaxCount + 1, 1e12}
	b := s.pick()
	if int(b) < len(odd) {
		return odd[b]
	}
	return int64(b) * int64(b) / 4
}

func (s *script) number() float64 {
	odd := []float64{0, math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300, -1e300, 5e-324}
	b := s.pick()
	if int(b) < len(odd) {
		return odd[b]
	}
	return float64(b) / 100
}

func (s *script) variant() analysis.Variant {
	a := analysis.Variant{Requests: s.count()}
	if b := s.pick(); b > 200 {
		a.Failures = s.count()
	} else if a.Requests > 0 {
		a.Failures = int64(float64(a.Requests) * float64(b) / 1000)
	}
	switch s.pick() % 8 {
	case 0:
		a.Latency = &analysis.Histogram{LE: []float64{.1, s.number()}, Counts: []int64{s.count(), s.count()}}
	case 1, 2, 3:
		half := a.Requests / 256 * int64(s.pick())
		a.Latency = &analysis.Histogram{LE: []float64{.1, .5}, Counts: []int64{half / 2, half, a.Requests}}
	case 4:
		a.Spread = analysis.Spread{Proxies: s.count(), Squares: s.number()}
	}
	return a
}

func (s *script) window() analysis.Window {
	w := analysis.Window{Start: s.now, Weight: int32(s.pick()) % 102}
	length := 5 * time.Second
	switch s.pick() {
	case 0:
		length = time.Duration(s.count())
	case 1:
		w.Start = w.Start.Add(-time.Second)
	case 2:
		w.Start = w.Start.Add(time.Hour)
	case 3:
		w.Start = time.Unix(s.count(), 0)
	}
	w.End = w.Start.Add(length)
	w.Canary, w.Stable = s.variant(), s.variant()
	for _, name := range []string{"orders", "sizes"} {
		switch s.pick() % 4 {
		case 0:
			w.Samples = append(w.Samples, analysis.Sample{Name: name, Canary: s.variant(), Stable: s.variant()})
		case 1:
			w.Samples = append(w.Samples, analysis.Sample{Name: name, Start: w.Start.Add(-3 * time.Second), Canary: s.variant(), Stable: s.variant()})
		}
	}
	if s.pick()%4 == 0 {
		x := s.number()
		w.Values = []analysis.Value{{Name: "queue", Value: &x}}
	}
	if w.Validate() == nil {
		s.now = w.End
	}
	return w
}

// checkNumbers checks that a result holds numbers.
func checkNumbers(t *testing.T, r judge.Result) {
	t.Helper()
	for name, x := range map[string]float64{
		"evidence": r.Evidence, "threshold": r.Threshold, "promotion evidence": r.PromotionEvidence, "promotion threshold": r.PromotionThreshold,
		"detectable effect": r.MinDetectableEffect, "the canary's share": r.DecidingCanary, "stable's share": r.DecidingStable,
	} {
		if !(x >= 0) || math.IsInf(x, 0) {
			t.Errorf("%s = %v", name, x)
		}
	}
	if r.Explain() == "" {
		t.Errorf("no explanation for %s", r.Reason)
	}
	if r.MayPromote && r.Verdict != judge.Pass {
		t.Errorf("may be promoted, and the verdict is %s", r.Verdict)
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("serin"))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		seed := make([]byte, 400)
		for i := range seed {
			seed[i] = byte(rng.IntN(256))
		}
		f.Add(seed)
	}
	f.Fuzz(playScript)
}

// playScript plays any sequence of windows and checks what must hold whatever
// they are.
func playScript(t *testing.T, bytes []byte) {
	t.Helper()
	c := everything()
	in := script{bytes: bytes, now: epoch}
	var s judge.State
	var canary, number bool // whether the canary, or a number, was ever measured
	for in.more() {
		if in.pick()%16 == 0 {
			s = s.StartStep(in.now)
		}
		w := in.window()
		next, r := c.Next(s, w)
		checkNumbers(t, r)
		if err := w.Validate(); err != nil {
			if next != s || r.Verdict == judge.Pass || r.Verdict == judge.Fail && c.Assess(s, s.End()).Verdict != judge.Fail {
				t.Errorf("a window that is invalid (%v) changed the state or was judged %s", err, r.Verdict)
			}
		} else {
			canary = canary || w.Canary.Requests > 0
			number = number || len(w.Values) > 0
		}
		if r.Verdict == judge.Pass && !canary || r.Verdict == judge.Fail && !canary && !number && len(w.Samples) == 0 {
			t.Errorf("%s (%s) from nothing", r.Verdict, r.Reason)
		}
		if s = next; stored(t, s) != s {
			t.Fatal("another state was read than was stored")
		}
	}
}

func TestRandomSequencesOfWindowsAreJudgedSoundly(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		bytes := make([]byte, 1000)
		for i := range bytes {
			bytes[i] = byte(rng.IntN(256))
		}
		playScript(t, bytes)
	}
}

// A canary whose data stays away is neither promoted nor rolled back, whatever
// stable does meanwhile.
func TestMissingDataIsNeverAVerdict(t *testing.T) {
	for name, missing := range map[string]func(*analysis.Window){
		"no canary requests":           func(w *analysis.Window) { w.Canary = analysis.Variant{} },
		"no stable requests":           func(w *analysis.Window) { w.Stable = analysis.Variant{} },
		"no requests":                  func(w *analysis.Window) { w.Canary, w.Stable = analysis.Variant{}, analysis.Variant{} },
		"no latency of the canary":     func(w *analysis.Window) { w.Canary.Latency = nil },
		"no number":                    func(w *analysis.Window) { w.Values = nil },
		"a number that is none":        func(w *analysis.Window) { x := math.NaN(); w.Values[0].Value = &x },
		"more failures than requests":  func(w *analysis.Window) { w.Canary.Failures = w.Canary.Requests + 1 },
		"a negative number of samples": func(w *analysis.Window) { w.Samples[0].Canary.Requests = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := everything()
			one := 1.0
			var s judge.State
			for i := range 100 {
				w := window(i, 50, timed(1000, 400, 950, 1000), timed(1000, 400, 950, 1000))
				w.Samples = []analysis.Sample{sample("orders", variant(100, 1), variant(100, 1)), sample("sizes", timed(100, 50, 90, 100), timed(100, 50, 90, 100))}
				w.Values = []analysis.Value{{Name: "queue", Value: &one}}
				missing(&w)
				var r judge.Result
				s, r = c.Next(s, w)
				checkNumbers(t, r)
				if r.Verdict != judge.Inconclusive {
					t.Fatalf("window %d: %s (%s)", i, r.Verdict, r.Explain())
				}
			}
		})
	}
}

// The state is written and read again between every pair of windows, in
// sequences that use every ability.
func TestRestartingAfterAnyWindowChangesNothing(t *testing.T) {
	ever := map[judge.Reason]bool{}
	promoted := false
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 8))
		flow := newTraffic(seed, 300)
		base := .01 * rng.Float64()
		flow.stable, flow.canary, flow.weight = incident(base), incident(base+.02*rng.Float64()*float64(seed%2)), planned
		c := everything()
		var through, restarted judge.State
		for i := range 150 {
			w := randomWindow(flow, rng)
			if i%12 == 0 {
				through, restarted = through.StartStep(w.Start), restarted.StartStep(w.Start)
			}
			var want, got judge.Result
			through, want = c.Next(through, w)
			restarted, got = c.Next(stored(t, restarted), w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, window %d: result differs after a restart (-through +restarted):\n%s", seed, i, diff)
			}
			if through != stored(t, restarted) {
				t.Fatalf("seed %d, window %d: state differs after a restart", seed, i)
			}
			ever[want.Reason] = true
			promoted = promoted || want.MayPromote
		}
	}
	for _, reason := range []judge.Reason{judge.ReasonNotWorse, judge.ReasonWorseThanStable, judge.ReasonSuspected, judge.ReasonStartingUp, judge.ReasonLimitMissing} {
		if !ever[reason] {
			t.Errorf("never %s: the sequences show too little", reason)
		}
	}
	if !promoted {
		t.Error("never promoted early: the sequences show too little")
	}
}

// randomWindow adds latencies, samples and numbers to the next window.
func randomWindow(flow *traffic, rng *rand.Rand) analysis.Window {
	w := flow.next()
	hist := func(n int64) *analysis.Histogram {
		fast := n * int64(90+rng.IntN(5)) / 100
		return &analysis.Histogram{LE: []float64{.1, .5, 1}, Counts: []int64{fast / 2, fast, n}}
	}
	w.Canary.Latency, w.Stable.Latency = hist(w.Canary.Requests), hist(w.Stable.Requests)
	w.Samples = []analysis.Sample{sample("orders", flow.variant(3000, .02), flow.variant(4000, .02))}
	if rng.IntN(3) == 0 {
		sizes := sample("sizes", analysis.Variant{Requests: 9000}, analysis.Variant{Requests: 9000})
		sizes.Canary.Latency, sizes.Stable.Latency = hist(9000), hist(9000)
		w.Samples = append(w.Samples, sizes)
	}
	if rng.IntN(2) == 0 {
		x := 80 * rng.Float64()
		w.Values = []analysis.Value{{Name: "queue", Value: &x}}
		if rng.IntN(10) == 0 {
			w.Values[0].Value = nil
		}
	}
	return w
}

// stored is the state after it was written and read again.
func stored(t *testing.T, s judge.State) judge.State {
	t.Helper()
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 4096 {
		t.Fatalf("state of %d bytes, want at most 4096", len(text))
	}
	var back judge.State
	if err := back.UnmarshalText(text); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return back
}
