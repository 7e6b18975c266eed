// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Recording is a release over time, for charts and their tables.
type Recording struct {
	Revision string  `json:"revision"`
	Points   []Point `json:"points"`
	// Tolerance of the difference, in percentage points, and the evidence that rolls back,
	// as they were last.
	Tolerance float64 `json:"tolerance"`
	Threshold float64 `json:"threshold"`
	// Settings of the step that was judged last, as a Rollout has them.
	Settings RecordedSettings `json:"settings"`
	// Versions are the canary and stable over the whole release.
	Versions []Answered `json:"versions"`
}

// RecordedSettings are those that can be tried otherwise.
type RecordedSettings struct {
	Tolerance        string `json:"tolerance"`
	MaxFalseRollback string `json:"maxFalseRollback"`
	MinRequests      string `json:"minRequests"`
	Startup          string `json:"startup"`
	OnInconclusive   string `json:"onInconclusive"`
	Hold             string `json:"hold"`
}

func recordedSettings(s *recording.Settings) RecordedSettings {
	return RecordedSettings{
		Tolerance: fmt.Sprintf("%.6gpp", 100*s.Judge.Tolerance), MaxFalseRollback: fmt.Sprintf("%.6g%%", 100*s.Judge.MaxFalseRollback),
		MinRequests: strconv.FormatInt(s.Judge.MinRequests, 10), Startup: length(s.Judge.Startup.For),
		OnInconclusive: string(s.OnInconclusive), Hold: length(s.Hold),
	}
}

// Slower are the differences of quantiles of the latency, in milliseconds: negative where the
// canary is faster. A quantile that lies above all bounds has none.
type Slower struct {
	P50 *float64 `json:"p50,omitempty"`
	P95 *float64 `json:"p95,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
}

// Answered is what a version answered.
type Answered struct {
	Role     string `json:"role"`
	Requests int64  `json:"requests"`
	Failures int64  `json:"failures"`
	// P50, P95 and P99 are bounds of the latency in seconds.
	P50 *float64 `json:"p50,omitempty"`
	P95 *float64 `json:"p95,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
}

func answered(role string, v *analysis.Variant) Answered {
	return Answered{Role: role, Requests: v.Requests, Failures: v.Failures, P50: bound(v, 50), P95: bound(v, 95), P99: bound(v, 99)}
}

