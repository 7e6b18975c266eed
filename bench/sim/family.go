// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
)

// Family is a kind of traffic with the same trouble in it.
type Family struct {
	// Name is what the report and the flags call it.
	Name string
	// About says what happens in it, for the report.
	About string
	// Effects are by how much the canary is worse in the published cells; see Cell.
	Effects []float64
	// Latency is whether the effect is one of latency: then it is a factor, or the
	// share of requests that are late, instead of a difference in failure rate.
	Latency bool
	// Good is whether the canary counts as no worse, whatever the effect.
	Good bool
	// onset is when the canary becomes worse.
	onset time.Duration
	// traffic makes it.
	traffic func(Cell) Traffic
}

// Families are all of them, in the order of the report.
var Families = []Family{
	{
		Name: "independent", About: "each request fails by itself, at a constant rate",
		Effects: []float64{0, .005, .01, .05, .5}, traffic: independent,
	},
	{
		Name: "edge", About: "the canary fails as often as it may and still counts as no worse: 1.1 times as often as stable and a fifth of the tolerance more",
		Effects: []float64{0}, Good: true, traffic: onEdge,
	},
	{
		Name: "incident", About: "both versions fail 5 pp more often in minutes 3 to 8",
		Effects: []float64{0, .05}, traffic: incident,
	},
	{
		Name: "drift", About: "traffic and failure rate of both versions rise and fall by 80 % with a period of ten minutes, as if a day were that short",
		Effects: []float64{0, .01}, traffic: drift,
	},
	{
		Name: "overdispersed", About: "the failure rate of each version jumps from window to window (beta-binomial, correlation 0.01)",
		Effects: []float64{0, .005, .01, .05}, traffic: overdispersed,
	},
	{
		Name: "burst", About: "half of the failures come 20 at a time",
		Effects: []float64{0, .005, .01, .05}, traffic: bursts,
	},
	{
		Name: "cold start", About: "the canary fails 20 pp more often at first, and as often as stable after 15 seconds",
		Effects: []float64{0, .05}, traffic: coldStart,
	},
	{
		Name: "late defect", About: "the canary becomes worse after five minutes",
		Effects: []float64{.01, .05, .5}, onset: defectBegins, traffic: lateDefect,
	},
	{
		Name: "slower", About: "the canary takes longer by a factor",
		Effects: []float64{1, 1.25, 1.5, 2}, Latency: true, traffic: slower,
	},
	{
		Name: "late answers", About: "a share of the canary's answers takes a second longer",
		Effects: []float64{.02}, Latency: true, traffic: lateAnswers,
	},
	{
		Name: "both slower", About: "both versions take longer by a factor in minutes 3 to 8",
		Effects: []float64{2}, Latency: true, Good: true, traffic: bothSlower,
	},
	{
		Name: "cold and slow", About: "the canary takes longer by a factor at first, and as long as stable after 15 seconds",
		Effects: []float64{3}, Latency: true, Good: true, traffic: coldAndSlow,
	},
}

// Cell is one kind of traffic with its figures.
type Cell struct {
	// Family is what kind of trouble is in it.
	Family *Family
	// Rate is how many requests come per second, for both versions together.
	Rate float64
	// Base is the share of stable's requests that fail.
	Base float64
	// Effect is by how much more often the canary fails, as a fraction (0.01 is one
	// percentage point), or, in families of latency, a factor or a share.
	Effect float64
}

// Good is whether a rollback in this cell would be false.
func (c Cell) Good() bool {
	if c.Family.Latency {
		return c.Family.Good || c.Effect == 1
	}
	return c.Family.Good || c.Effect == 0
}

// Bad is whether a promotion in this cell would be wrong: the canary is worse by
// the tolerance or more. Cells may be neither Good nor Bad.
func (c Cell) Bad() bool {
	return !c.Good() && (c.Family.Latency || c.Effect >= judge.Defaults().Tolerance)
}

