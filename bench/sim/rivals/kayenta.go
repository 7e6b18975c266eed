// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// Kayenta is the judge NetflixACAJudge of Spinnaker's canary analysis
// (NetflixACAJudge.scala, MannWhitneyClassifier.scala, IQRDetector.scala) with
// one metric, the failure rate, for which an increase is bad:
//
//   - Points in time without requests are removed, then outliers beyond three
//     interquartile ranges and the 1st and 99th percentile.
//   - The metric is High when the lower end of the 98 % confidence interval of
//     the Mann–Whitney test lies above the fence, a quarter of the estimated
//     shift.
//   - With one metric, High is a score of 0, below any marginal score: the canary
//     is rolled back. It is judged every interval, over all points so far.
//
// A point is a window of five seconds rather than Kayenta's usual minute, which
// gives it twelve times the points: it asks for fifty or more.
type Kayenta struct {
	// Confidence of the interval: 0.98.
	Confidence float64
	// Tolerance is the fence as a fraction of the estimated shift: 0.25.
	Tolerance float64

	schedule
	interval       interval
	canary, stable []float64
}

// NewKayenta has the parameters that NetflixACAJudge sets.
func NewKayenta(plan time.Duration) *Kayenta {
	return &Kayenta{Confidence: .98, Tolerance: .25, schedule: schedule{plan: plan}}
}

// Next judges one more window.
func (k *Kayenta) Next(w analysis.Window) policy.Action {
	k.canary = appendRate(k.canary, w.Canary)
	k.stable = appendRate(k.stable, w.Stable)
	planned := k.next(w)
	if k.interval.add(w) && k.high() {
		return policy.RollBack
	}
	return planned
}

func appendRate(points []float64, a analysis.Variant) []float64 {
	if a.Requests == 0 {
		return points
	}
	return append(points, float64(a.Failures)/float64(a.Requests))
}

// high classifies the metric.
func (k *Kayenta) high() bool {
	canary, stable := withoutOutliers(k.canary), withoutOutliers(k.stable)
	if len(canary) == 0 || len(stable) == 0 || slices.Equal(canary, stable) || allTied(canary, stable) {
		return false
	}
	shift := mannWhitney{canary, stable}
	low := shift.quantile(1 - (1-k.Confidence)/2)
	return low > 0 && low > k.Tolerance*math.Abs(shift.quantile(.5))
}

func allTied(x, y []float64) bool {
	return x[0] == y[0] && x[len(x)-1] == x[0] && y[len(y)-1] == y[0]
}

// withoutOutliers returns the points within the fences, sorted.
func withoutOutliers(points []float64) []float64 {
	if len(points) == 0 {
		return nil
	}
	p := slices.Sorted(slices.Values(points))
	const factor = 3
	q1, q3 := percentile(p, 25), percentile(p, 75)
	low := min(q1-factor*(q3-q1), percentile(p, 1))
	high := max(q3+factor*(q3-q1), percentile(p, 99))
	return slices.DeleteFunc(p, func(x float64) bool { return x < low || x > high })
}

// percentile of sorted points as Apache Commons Math estimates it by default
// (LEGACY): at position q(n+1)/100.
func percentile(sorted []float64, q float64) float64 {
	position := q * float64(len(sorted)+1) / 100
	i := int(math.Floor(position))
	switch {
	case i < 1:
		return sorted[0]
	case i >= len(sorted):
		return sorted[len(sorted)-1]
	}
	return sorted[i-1] + (position-float64(i))*(sorted[i]-sorted[i-1])
}