// Point is a window of a release.
type Point struct {
	// At is the end of the window in Unix seconds.
	At     float64 `json:"at"`
	Weight int32   `json:"weight"`
	Step   int     `json:"step"`
	// What the versions answered in the window.
	CanaryRequests int64 `json:"canaryRequests"`
	CanaryFailures int64 `json:"canaryFailures"`
	StableRequests int64 `json:"stableRequests"`
	StableFailures int64 `json:"stableFailures"`
	// Difference of the failure rates of all windows so far, in percentage points, between Low
	// and High with a confidence of 95 %.
	Difference *float64 `json:"difference,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	// CanaryP99 and StableP99 are bounds of the latency in seconds.
	CanaryP99 *float64 `json:"canaryP99,omitempty"`
	StableP99 *float64 `json:"stableP99,omitempty"`
	// Slower says by how much the canary is slower than stable in all windows so far; nil where
	// one of them was not timed.
	Slower *Slower `json:"slower,omitempty"`
	// Boundary is the least Difference, had it been the same all the time, with which the release
	// would have been rolled back by now; nil where none would.
	Boundary *float64 `json:"boundary,omitempty"`
	Evidence *float64 `json:"evidence,omitempty"`
	Verdict  string   `json:"verdict,omitempty"`
	Action   string   `json:"action,omitempty"`
	// Gap says why windows before this one may be missing, or "".
	Gap string `json:"gap,omitempty"`
	// Live is whether the window is not stored yet. What the versions answered is then that of
	// all windows so far, of which each was judged.
	Live bool `json:"live,omitempty"`
}

// liveOf is the window that was judged last, as the status has it. It is nil when nothing was
// judged in the release in progress.
func liveOf(ro *v1alpha1.Rollout) *Point {
	a, step := ro.Status.Analysis, ro.Status.Step
	if a == nil || a.LastWindowEnd == nil || step == nil || ro.Status.Canary == nil {
		return nil
	}
	p := Point{
		At: float64(a.LastWindowEnd.UnixMilli()) / 1000, Step: int(step.Index), Verdict: a.Verdict, Live: true,
		CanaryRequests: a.CanaryRequests, CanaryFailures: a.CanaryFailures, StableRequests: a.StableRequests, StableFailures: a.StableFailures,
	}
	if w := ro.Status.Weight; w != nil && w.Observed != nil {
		p.Weight = *w.Observed
	}
	if a.CanaryRequests > 0 && a.StableRequests > 0 {
		p.compare(analysis.Variant{Requests: a.CanaryRequests, Failures: a.CanaryFailures}, analysis.Variant{Requests: a.StableRequests, Failures: a.StableFailures})
	}
	if evidence, err := strconv.ParseFloat(a.Evidence, 64); err == nil && evidence > 0 {
		p.Evidence = &evidence
	}
	return &p
}

// compare sets the difference of what the versions answered so far.
func (p *Point) compare(canary, stable analysis.Variant) {
	difference, low, high := compare(canary, stable)
	p.Difference, p.Low, p.High = &difference, &low, &high
}

// MakeRecording makes points of a stored recording.
func MakeRecording(stored string) (*Recording, error) {
	lines, err := recording.ReadText(stored)
	if err != nil {
		return nil, err
	}
	release := lines[0].Release // every stored recording has one
	r := &Recording{Revision: release.Revision, Points: []Point{}}
	var sum sums
	for i := range lines {
		l := &lines[i]
		if s := l.Settings; s != nil {
			r.Tolerance, r.Threshold = 100*s.Judge.Tolerance, 1/s.Judge.MaxFalseRollback
			r.Settings = recordedSettings(s)
		}
		if !l.OnlyValues() {
			r.Points = append(r.Points, sum.point(l, release.Began))
		}
	}
	r.bound(lines)
	r.Versions = []Answered{answered("canary", &sum.canary), answered("stable", &sum.stable)}
	return r, nil
}

// bound sets the boundary of each point.
func (r *Recording) bound(lines []recording.Line) {
	next := 0
	for i, least := range replay.Boundary(lines, r.Tolerance/100) {
		if lines[i].OnlyValues() {
			continue
		}
		if least != nil {
			r.Points[next].Boundary = new(100 * *least)
		}
		next++
	}
}

// sums are what the versions answered so far.
type sums struct{ canary, stable analysis.Variant }

func (s *sums) point(l *recording.Line, began time.Time) Point {
	w := l.Window(began)
	p := Point{
		At: float64(w.End.UnixMilli()) / 1000, Weight: w.Weight, Step: *l.Step, Gap: string(l.Gap),
		CanaryRequests: w.Canary.Requests, CanaryFailures: w.Canary.Failures, CanaryP99: bound(&w.Canary, 99),
		StableRequests: w.Stable.Requests, StableFailures: w.Stable.Failures, StableP99: bound(&w.Stable, 99),
	}
	s.canary, s.stable = s.canary.Plus(w.Canary), s.stable.Plus(w.Stable)
	if s.canary.Requests > 0 && s.stable.Requests > 0 {
		p.compare(s.canary, s.stable)
		p.Slower = slower(s.canary, s.stable)
	}
	if j := l.Judged; j != nil {
		p.Verdict, p.Action = string(j.Verdict), string(j.Action)
		if j.Rollback > 0 {
			p.Evidence = &j.Rollback
		}
	}
	return p
}

// bound of a quantile of the latency, in percent, is nil when nothing was timed, or when it lies
// above all bounds.
func bound(v *analysis.Variant, percent int64) *float64 {
	if v.Latency != nil {
		if bound, found := v.Latency.Bound(percent, v.Requests); found {
			return &bound
		}
	}
	return nil
}

// slower compares the latencies of what two versions answered.
func slower(canary, stable analysis.Variant) *Slower {
	if canary.Latency == nil || stable.Latency == nil {
		return nil
	}
	by := func(share float64) *float64 {
		c, known := canary.Latency.Quantile(share, canary.Requests)
		s, both := stable.Latency.Quantile(share, stable.Requests)
		if !known || !both {
			return nil
		}
		const precision = 100 // parts of a millisecond
		return new(math.Round(1000*precision*(c-s)) / precision)
	}
	return &Slower{P50: by(0.5), P95: by(0.95), P99: by(0.99)}
}

// compare is the difference of two failure rates in percentage points with Newcombe's hybrid
// score interval, which is sound for few failures too.
func compare(canary, stable analysis.Variant) (difference, low, high float64) {
	c, cLow, cHigh := wilson(canary)
	s, sLow, sHigh := wilson(stable)
	d := c - s
	return 100 * d, 100 * (d - math.Hypot(c-cLow, sHigh-s)), 100 * (d + math.Hypot(cHigh-c, s-sLow))
}

// z is the quantile of the normal distribution for an interval of 95 %.
const z = 1.959964

// wilson is a failure rate with its score interval.
func wilson(v analysis.Variant) (rate, low, high float64) {
	n := float64(v.Requests)
	rate = float64(v.Failures) / n
	middle := (rate + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(rate*(1-rate)/n+z*z/(4*n*n))
	return rate, max(0, middle-half), min(1, middle+half)
}
