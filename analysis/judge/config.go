// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Config says what is to be proved, and how surely. Begin with Defaults and
// change what the user has set. Changing it during a rollout is allowed: the
// evidence so far is kept.
type Config struct {
	// MaxFalseRollback is the highest acceptable probability, per rollout, of
	// rolling back a canary that is no worse than stable. More than 0, at most
	// 0.5. The evidence needed is 1/MaxFalseRollback.
	MaxFalseRollback float64
	// Tolerance is the difference in failure rate that a user would accept,
	// as a fraction (0.005 is half a percentage point). More than 0, at most
	// 0.5. The comparison forgives a fifth of it plus a tenth of stable's rate.
	Tolerance float64
	// UsualFailureRate is the failure rate expected of stable before any was
	// measured; it weighs as much as 200 requests. More than 0, less than 0.5.
	// A wrong value delays the verdict and never makes it false.
	UsualFailureRate float64
	// MinRequests is how many requests each version must have answered in the
	// present step before it can pass. At least 1.
	MinRequests int64
	// StaleAfter is how old the newest window may be for a verdict to be a
	// Pass. More than 0.
	StaleAfter time.Duration
	// Startup forgives what a canary gets wrong while it warms up.
	Startup Startup
	// Limits are absolute bounds, at most MaxLimits.
	Limits []Limit
	// MaxBadPromotion is the highest acceptable probability, per step, of saying
	// that a canary may be promoted early that is worse than stable by Tolerance
	// or more throughout the step. At most 0.5. The evidence needed is
	// 1/MaxBadPromotion. 0 means that no canary is promoted early.
	MaxBadPromotion float64
	// MinEvidence is how long the present step must have been measured before its
	// canary may be promoted early. Not negative.
	MinEvidence time.Duration
	// LatencyWeight is the share of the stake that is bet on the canary being
	// slower than stable, where the one on failures is 1. At most 100. 0 means
	// that latency is not compared. Where the proxies do not measure latency when
	// the canary gets its first request, it has no effect.
	LatencyWeight float64
	// Comparisons are the user's metrics that are compared with stable, at most
	// MaxComparisons.
	Comparisons []Comparison
	// MaxCorrelatedFailures states by hand how many requests may fail together for one
	// reason, such as the requests of one connection: failures count that much
	// less as evidence. At least 1, at most 1e6. 0 means that it is fitted on
	// stable's history.
	MaxCorrelatedFailures float64
	// Shares is whether the versions' shares of the requests are to be what the weight
	// says: while they are not, no step passes. It takes windows that count all requests
	// that were shared by the weight, and no others.
	Shares bool
	// ValuesOnly is whether nothing counts the requests, so that limits on Values are all
	// that a canary is held against. They come without windows, by Values.
	ValuesOnly bool
	// Dispersion is what was learned about stable in earlier releases; see
	// State.Dispersion. The zero value is always safe to give.
	Dispersion Dispersion
}

// Startup is the first part of a rollout, in which failures of a version that
// is still warming up are tolerated. No step passes meanwhile.
type Startup struct {
	// For is how long it lasts from the canary's first request on; 0 means none,
	// at most ten minutes.
	For time.Duration
	// Tolerate is added to the tolerated failure rate meanwhile, as a fraction.
	// 0 to 0.9.
	Tolerate float64
}

// Defaults are the settings for users who set none:
//
//	MaxFalseRollback  1 %      evidence 100 rolls back
//	Tolerance         0.5 pp
//	UsualFailureRate  0.1 %
//	MinRequests       50       enough to see a version that fails one request in ten at
//	                           once; smaller effects are the comparison's to find over time
//	StaleAfter        20 s     four windows
//	Startup           15 s, 25 pp
//	Limits            none
//	MaxBadPromotion   1 %      evidence 100 promotes early
//	MinEvidence       30 s
//	LatencyWeight     0.5      a third of the stake is bet on latency
//	Shares            false    whether they can be tested depends on the step
//	ValuesOnly        false
func Defaults() Config {
	return Config{
		MaxFalseRollback: 0.01,
		Tolerance:        0.005,
		UsualFailureRate: 0.001,
		MinRequests:      50,
		StaleAfter:       analysis.StaleAfter,
		Startup:          Startup{For: 15 * time.Second, Tolerate: 0.25},
		MaxBadPromotion:  0.01,
		MinEvidence:      30 * time.Second,
		LatencyWeight:    0.5,
	}
}

// maxStartup keeps a typing error from switching the comparison off.
const maxStartup = 10 * time.Minute

// Validate returns every mistake of the configuration, each naming the field
// and the fix. A Config with mistakes judges everything Inconclusive.
func (c Config) Validate() error {
	if c.valid() {
		return nil
	}
	var m mistakes
	c.checkEvidence(&m)
	c.checkPromotion(&m)
	c.checkLists(&m)
	return errors.Join(m...)
}

type mistakes []error