// EffectName is the effect for users, such as "+1 pp" or "× 1.25".
func (c Cell) EffectName() string {
	figure := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	switch {
	case c.Good() && (!c.Family.Latency || c.Effect == 1):
		return "none"
	case c.Family.Latency && c.Effect < 1:
		return figure(100*c.Effect) + " % + 1 s"
	case c.Family.Latency:
		return "× " + figure(c.Effect)
	default:
		return "+" + figure(100*c.Effect) + " pp"
	}
}

// String names the cell, for the random numbers and for readers.
func (c Cell) String() string {
	return fmt.Sprintf("%s, %g requests/s, base %g %%, %s", c.Family.Name, c.Rate, 100*c.Base, c.EffectName())
}

// Traffic is what comes in this cell.
func (c Cell) Traffic() Traffic { return c.Family.traffic(c) }

func independent(c Cell) Traffic {
	return Traffic{Rate: always(c.Rate), Stable: always(c.Base), Canary: always(min(1, c.Base+c.Effect))}
}

func onEdge(c Cell) Traffic {
	t := independent(c)
	t.Canary = always(1.1*c.Base + judge.Defaults().Tolerance/5)
	return t
}

func incident(c Cell) Traffic {
	t := independent(c)
	t.Stable, t.Canary = more(t.Stable, inIncident, .05), more(t.Canary, inIncident, .05)
	return t
}

func inIncident(since time.Duration) bool { return since >= 3*time.Minute && since < 8*time.Minute }

// more adds to a curve for some time.
func more(curve Curve, when func(time.Duration) bool, by float64) Curve {
	return func(since time.Duration) float64 {
		if when(since) {
			return min(1, curve(since)+by)
		}
		return curve(since)
	}
}

func drift(c Cell) Traffic {
	day := func(since time.Duration) float64 { return 1 + .8*math.Sin(2*math.Pi*since.Minutes()/10) }
	return Traffic{
		Rate:   func(since time.Duration) float64 { return c.Rate * day(since) },
		Stable: func(since time.Duration) float64 { return c.Base * day(since) },
		Canary: func(since time.Duration) float64 { return min(1, c.Base*day(since)+c.Effect) },
	}
}

func overdispersed(c Cell) Traffic {
	t := independent(c)
	t.Correlation = .01
	return t
}

func bursts(c Cell) Traffic {
	t := independent(c)
	t.Burst = 20
	return t
}

func coldStart(c Cell) Traffic {
	t := independent(c)
	warm := t.Canary
	t.Canary = func(since time.Duration) float64 {
		return min(1, warm(since)+.2*max(0, 1-since.Seconds()/15))
	}
	return t
}

// defectBegins is when a late defect begins.
const defectBegins = 5 * time.Minute

func lateDefect(c Cell) Traffic {
	t := independent(c)
	late := func(since time.Duration) bool { return since >= defectBegins }
	t.Canary = more(always(c.Base), late, c.Effect)
	return t
}

// usual is how long a version takes that has no trouble.
var usual = Latency{Median: .05}

// takes is always so long.
func takes(l Latency) func(time.Duration) Latency { return func(time.Duration) Latency { return l } }

// withLatency is traffic whose versions fail equally often, and take so long.
func withLatency(c Cell, stable, canary func(time.Duration) Latency) Traffic {
	return Traffic{
		Rate: always(c.Rate), Stable: always(c.Base), Canary: always(c.Base),
		StableLatency: stable, CanaryLatency: canary,
	}
}

func slower(c Cell) Traffic {
	return withLatency(c, takes(usual), takes(Latency{Median: usual.Median * c.Effect}))
}

func lateAnswers(c Cell) Traffic {
	return withLatency(c, takes(usual), takes(Latency{Median: usual.Median, Late: c.Effect, Delay: 1}))
}

func bothSlower(c Cell) Traffic {
	both := func(since time.Duration) Latency {
		if inIncident(since) {
			return Latency{Median: usual.Median * c.Effect}
		}
		return usual
	}
	return withLatency(c, both, both)
}

func coldAndSlow(c Cell) Traffic {
	return withLatency(c, takes(usual), func(since time.Duration) Latency {
		warm := min(1, since.Seconds()/15)
		return Latency{Median: usual.Median * (c.Effect + (1-c.Effect)*warm)}
	})
}
