// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

// A canary whose evidence suffices ahead of time gets nearly all of the traffic, and
// stable the rest until the last step would have ended: a defect that begins late is
// found only by comparison.
//
//	last step                 holdout                         then
//	50 %  … evidence suffices 95 % until the step's end       100 %
const holdoutWeight = fullWeight - policy.Holdout

const (
	defaultProgressDeadline = 10 * time.Minute
	defaultScaleDownDelay   = 30 * time.Second
	defaultHistory          = 10
)

// settings is the spec as values.
type settings struct {
	steps          []step
	deadline       time.Duration
	rollBackOver   time.Duration
	pauseOnFailure bool
	judge          judge.Config
	onInconclusive v1alpha1.InconclusivePolicy
	// early is whether a canary is promoted ahead of time when the evidence suffices.
	early    bool
	calendar schedule.Calendar
	// byReplicas is whether nothing is put in the path: the canary's share is that
	// of its pods, and nobody measures it.
	byReplicas bool
}

// parseSettings reads the spec. The error names the field and the fix: it can
// only come from an object that the schema did not check.
func parseSettings(spec *v1alpha1.RolloutSpec, router v1alpha1.RouterName, freezes []v1alpha1.Freeze, m Metrics) (settings, error) {
	s := settings{
		deadline: defaultProgressDeadline, byReplicas: router == v1alpha1.RouterNone,
		pauseOnFailure: spec.Strategy.OnFailure == v1alpha1.OnFailurePause,
	}
	var err error
	s.calendar, err = schedule.Parse(spec.Schedule, freezes)
	// What can be read is, whatever can't: a release in progress is judged by it.
	err = errors.Join(
		err,
		analysis.Duration("spec.progressDeadline", spec.ProgressDeadline, &s.deadline),
		analysis.Duration("spec.strategy.rollBackOver", spec.Strategy.RollBackOver, &s.rollBackOver),
		s.parseAnalysis(spec.Analysis, m),
	)
	if err == nil {
		err = s.parseSteps(spec)
	}
	if err == nil && s.byReplicas {
		err = s.checkByReplicas(spec)
	}
	if err != nil {
		s.steps = nil
	}
	return s, err
}

// checkByReplicas refuses what nothing in the path can do, rather than doing
// something else.
func (s *settings) checkByReplicas(spec *v1alpha1.RolloutSpec) error {
	if spec.Strategy.Type == v1alpha1.StrategyBlueGreen {
		return errors.New("spec.router: none can't serve the strategy BlueGreen, since pods of both versions answer as soon as they are ready; name another router")
	}
	if spec.Analysis != nil {
		return errors.New("spec.analysis: nothing measures the traffic with the router none; remove spec.analysis, or name another router")
	}
	for i, step := range s.steps {
		if len(step.Matches) > 0 || step.Mirror > 0 {
			return fmt.Errorf("spec.strategy.steps[%d]: the router none can neither match nor mirror; remove matches and mirror, or name another router", i)
		}
	}
	return nil
}

// parseAnalysis leaves the defaults where the spec can't be read.
func (s *settings) parseAnalysis(a *v1alpha1.Analysis, m Metrics) error {
	read, err := analysis.Of(a)
	s.judge, s.onInconclusive, s.early = read.Judge, read.OnInconclusive, read.Early
	if err != nil {
		s.judge = judge.Defaults()
		return err
	}
	return s.add(m)
}

// add holds the release against the user's metrics too.
func (s *settings) add(m Metrics) error {
	if m.Problem != "" {
		return errors.New(m.Problem)
	}
	with := s.judge
	with.Limits, with.Comparisons = append(slices.Clone(s.judge.Limits), m.Limits...), m.Comparisons
	if err := with.Validate(); err != nil {
		return fmt.Errorf("spec.analysis, with the metrics of its templates: %w", err)
	}
	s.judge = with
	return nil
}

// onlyValuesWithoutTraffic leaves to a step that sends no requests to the canary what
// can be known without any.
func (s *settings) onlyValuesWithoutTraffic() {
	for i := range s.steps {
		if j := &s.steps[i].judge; s.steps[i].Weight == 0 {
			j.Limits = slices.DeleteFunc(slices.Clone(j.Limits), func(l judge.Limit) bool { return l.Metric != judge.Value })
			j.Comparisons = nil
		}
	}
}

// onlyTheLastPromotes leaves the evidence for a promotion to the last step: what
// is known at one weight certifies no other.
func (s *settings) onlyTheLastPromotes() {
	for i := range s.steps {
		if !s.early || i < len(s.steps)-1 || !s.steps[i].canBeEarly() {
			s.steps[i].judge.MaxBadPromotion = 0
		}
	}
}

// canBeEarly reports whether a step is one whose end evidence can bring forward.
func (s step) canBeEarly() bool {
	return s.Weight > 0 && s.Weight < holdoutWeight && len(s.Matches) == 0 && !s.manual
}
