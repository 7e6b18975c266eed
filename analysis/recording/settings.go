// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"math"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Settings are a policy.Stage as a recording has it: lengths in seconds, and no infinities,
// which JSON lacks.
type Settings struct {
	Hold           float64             `json:"hold"`
	OnInconclusive policy.Inconclusive `json:"onInconclusive,omitempty"`
	Early          bool                `json:"early,omitempty"`
	Untested       bool                `json:"untested,omitempty"`
	Judge          Judge               `json:"judge"`
}

// Judge is a judge.Config.
type Judge struct {
	MaxFalseRollback      float64          `json:"maxFalseRollback"`
	Tolerance             float64          `json:"tolerance"`
	UsualFailureRate      float64          `json:"usualFailureRate"`
	MinRequests           int64            `json:"minRequests"`
	StaleAfter            float64          `json:"staleAfter"`
	Startup               Startup          `json:"startup"`
	MaxBadPromotion       float64          `json:"maxBadPromotion,omitempty"`
	MinEvidence           float64          `json:"minEvidence,omitempty"`
	LatencyWeight         float64          `json:"latencyWeight,omitempty"`
	MaxCorrelatedFailures float64          `json:"maxCorrelatedFailures,omitempty"`
	Shares                bool             `json:"shares,omitempty"`
	ValuesOnly            bool             `json:"valuesOnly,omitempty"`
	Limits                []Limit          `json:"limits,omitempty"`
	Comparisons           []Comparison     `json:"comparisons,omitempty"`
	Dispersion            judge.Dispersion `json:"dispersion,omitzero"`
}

// Startup is a judge.Startup.
type Startup struct {
	For      float64 `json:"for"`
	Tolerate float64 `json:"tolerate"`
}

// Limit is a judge.Limit. Without a bound, Low or High is nil.
type Limit struct {
	Metric                  judge.Metric `json:"metric"`
	Min                     float64      `json:"min,omitempty"`
	Quantile                float64      `json:"quantile,omitempty"`
	Max                     float64      `json:"max,omitempty"`
	Name                    string       `json:"name,omitempty"`
	Low                     *float64     `json:"low,omitempty"`
	High                    *float64     `json:"high,omitempty"`
	StaleAfter              float64      `json:"staleAfter,omitempty"`
	MinSamples              int64        `json:"minSamples"`
	ConsecutiveFailureLimit int32        `json:"consecutiveFailureLimit"`
}

// Comparison is a judge.Comparison.
type Comparison struct {
	Name      string  `json:"name"`
	Weight    float64 `json:"weight"`
	Tolerance float64 `json:"tolerance"`
}

// MakeSettings writes a stage down. Its weight is that of the windows.
func MakeSettings(s policy.Stage) *Settings {
	c := s.Judge
	out := &Settings{
		Hold: s.Hold.Seconds(), OnInconclusive: s.OnInconclusive, Early: s.Early, Untested: s.Untested,
		Judge: Judge{
			MaxFalseRollback: c.MaxFalseRollback, Tolerance: c.Tolerance, UsualFailureRate: c.UsualFailureRate,
			MinRequests: c.MinRequests, StaleAfter: c.StaleAfter.Seconds(),
			Startup:         Startup{For: c.Startup.For.Seconds(), Tolerate: c.Startup.Tolerate},
			MaxBadPromotion: c.MaxBadPromotion, MinEvidence: c.MinEvidence.Seconds(), LatencyWeight: c.LatencyWeight,
			MaxCorrelatedFailures: c.MaxCorrelatedFailures, Dispersion: c.Dispersion, Shares: c.Shares, ValuesOnly: c.ValuesOnly,
		},
	}
	for _, l := range c.Limits {
		out.Judge.Limits = append(out.Judge.Limits, makeLimit(l))
	}
	for _, m := range c.Comparisons {
		out.Judge.Comparisons = append(out.Judge.Comparisons, Comparison(m))
	}
	return out
}

func makeLimit(l judge.Limit) Limit {
	out := Limit{
		Metric: l.Metric, Min: l.Min, Quantile: l.Quantile, Max: l.Max.Seconds(), Name: l.Name,
		StaleAfter: l.StaleAfter.Seconds(), MinSamples: l.MinSamples, ConsecutiveFailureLimit: l.ConsecutiveFailureLimit,
	}
	if l.Metric == judge.Value {
		out.Low, out.High = finite(l.Low), finite(l.High)
	}
	return out
}

// finite is nil for an infinity.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Stage is what was written down, if a judge can judge by it.
func (s *Settings) Stage() (policy.Stage, error) {
	j := &s.Judge
	out := policy.Stage{
		OnInconclusive: s.OnInconclusive, Early: s.Early, Untested: s.Untested,
		Judge: judge.Config{
			MaxFalseRollback: j.MaxFalseRollback, Tolerance: j.Tolerance, UsualFailureRate: j.UsualFailureRate, MinRequests: j.MinRequests,
			Startup: judge.Startup{Tolerate: j.Startup.Tolerate}, MaxBadPromotion: j.MaxBadPromotion,
			LatencyWeight: j.LatencyWeight, MaxCorrelatedFailures: j.MaxCorrelatedFailures, Dispersion: j.Dispersion, Shares: j.Shares, ValuesOnly: j.ValuesOnly,
		},
	}
	lengths := []length{
		{"hold", s.Hold, &out.Hold},
		{"judge.staleAfter", j.StaleAfter, &out.Judge.StaleAfter},
		{"judge.startup.for", j.Startup.For, &out.Judge.Startup.For},
		{"judge.minEvidence", j.MinEvidence, &out.Judge.MinEvidence},
	}
	out.Judge.Limits = make([]judge.Limit, len(j.Limits))
	for i, l := range j.Limits {
		limit, field := &out.Judge.Limits[i], fmt.Sprintf("judge.limits[%d].", i)
		*limit = l.limit()
		lengths = append(lengths, length{field + "max", l.Max, &limit.Max}, length{field + "staleAfter", l.StaleAfter, &limit.StaleAfter})
	}
	for _, m := range j.Comparisons {
		out.Judge.Comparisons = append(out.Judge.Comparisons, judge.Comparison(m))
	}
	for _, l := range lengths {
		if err := l.read(); err != nil {
			return policy.Stage{}, err
		}
	}
	if err := out.Judge.Validate(); err != nil {
		return policy.Stage{}, fmt.Errorf("judge.%w", err)
	}
	return out, nil
}

func (l *Limit) limit() judge.Limit {
	out := judge.Limit{Metric: l.Metric, Min: l.Min, Quantile: l.Quantile, Name: l.Name, MinSamples: l.MinSamples, ConsecutiveFailureLimit: l.ConsecutiveFailureLimit}
	if l.Metric == judge.Value {
		out.Low, out.High = orInfinity(l.Low, -1), orInfinity(l.High, 1)
	}
	return out
}

func orInfinity(x *float64, sign int) float64 {
	if x == nil {
		return math.Inf(sign)
	}
	return *x
}

// length is a length of time in seconds that is to be read.
type length struct {
	field   string
	seconds float64
	into    *time.Duration
}

func (l length) read() error {
	if !(l.seconds >= 0 && l.seconds <= farthest) {
		return fmt.Errorf("%s: %v; give seconds, from 0 to %g", l.field, l.seconds, float64(farthest))
	}
	*l.into = time.Duration(math.Round(l.seconds * float64(time.Second)))
	return nil
}
