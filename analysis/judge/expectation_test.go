// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// game plays every outcome of a few windows of two requests each.
type game struct {
	config Config
	begin  State
	every  time.Duration
	truth  []rates
	// variants are the counts of both versions in which k of 2 requests were bad.
	variants func(kc, ks int64) (canary, stable analysis.Variant)
	// worth is what is to be worth at most 1 on average.
	worth func(Config, State) float64
}

func (g game) expectation(s State, at time.Duration, truth []rates) float64 {
	if len(truth) == 0 {
		return g.worth(g.config, s)
	}
	const n = 2
	var sum float64
	for kc := range n + 1 {
		for ks := range n + 1 {
			start := time.Unix(1_700_000_000, 0).Add(at)
			w := analysis.Window{Start: start, End: start.Add(g.every), Weight: 50}
			w.Canary, w.Stable = g.variants(int64(kc), int64(ks))
			w.Samples = []analysis.Sample{{Name: "orders", Canary: w.Canary, Stable: w.Stable}}
			next, _ := g.config.Next(s, w)
			p := binomial(n, kc, truth[0].c) * binomial(n, ks, truth[0].s)
			sum += p * g.expectation(next, at+g.every, truth[1:])
		}
	}
	return sum
}

func failed(kc, ks int64) (canary, stable analysis.Variant) {
	return analysis.Variant{Requests: 2, Failures: kc}, analysis.Variant{Requests: 2, Failures: ks}
}

func slow(kc, ks int64) (canary, stable analysis.Variant) {
	took := func(k int64) analysis.Variant {
		return analysis.Variant{Requests: 2, Latency: &analysis.Histogram{LE: []float64{.1}, Counts: []int64{2 - k}}}
	}
	return took(kc), took(ks)
}

// slowAndFailed makes the same requests fail that are slow: two metrics could
// not depend on each other more.
func slowAndFailed(kc, ks int64) (canary, stable analysis.Variant) {
	canary, stable = slow(kc, ks)
	canary.Failures, stable.Failures = kc, ks
	return canary, stable
}

func evidence(_ Config, s State) float64 { return s.Evidence() }

// known is a state in which stable was seen before the canary got traffic, so
// that every metric is bet on from the first window on.
func known(c Config) State {
	stable := analysis.Variant{Requests: thorough, Failures: thorough / 10, Latency: &analysis.Histogram{LE: []float64{.1}, Counts: []int64{thorough * 9 / 10}}}
	start := time.Unix(1_700_000_000, 0).Add(-time.Minute)
	s, _ := c.Next(State{}, analysis.Window{
		Start: start, End: start.Add(5 * time.Second), Stable: stable,
		Samples: []analysis.Sample{{Name: "orders", Stable: analysis.Variant{Requests: 200, Failures: 20}}},
	})
	if s.metrics[latencySlot].open != 1 || len(c.Comparisons) > 0 && s.metrics[userSlots].open != 1 {
		panic("nothing is known of stable: the test would show nothing")
	}
	return s
}

// Everything around the single bets (base rate from earlier outcomes, stakes
// over time, the cap, the start-up phase, tempering, the mean over metrics) must
// keep the expectation at most 1. All 6,561 outcomes of four windows are played
// through Config.Next.
func TestTheExpectedEvidenceNeverExceedsOneOverEveryOutcomeOfFourWindows(t *testing.T) {
	plain := Defaults()
	plain.Startup = Startup{}
	with := func(change func(*Config)) Config {
		c := plain
		change(&c)
		return c
	}
	several := with(func(c *Config) { c.Comparisons = []Comparison{{Name: "orders", Weight: 2, Tolerance: c.Tolerance}} })
	four := func(r rates) []rates { return []rates{r, r, r, r} }
	slowEdge := func(s float64) rates { return rates{s, edgeSlope*s + edgeMargin} }
	for name, g := range map[string]game{
		"equal versions":          {config: plain, truth: four(rates{.1, .1}), variants: failed},
		"on the edge of the null": {config: plain, truth: four(rates{.1, .111}), variants: failed},
		"on the edge, while the base rate drifts": {
			config: plain, every: time.Minute,
			truth: []rates{{.001, .0021}, {.5, .551}, {.2, .221}, {0, .001}}, variants: failed,
		},
		"on the edge of the start-up phase and after it": {
			config: with(func(c *Config) { c.Startup = Startup{For: 10 * time.Second, Tolerate: .25} }),
			truth:  []rates{{.1, .361}, {.2, .471}, {.1, .111}, {.2, .221}}, variants: failed,
		},
		"on the edge with clusters that were stated":    {config: with(func(c *Config) { c.MaxCorrelatedFailures = 2 }), truth: four(rates{.1, .111}), variants: failed},
		"on the edge of the latency":                    {config: plain, begin: known(plain), truth: four(slowEdge(.1)), variants: slow},
		"on all edges, by requests that fail when slow": {config: several, begin: known(several), truth: four(rates{.1, .111}), variants: slowAndFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g.worth = evidence
			g.every = max(g.every, 5*time.Second)
			got := g.expectation(g.begin, 0, g.truth)
			t.Logf("expected evidence: %v", got)
			if got > 1+1e-9 {
				t.Errorf("expected evidence = %v, want at most 1", got)
			}
			if got < .5 {
				t.Errorf("expected evidence = %v, want a bet worth making", got)
			}
		})
	}
}

