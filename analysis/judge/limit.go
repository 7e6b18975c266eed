// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// MaxLimits is how many limits one Config can have, and thereby the size of a State.
const MaxLimits = 8

// Metric is what a Limit bounds.
type Metric string

const (
	// SuccessRate is the share of the canary's requests that did not fail.
	SuccessRate Metric = "SuccessRate"
	// Latency is a quantile of the time in which the canary answers.
	Latency Metric = "Latency"
)

// Limit is an absolute bound on what the canary does, whatever stable does. It
// is measured again each time MinSamples requests of the present step have come
// together, and fails the canary when FailureLimit measurements in a row miss it.
type Limit struct {
	// Metric says what is bounded, and which of the fields below are used.
	Metric Metric
	// Min is the lowest acceptable SuccessRate, as a fraction above 0 and at
	// most 1. Only with SuccessRate.
	Min float64
	// Quantile is the share of requests that must be answered within Max, such
	// as 0.99 for the p99. More than 0, less than 1. Only with Latency.
	Quantile float64
	// Max is the longest acceptable time for that share. It is decided by
	// counting requests below and above it, never by interpolating. Between two
	// bucket bounds the limit is met when enough requests are below the lower,
	// missed when too many are above the upper, and undecided otherwise; give a
	// bucket bound to avoid that. Only with Latency.
	Max time.Duration
	// MinSamples is how many requests one measurement needs; at least 1.
	MinSamples int64
	// FailureLimit is how many measurements in a row must miss the limit to fail
	// the canary; 1 to 100.
	FailureLimit int32
}

const (
	// DefaultMinSamples is the MinSamples for users who set none: the fewest
	// requests of which 99 % is a whole number.
	DefaultMinSamples = 100
	// DefaultFailureLimit is the FailureLimit for users who set none.
	DefaultFailureLimit = 3

	maxFailureLimit = 100
)

// MinSuccessRate is the limit "at least this fraction of the requests succeed"
// with the default samples and failure limit.
func MinSuccessRate(fraction float64) Limit {
	return Limit{Metric: SuccessRate, Min: fraction, MinSamples: DefaultMinSamples, FailureLimit: DefaultFailureLimit}
}

// MaxLatency is the limit "this share of the requests is answered within d"
// with the default samples and failure limit.
func MaxLatency(quantile float64, d time.Duration) Limit {
	return Limit{Metric: Latency, Quantile: quantile, Max: d, MinSamples: DefaultMinSamples, FailureLimit: DefaultFailureLimit}
}

// String names the limit for people, such as "p99 ≤ 500ms".
func (l Limit) String() string {
	if l.Metric == SuccessRate {
		return "success rate ≥ " + percent(l.Min)
	}
	return fmt.Sprintf("p%.4g ≤ %v", 100*l.Quantile, l.Max)
}

// Validate returns the first mistake, naming the field and the fix.
func (l Limit) Validate() error {
	var err error
	switch l.Metric {
	case SuccessRate:
		err = l.validateSuccessRate()
	case Latency:
		err = l.validateLatency()
	default:
		err = fmt.Errorf("metric: %q; give %s or %s", l.Metric, SuccessRate, Latency)
	}
	switch {
	case err != nil:
		return err
	case l.MinSamples < 1:
		return fmt.Errorf("minSamples: %d; give at least 1", l.MinSamples)
	case l.FailureLimit < 1 || l.FailureLimit > maxFailureLimit:
		return fmt.Errorf("failureLimit: %d; give 1 to %d", l.FailureLimit, maxFailureLimit)
	}
	return nil
}

func (l Limit) validateSuccessRate() error {
	switch {
	case !within(l.Min, 1):
		return fmt.Errorf("min: %v; give a fraction above 0 and at most 1, such as 0.99", l.Min)
	case l.Quantile != 0 || l.Max != 0:
		return fmt.Errorf("quantile, max: only for metric %s; remove them", Latency)
	}
	return nil
}

func (l Limit) validateLatency() error {
	switch {
	case !within(l.Quantile, 1) || l.Quantile == 1:
		return fmt.Errorf("quantile: %v; give a fraction between 0 and 1, such as 0.99", l.Quantile)
	case l.Max <= 0:
		return fmt.Errorf("max: %v; give a duration above 0, such as 500ms", l.Max)
	case l.Min != 0:
		return fmt.Errorf("min: only for metric %s; remove it", SuccessRate)
	}
	return nil
}

func validLimits(limits []Limit) bool {
	if len(limits) > MaxLimits {
		return false
	}
	for i, l := range limits {
		if l.Validate() != nil {
			return false
		}
		for _, other := range limits[:i] {
			if l.key() == other.key() {
				return false
			}
		}
	}
	return true
}

// share counts how many requests of an arm were within the limit and how many
// were beyond it; false when the arm does not tell.
func (l Limit) share(a analysis.Arm) (analysis.Share, bool) {
	if l.Metric == SuccessRate {
		return analysis.Share{Total: a.Requests, Within: a.Requests - a.Failures, Beyond: a.Failures}, true
	}
	if a.Latency == nil {
		return analysis.Share{}, a.Requests == 0
	}
	return a.Latency.ShareWithin(l.Max.Seconds(), a.Requests), true
}

// required is the fraction of requests that must be within the limit.
func (l Limit) required() float64 {
	if l.Metric == SuccessRate {
		return l.Min
	}
	return l.Quantile
}

// measure decides one measurement. Where the bounds of the histogram cannot
// tell, both are false.
func (l Limit) measure(s analysis.Share) (met, missed bool) {
	// The slack keeps 99 of 100 from missing 0.99 by a rounding error.
	need := l.required()*float64(s.Total) - 1e-9*float64(s.Total)
	return float64(s.Within) >= need, float64(s.Total-s.Beyond) < need
}

// key tells limits apart by what they bound, so that the counts of a limit
// follow it when the list is edited during a rollout.
func (l Limit) key() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	if l.Metric == SuccessRate {
		h ^= 1
	}
	for _, x := range [...]uint64{math.Float64bits(l.required()), uint64(l.Max)} { //nolint:gosec // only its bits count
		for range 8 {
			h = (h ^ x&0xff) * prime
			x >>= 8
		}
	}
	return h
}
