// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"math"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Proposal are steps that fit the traffic of a Service.
type Proposal struct {
	Steps []ProposedStep
	// Tolerance is what the steps detect: the one that was asked for, unless the traffic is
	// too little for it.
	Tolerance v1alpha1.PercentagePoints
	// Raised is whether Tolerance is more than was asked for.
	Raised bool
}

// ProposedStep is a step with what it would detect by itself.
type ProposedStep struct {
	Weight int32
	Hold   time.Duration
	// MinDetectableEffect is how much more often than stable the canary would have to fail to
	// be detected within this step alone, such as "0.5pp"; "" when nothing would be.
	MinDetectableEffect string
	// Detects is whether that is no more than the tolerance.
	Detects bool
}

// Bounds of what is proposed.
const (
	// shortestHold gives a version time to fail in ways that do not begin at once.
	shortestHold = 2 * time.Minute
	// longestHold is how long one step may take.
	longestHold = time.Hour
	// firstHold is how long the first step should take at most: with less traffic, more of
	// it goes to the canary instead.
	firstHold = 20 * time.Minute
	// mostPoints is the tolerance that is not raised any further, in percentage points.
	mostPoints = 50
)

// ladders are the weights that are tried in their order: the first one whose first step is
// short enough is taken.
var ladders = [][]int32{{5, 25, 50}, {10, 25, 50}, {20, 50}}

// Propose finds steps that would each detect a canary that fails more often than stable by
// the tolerance, if the traffic stayed as it is.
func Propose(now Traffic, tolerance v1alpha1.PercentagePoints) (Proposal, error) {
	all, err := settings.Of(&v1alpha1.Analysis{Tolerance: tolerance})
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{Tolerance: tolerance}
	last := ladders[len(ladders)-1]
	for _, weights := range ladders {
		first := propose(all.Judge, now, weights[0], all.Judge.Tolerance)
		if first.Detects && first.Hold <= firstHold {
			p.Steps = steps(all.Judge, now, weights, all.Judge.Tolerance)
			return p, nil
		}
	}
	p.Steps = steps(all.Judge, now, last, all.Judge.Tolerance)
	if p.Detects() {
		return p, nil
	}
	return raise(now, p, last)
}

// raise finds the tolerance that the last step detects in its longest time. Where there is
// none, the proposal stays as it is.
func raise(now Traffic, p Proposal, weights []int32) (Proposal, error) {
	for points := 1.0; points <= mostPoints; points = math.Ceil(points * 1.25) {
		raised := Proposal{Raised: true, Tolerance: v1alpha1.PercentagePoints(strconv.FormatFloat(points, 'f', -1, 64) + "pp")}
		all, err := settings.Of(&v1alpha1.Analysis{Tolerance: raised.Tolerance})
		if err != nil {
			return Proposal{}, err
		}
		raised.Steps = steps(all.Judge, now, weights, all.Judge.Tolerance)
		if raised.Detects() {
			return raised, nil
		}
	}
	return p, nil
}

// Detects is whether the last step detects the tolerance.
func (p Proposal) Detects() bool {
	return len(p.Steps) > 0 && p.Steps[len(p.Steps)-1].Detects
}

func steps(config judge.Config, now Traffic, weights []int32, tolerance float64) []ProposedStep {
	list := make([]ProposedStep, 0, len(weights))
	for _, w := range weights {
		list = append(list, propose(config, now, w, tolerance))
	}
	return list
}

// propose finds how long a step has to be to detect an effect by itself: a whole number of
// minutes, and from ten minutes on of five.
func propose(config judge.Config, now Traffic, weight int32, effect float64) ProposedStep {
	r := release{traffic: now, at: time.Unix(1, 0)}
	found, passed := 1.0, time.Duration(0)
	step := ProposedStep{Weight: weight}
	for step.Hold = shortestHold; ; step.Hold = longer(step.Hold) {
		for ; passed < step.Hold; passed += analysis.WindowLength {
			found = r.window(config, weight, analysis.WindowLength)
		}
		if step.Detects = found <= effect; step.Detects || step.Hold >= longestHold {
			break
		}
	}
	if found < 1 {
		step.MinDetectableEffect = pointsOf(found)
	}
	return step
}

// longer is the next hold that is easy to read.
func longer(hold time.Duration) time.Duration {
	if hold < 10*time.Minute {
		return hold + time.Minute
	}
	return hold + 5*time.Minute
}

// pointsOf is a fraction in percentage points with two digits.
func pointsOf(effect float64) string {
	return strconv.FormatFloat(100*effect, 'g', 2, 64) + "pp"
}