func (m *mistakes) refuse(bad bool, format string, args ...any) {
	if bad {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

func (c *Config) checkEvidence(m *mistakes) {
	m.refuse(!within(c.MaxFalseRollback, 0.5), "maxFalseRollback: %v; give a probability above 0 and at most 0.5, such as 0.01", c.MaxFalseRollback)
	m.refuse(!within(c.Tolerance, 0.5), "tolerance: %v; give a fraction above 0 and at most 0.5, such as 0.005", c.Tolerance)
	m.refuse(!within(c.UsualFailureRate, 0.5), "usualFailureRate: %v; give a fraction above 0 and at most 0.5, such as 0.001", c.UsualFailureRate)
	m.refuse(c.MinRequests < 1, "minRequests: %d; give at least 1", c.MinRequests)
	m.refuse(c.StaleAfter <= 0, "staleAfter: %v; give a duration above 0, such as 20s", c.StaleAfter)
	m.refuse(c.Startup.For < 0 || c.Startup.For > maxStartup, "startup.for: %v; give 0 to %v", c.Startup.For, maxStartup)
	m.refuse(!upTo(c.Startup.Tolerate, maxTolerate), "startup.tolerate: %v; give a fraction from 0 to %v", c.Startup.Tolerate, maxTolerate)
}

func (c *Config) checkPromotion(m *mistakes) {
	m.refuse(!upTo(c.MaxBadPromotion, 0.5), "maxBadPromotion: %v; give a probability up to 0.5, such as 0.01, or 0 to promote none early", c.MaxBadPromotion)
	m.refuse(c.MinEvidence < 0, "minEvidence: %v; give a duration that is not negative, such as 30s", c.MinEvidence)
	m.refuse(!upTo(c.LatencyWeight, maxWeight), "latencyWeight: %v; give 0 to %d, where failures weigh 1", c.LatencyWeight, maxWeight)
	m.refuse(!validCorrelation(c.MaxCorrelatedFailures), "maxCorrelatedFailures: %v; give 1 to %v requests, or 0 to fit it", c.MaxCorrelatedFailures, maxCorrelatedFailures)
	m.refuse(!c.Dispersion.plausible(), "dispersion: impossible values; give what an earlier release measured, or nothing")
}

func (c *Config) checkLists(m *mistakes) {
	m.refuse(len(c.Comparisons) > MaxComparisons, "comparisons: %d; give at most %d", len(c.Comparisons), MaxComparisons)
	for i := range c.Comparisons {
		if err := c.Comparisons[i].validate(); err != nil {
			m.refuse(true, "comparisons[%d].%w", i, err)
		}
		for j := range i {
			m.refuse(c.Comparisons[i].Name == c.Comparisons[j].Name, "comparisons[%d].name: %q is there twice; give each metric once", i, c.Comparisons[i].Name)
		}
	}
	m.refuse(len(c.Limits) > MaxLimits, "limits: %d; give at most %d", len(c.Limits), MaxLimits)
	for i := range c.Limits {
		if err := c.Limits[i].Validate(); err != nil {
			m.refuse(true, "limits[%d].%w", i, err)
		}
		for j := range i {
			m.refuse(c.Limits[i].same(&c.Limits[j]), "limits[%d]: the same as an earlier one; remove it", i)
		}
	}
}

// maxTolerate leaves room above it for something worse to be distinguished.
const maxTolerate = 0.9

// valid is Validate without the explanations and without allocating.
func (c *Config) valid() bool {
	return within(c.MaxFalseRollback, 0.5) && within(c.Tolerance, 0.5) && within(c.UsualFailureRate, 0.5) &&
		c.MinRequests >= 1 && c.StaleAfter > 0 && c.Startup.valid() && c.validPromotion() &&
		validComparisons(c.Comparisons) && validLimits(c.Limits)
}

func (c *Config) validPromotion() bool {
	return upTo(c.MaxBadPromotion, 0.5) && c.MinEvidence >= 0 && upTo(c.LatencyWeight, maxWeight) &&
		validCorrelation(c.MaxCorrelatedFailures) && c.Dispersion.plausible()
}

func (s Startup) valid() bool {
	return s.For >= 0 && s.For <= maxStartup && upTo(s.Tolerate, maxTolerate)
}

// upTo reports whether 0 <= x <= limit; NaN is not.
func upTo(x, limit float64) bool { return x >= 0 && x <= limit }

// within reports whether 0 < x <= limit; NaN is not.
func within(x, limit float64) bool { return x > 0 && x <= limit }

// MaxComparisons is how many metrics of the user's one Config can compare.
const MaxComparisons = analysis.MaxSamples

// Comparison compares a metric that the user named with stable, in addition to
// failures and latency: one that comes as counts of events of which some are
// bad, or as a histogram of which more is worse.
type Comparison struct {
	// Name is that of the analysis.Sample. 1 to 63 characters, unique.
	Name string
	// Weight is the share of the stake that is bet on this metric, where the one
	// on failures is 1. More than 0, at most 100.
	Weight float64
	// Tolerance is the difference in the share of bad events that a user would
	// accept, as a fraction. More than 0, at most 0.5. It has no effect on a
	// histogram, which is compared as latency is.
	Tolerance float64
}

func (c Comparison) validate() error {
	switch {
	case !validName(c.Name):
		return fmt.Errorf("name: %q; give 1 to %d characters", c.Name, maxName)
	case !within(c.Weight, maxWeight):
		return fmt.Errorf("weight: %v; give more than 0 and at most %d", c.Weight, maxWeight)
	case !within(c.Tolerance, 0.5):
		return fmt.Errorf("tolerance: %v; give a fraction above 0 and at most 0.5, such as 0.005", c.Tolerance)
	}
	return nil
}

const (
	maxName   = 63
	maxWeight = 100
)

func validName(name string) bool { return name != "" && len(name) <= maxName }

func validComparisons(all []Comparison) bool {
	if len(all) > MaxComparisons {
		return false
	}
	for i, m := range all {
		if m.validate() != nil {
			return false
		}
		for _, other := range all[:i] {
			if m.Name == other.Name {
				return false
			}
		}
	}
	return true
}
