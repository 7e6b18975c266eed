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
	// Value is a plain number that a user named: an analysis.Value.
	Value Metric = "Value"
)

// Limit is an absolute bound on what the canary does, whatever stable does, and
// fails the canary when ConsecutiveFailureLimit measurements in a row miss it. SuccessRate
// and Latency are measured again each time MinSamples requests of the present
// step have come together; each Value is a measurement by itself.
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
	// Name is that of the analysis.Value. 1 to 63 characters. Only with Value.
	Name string
	// Low and High are the least and the greatest acceptable number; give an
	// infinity for no bound. Only with Value.
	Low, High float64
	// StaleAfter is how old the newest number may be for a step to pass. More
	// than 0. Only with Value.
	StaleAfter time.Duration
	// MinSamples is how many requests one measurement needs, and with Value how
	// many numbers of the present step a Pass needs; at least 1.
	MinSamples int64
	// ConsecutiveFailureLimit is how many measurements in a row must miss the limit to fail
	// the canary; 1 to 100.
	ConsecutiveFailureLimit int32
}

const (
	// DefaultMinSamples is the MinSamples for users who set none: the fewest
	// requests of which 99 % is a whole number.
	DefaultMinSamples = 100
	// DefaultConsecutiveFailureLimit is the ConsecutiveFailureLimit for users who set none.
	DefaultConsecutiveFailureLimit = 3
	// DefaultStaleAfter is the StaleAfter of a Value for users who set none.
	DefaultStaleAfter = 5 * time.Minute

	maxConsecutiveFailureLimit = 100
)

// MinSuccessRate is the limit "at least this fraction of the requests succeed"
// with the default samples and failure limit.
func MinSuccessRate(fraction float64) Limit {
	return Limit{Metric: SuccessRate, Min: fraction, MinSamples: DefaultMinSamples, ConsecutiveFailureLimit: DefaultConsecutiveFailureLimit}
}

// MaxLatency is the limit "this share of the requests is answered within d"
// with the default samples and failure limit.
func MaxLatency(quantile float64, d time.Duration) Limit {
	return Limit{Metric: Latency, Quantile: quantile, Max: d, MinSamples: DefaultMinSamples, ConsecutiveFailureLimit: DefaultConsecutiveFailureLimit}
}

// ValueBetween is the limit "the number that the user named lies between low and
// high" with the default failure limit and age; infinity is no bound.
func ValueBetween(name string, low, high float64) Limit {
	return Limit{
		Metric: Value, Name: name, Low: low, High: high,
		MinSamples: 1, ConsecutiveFailureLimit: DefaultConsecutiveFailureLimit, StaleAfter: DefaultStaleAfter,
	}
}

// String names the limit for users, such as "p99 ≤ 500ms".
func (l Limit) String() string {
	switch {
	case l.Metric == SuccessRate:
		return "success rate ≥ " + percent(l.Min)
	case l.Metric == Latency:
		return fmt.Sprintf("p%.4g ≤ %v", 100*l.Quantile, l.Max)
	case math.IsInf(l.High, 1):
		return fmt.Sprintf("%s ≥ %v", l.Name, l.Low)
	case math.IsInf(l.Low, -1):
		return fmt.Sprintf("%s ≤ %v", l.Name, l.High)
	}
	return fmt.Sprintf("%v ≤ %s ≤ %v", l.Low, l.Name, l.High)
}

// Validate returns the first mistake, naming the field and the fix.
func (l Limit) Validate() error {
	var err error
	switch l.Metric {
	case SuccessRate:
		err = l.validateSuccessRate()
	case Latency:
		err = l.validateLatency()
	case Value:
		err = l.validateValue()
	default:
		err = fmt.Errorf("metric: %q; give %s, %s or %s", l.Metric, SuccessRate, Latency, Value)
	}
	switch {
	case err != nil:
		return err
	case l.Metric != Value && l.aboutValue():
		return fmt.Errorf("name, low, high, staleAfter: only for metric %s; remove them", Value)
	case l.MinSamples < 1:
		return fmt.Errorf("minSamples: %d; give at least 1", l.MinSamples)
	case l.ConsecutiveFailureLimit < 1 || l.ConsecutiveFailureLimit > maxConsecutiveFailureLimit:
		return fmt.Errorf("consecutiveFailureLimit: %d; give 1 to %d", l.ConsecutiveFailureLimit, maxConsecutiveFailureLimit)
	}
	return nil
}

// aboutValue reports whether a field is set that only a Value has.
func (l *Limit) aboutValue() bool {
	return l.Name != "" || l.Low != 0 || l.High != 0 || l.StaleAfter != 0
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

func (l Limit) validateValue() error {
	switch {
	case !validName(l.Name):
		return fmt.Errorf("name: %q; give 1 to %d characters", l.Name, maxName)
	case !(l.Low <= l.High), math.IsInf(l.Low, 1), math.IsInf(l.High, -1), math.IsInf(l.Low, -1) && math.IsInf(l.High, 1):
		return fmt.Errorf("low, high: %v, %v; give numbers of which low is not above high, and an infinity for at most one of them", l.Low, l.High)
	case l.StaleAfter <= 0:
		return fmt.Errorf("staleAfter: %v; give a duration above 0, such as 5m", l.StaleAfter)
	case l.Min != 0 || l.Quantile != 0 || l.Max != 0:
		return fmt.Errorf("min, quantile, max: not for metric %s; give low and high", Value)
	}
	return nil
}

func validLimits(limits []Limit) bool {
	if len(limits) > MaxLimits {
		return false
	}
	for i := range limits {
		if limits[i].Validate() != nil {
			return false
		}
		for j := range limits[:i] {
			if limits[i].same(&limits[j]) {
				return false
			}
		}
	}
	return true
}

// share counts how many requests of an variant were within the limit and how many
// were beyond it; false when the variant does not tell.
func (l *Limit) share(a *analysis.Variant) (analysis.Share, bool) {
	if l.Metric == SuccessRate {
		return analysis.Share{Total: a.Requests, Within: a.Requests - a.Failures, Beyond: a.Failures}, true
	}
	if a.Latency == nil {
		return analysis.Share{}, a.Requests == 0
	}
	return a.Latency.ShareWithin(l.Max.Seconds(), a.Requests), true
}

// required is the fraction of requests that must be within the limit.
func (l *Limit) required() float64 {
	if l.Metric == SuccessRate {
		return l.Min
	}
	return l.Quantile
}

// measure decides one measurement. Where the bounds of the histogram cannot
// tell, both are false.
func (l *Limit) measure(s analysis.Share) (met, missed bool) {
	// The slack keeps 99 of 100 from missing 0.99 by a rounding error.
	need := l.required()*float64(s.Total) - 1e-9*float64(s.Total)
	return float64(s.Within) >= need, float64(s.Total-s.Beyond) < need
}

// key distinguishes limits by what they bound, so that the counts of a limit
// follow it when the list is edited during a rollout. It is never 0.
func (l *Limit) key() uint64 {
	h := newHash()
	h.addString(string(l.Metric))
	h.addString(l.Name)
	for _, x := range [...]float64{l.Min, l.Quantile, l.Max.Seconds(), l.Low, l.High} {
		h.add(math.Float64bits(x))
	}
	return max(uint64(h), 1)
}

// same reports whether both bound the same.
func (l *Limit) same(o *Limit) bool {
	return l.Metric == o.Metric && l.Name == o.Name && l.Min == o.Min && l.Quantile == o.Quantile &&
		l.Max == o.Max && l.Low == o.Low && l.High == o.High
}
