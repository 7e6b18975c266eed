// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	defaultProgressDeadline = 10 * time.Minute
	// minObservation is how long traffic is watched before onInconclusive may
	// promote or roll back: the start-up phase of the analysis and three windows.
	minObservation = 30 * time.Second
)

// settings is the spec as values.
type settings struct {
	steps          []step
	deadline       time.Duration
	judge          judge.Config
	onInconclusive v1alpha1.InconclusivePolicy
}

type step struct {
	weight int32
	hold   time.Duration
}

// parseSettings reads the spec. The error names the field and the fix: it can
// only come from an object that the schema did not check.
func parseSettings(spec *v1alpha1.RolloutSpec) (settings, error) {
	s := settings{deadline: defaultProgressDeadline}
	if spec.ProgressDeadline != "" {
		d, err := spec.ProgressDeadline.Parse()
		if err != nil {
			return s, fmt.Errorf("spec.progressDeadline: %w", err)
		}
		s.deadline = d
	}
	if len(spec.Strategy.Steps) == 0 {
		return s, errors.New("spec.strategy.steps: is empty; add at least one step with a weight")
	}
	for i, in := range spec.Strategy.Steps {
		out := step{weight: min(max(in.Weight, 0), 100)}
		if in.Hold != "" {
			d, err := in.Hold.Parse()
			if err != nil {
				return s, fmt.Errorf("spec.strategy.steps[%d].hold: %w", i, err)
			}
			out.hold = d
		}
		s.steps = append(s.steps, out)
	}
	return s, s.parseAnalysis(spec.Analysis)
}

func (s *settings) parseAnalysis(a *v1alpha1.Analysis) error {
	s.judge, s.onInconclusive = judge.Defaults(), v1alpha1.InconclusiveHold
	if a == nil {
		return nil
	}
	if a.OnInconclusive != "" {
		s.onInconclusive = a.OnInconclusive
	}
	if a.MinRequests != nil {
		s.judge.MinRequests = int64(*a.MinRequests)
	}
	if err := fraction("spec.analysis.maxFalseRollback", a.MaxFalseRollback, &s.judge.MaxFalseRollback); err != nil {
		return err
	}
	if err := fraction("spec.analysis.tolerance", a.Tolerance, &s.judge.Tolerance); err != nil {
		return err
	}
	if err := s.parseLimits(a); err != nil {
		return err
	}
	if err := s.judge.Validate(); err != nil {
		return fmt.Errorf("spec.analysis.%w", err)
	}
	return nil
}

func (s *settings) parseLimits(a *v1alpha1.Analysis) error {
	limit := int32(judge.DefaultFailureLimit)
	if a.FailureLimit != nil {
		limit = *a.FailureLimit
	}
	add := func(field string, l judge.Limit) error {
		l.FailureLimit = limit
		s.judge.Limits = append(s.judge.Limits, l)
		if err := l.Validate(); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		return nil
	}
	if a.MinSuccessRate != "" {
		var rate float64
		if err := fraction("spec.analysis.minSuccessRate", a.MinSuccessRate, &rate); err != nil {
			return err
		}
		if err := add("spec.analysis.minSuccessRate", judge.MinSuccessRate(rate)); err != nil {
			return err
		}
	}
	for i, l := range a.MaxLatency {
		d, err := l.Max.Parse()
		if err != nil {
			return fmt.Errorf("spec.analysis.maxLatency[%d].max: %w", i, err)
		}
		q, err := strconv.Atoi(strings.TrimPrefix(l.Quantile, "p"))
		if err != nil {
			return fmt.Errorf("spec.analysis.maxLatency[%d].quantile: %q is not one of p50, p90 and p99", i, l.Quantile)
		}
		if err := add(fmt.Sprintf("spec.analysis.maxLatency[%d]", i), judge.MaxLatency(float64(q)/100, d)); err != nil {
			return err
		}
	}
	return nil
}

// fraction overwrites out when the value is set.
func fraction[T interface {
	~string
	Fraction() (float64, error)
}](field string, value T, out *float64,
) error {
	if value == "" {
		return nil
	}
	f, err := value.Fraction()
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*out = f
	return nil
}

// canaryReplicas is how many pods a weight needs out of all replicas: its share,
// rounded up, so that the canary's pods are never busier than stable's.
func canaryReplicas(weight, replicas int32) int32 {
	if replicas <= 0 {
		return 0
	}
	n := (int64(replicas)*int64(weight) + 99) / 100
	return int32(min(max(n, 1), int64(replicas))) //nolint:gosec // at most replicas
}
