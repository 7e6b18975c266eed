// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Traffic is what a Service receives at present.
type Traffic struct {
	// PerSecond are requests a second.
	PerSecond float64
	// FailureRate is the share of them that fails, from 0 to 1.
	FailureRate float64
}

// mostWindows are played for one step; longer ones for a long step.
const mostWindows = 240

// Detect adds to a plan what the analysis could tell by the end of each step, if the
// traffic stayed as it is: it judges a release in which the canary fails as often as
// stable, window by window. Steps for requests that match are left out, as it is unknown
// how many those are.
func Detect(ro *v1alpha1.Rollout, plan []Planned, now Traffic) error {
	steps, field, err := stepsOf(&ro.Spec.Strategy)
	if err != nil {
		return err
	}
	all, err := settings.Of(ro.Spec.Analysis)
	if err != nil {
		return err
	}
	r := release{traffic: now, at: time.Unix(1, 0)}
	for i := range min(len(steps), len(plan)) {
		hold, err := holdOf(&steps[i])
		if err != nil {
			return err
		}
		own, err := all.ForStep(steps[i].Analysis, field(i))
		if err != nil {
			return err
		}
		if len(steps[i].Matches) > 0 {
			continue
		}
		plan[i].note(r.play(own.Judge, steps[i].Weight, hold))
	}
	return nil
}

// note notes an effect, unless the step is over, nothing is compared in it, or nothing
// would be found.
func (p *Planned) note(effect float64) {
	if p.State != Done && p.Weight > 0 && p.Weight < 100 && effect > 0 && effect < 1 {
		p.MinDetectableEffect = pointsOf(effect)
	}
}

// release is one that is played.
type release struct {
	traffic Traffic
	at      time.Time
	state   judge.State
	// sums so far, of which each window has the whole numbers that are new.
	canary, canaryFailures, stable, stableFailures sum
}

// play plays a step and returns the effect that could be detected at its end.
func (r *release) play(config judge.Config, weight int32, hold time.Duration) float64 {
	effect := 1.0
	windows := min(int(hold/analysis.WindowLength), mostWindows)
	for range windows {
		effect = r.window(config, weight, hold/time.Duration(windows))
	}
	return effect
}

// window plays one window and returns the effect that could be detected at its end.
func (r *release) window(config judge.Config, weight int32, length time.Duration) float64 {
	requests := r.traffic.PerSecond * length.Seconds()
	share := float64(weight) / 100
	w := analysis.Window{Start: r.at, End: r.at.Add(length), Weight: weight}
	w.Canary = arm(&r.canary, &r.canaryFailures, requests*share, r.traffic.FailureRate)
	w.Stable = arm(&r.stable, &r.stableFailures, requests*(1-share), r.traffic.FailureRate)
	var result judge.Result
	r.state, result = config.Next(r.state, w)
	r.at = w.End
	return result.MinDetectableEffect
}

func arm(all, failed *sum, requests, rate float64) analysis.Variant {
	a := analysis.Variant{Requests: all.add(requests)}
	a.Failures = min(failed.add(requests*rate), a.Requests)
	return a
}

// sum is a total that grows by fractions and is counted in whole numbers.
type sum struct{ total, counted float64 }

func (s *sum) add(n float64) int64 {
	s.total += n
	whole := math.Floor(s.total) - s.counted
	s.counted += whole
	return int64(whole)
}