// The same for bets in favour of a canary that is worse by the tolerance.
func TestTheExpectedEvidenceForABadCanaryNeverExceedsOne(t *testing.T) {
	c := Defaults()
	c.Startup, c.Tolerance = Startup{}, .1
	several := c
	several.Comparisons = []Comparison{{Name: "orders", Weight: 2, Tolerance: c.Tolerance}}
	four := func(r rates) []rates { return []rates{r, r, r, r} }
	promotion := func(c Config, s State) float64 { return c.merge(&s).assurance }
	for name, g := range map[string]game{
		"just bad":                      {config: c, truth: four(rates{.1, .2}), variants: failed},
		"far worse":                     {config: c, truth: four(rates{.1, .6}), variants: failed},
		"just bad, while both drift":    {config: c, every: time.Minute, truth: []rates{{.01, .11}, {.5, .6}, {.2, .3}, {0, .1}}, variants: failed},
		"just too slow":                 {config: c, begin: known(c), truth: four(rates{.1, edgeSlope*.1 + edgeTolerance}), variants: slow},
		"bad in everything at the same": {config: several, begin: known(several), truth: four(rates{.1, .2}), variants: slowAndFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g.worth = promotion
			g.every = max(g.every, 5*time.Second)
			got := g.expectation(g.begin, 0, g.truth)
			t.Logf("expected evidence: %v", got)
			if got > 1+1e-9 || got < .05 {
				t.Errorf("expected evidence = %v, want at most 1 and a bet worth making", got)
			}
		})
	}
}

func TestTheStakeFollowsItsTimetableAndIsNeverUsedUp(t *testing.T) {
	warm := Startup{For: 15 * time.Second, Tolerate: .25}
	for _, tt := range []struct {
		name    string
		at      time.Duration
		startup Startup
		want    float64
	}{
		{"half at once", 0, Startup{}, .5},
		{"nothing more within the first minute", 59 * time.Second, Startup{}, .5},
		{"a twentieth each minute", 3 * time.Minute, Startup{}, .65},
		{"the regular part ends after eight minutes", 8 * time.Minute, Startup{}, .9},
		{"the ninth minute is still a full one", 9 * time.Minute, Startup{}, .95},
		{"a quarter at once with a start-up phase", 14 * time.Second, warm, .25},
		{"the most at its end", 15 * time.Second, warm, .65},
		{"less each minute", 2 * time.Minute, warm, .72},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := stakeDue(tt.at, tt.startup); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("stakeDue(%v) = %v, want %v", tt.at, got, tt.want)
			}
		})
	}
	for _, startup := range []Startup{{}, warm} {
		last := 0.0
		for m := range 7 * 24 * 60 {
			due := stakeDue(time.Duration(m)*time.Minute, startup)
			if due <= last || due >= 1 {
				t.Fatalf("stakeDue at minute %d = %v after %v, want more, and less than 1", m, due, last)
			}
			last = due
		}
	}
}

func TestPriorsAreOneStake(t *testing.T) {
	var sum float64
	for _, p := range prior {
		sum += p
	}
	if math.Abs(sum-1) > 1e-15 {
		t.Errorf("sum of the priors = %v, want 1", sum)
	}
	if got := (State{}).Evidence(); got != 1 {
		t.Errorf("evidence at the beginning = %v, want 1", got)
	}
}
