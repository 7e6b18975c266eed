// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

// Metrics say what a release is held against in addition to its traffic.
type Metrics struct {
	// Problem says why they can't be measured; "" when they can.
	Problem     string
	Limits      []judge.Limit
	Comparisons []judge.Comparison
	// ValuesOnly is whether nothing counts the requests of a release without a router, so
	// that limits on values are all that it is held against.
	ValuesOnly bool
	// StaleAfter and Tolerance are those of the metric that counts the requests of a release
	// without a router; 0 keeps those of the analysis.
	StaleAfter time.Duration
	Tolerance  float64
}

const (
	// DefaultProgressDeadline is how long pods and weights may take by default.
	DefaultProgressDeadline = 10 * time.Minute
	defaultScaleDownDelay   = 30 * time.Second
)

// Settings is the spec as values.
type Settings struct {
	Steps          []Step
	Deadline       time.Duration
	RollBackOver   time.Duration
	PauseOnFailure bool
	Judge          judge.Config
	OnInconclusive v1alpha1.InconclusivePolicy
	// Early is whether a canary is promoted ahead of time when the evidence suffices.
	Early    bool
	Calendar schedule.Calendar
	// ByReplicas is whether no router splits the traffic: the canary's share is that
	// of its pods.
	ByReplicas bool
	// Unmeasured is whether nothing measures the release: no router counts its requests, and
	// the spec names nothing else that does.
	Unmeasured bool
	// Sticky is whether clients stay with a version, so that weights are the shares of new
	// clients and not of requests.
	Sticky bool
}

// Parse reads the spec. The error names the field and the fix: it can
// only come from an object that the schema did not check.
func Parse(spec *v1alpha1.RolloutSpec, router v1alpha1.RouterName, freezes []v1alpha1.Freeze, m Metrics) (Settings, error) {
	s := Settings{
		Deadline: DefaultProgressDeadline, ByReplicas: ByReplicas(spec, router),
		Unmeasured:     router == v1alpha1.RouterNone && spec.Analysis == nil,
		PauseOnFailure: spec.Strategy.OnFailure == v1alpha1.OnFailurePause, Sticky: spec.SessionAffinity != nil,
	}
	var err error
	s.Calendar, err = schedule.Parse(spec.Schedule, freezes)
	// What can be read is, whatever can't: a release in progress is judged by it.
	err = errors.Join(
		err,
		analysis.Duration("spec.progressDeadline", spec.ProgressDeadline, &s.Deadline),
		analysis.Duration("spec.strategy.rollBackOver", spec.Strategy.RollBackOver, &s.RollBackOver),
		s.parseAnalysis(spec.Analysis, m),
	)
	if err == nil {
		err = s.parseSteps(spec)
	}
	if err == nil {
		err = checkAffinity(spec, router)
	}
	if err == nil && router == v1alpha1.RouterNone {
		err = s.checkWithoutRouter()
	}
	if err != nil {
		s.Steps = nil
	}
	return s, err
}

// ByReplicas reports whether the canary's share is that of its pods. Blue-green needs no
// shares: without a router, the Service's own selector leads all requests to one version.
func ByReplicas(spec *v1alpha1.RolloutSpec, router v1alpha1.RouterName) bool {
	return router == v1alpha1.RouterNone && spec.Strategy.Type != v1alpha1.StrategyBlueGreen
}

// checkWithoutRouter refuses what needs a router, rather than doing something else.
func (s *Settings) checkWithoutRouter() error {
	if !s.ByReplicas && s.RollBackOver > 0 {
		return errors.New("spec.strategy.rollBackOver: the router none moves all requests at once; remove rollBackOver, or name another router")
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if len(step.Matches) > 0 || step.Mirror > 0 {
			return fmt.Errorf("spec.strategy.steps[%d]: the router none can neither match nor mirror; remove matches and mirror, or name another router", i)
		}
		step.Judge.Shares = false // who counts the requests sees those of other callers too
		// No window comes while the canary is not called.
		step.Judge.ValuesOnly = step.Judge.ValuesOnly || step.Weight == 0
	}
	return nil
}

// parseAnalysis leaves the defaults where the spec can't be read.
func (s *Settings) parseAnalysis(a *v1alpha1.Analysis, m Metrics) error {
	read, err := analysis.Of(a)
	s.Judge, s.OnInconclusive, s.Early = read.Judge, read.OnInconclusive, read.Early
	if err != nil {
		s.Judge = judge.Defaults()
		return err
	}
	return s.add(m)
}

// add holds the release against the user's metrics too.
func (s *Settings) add(m Metrics) error {
	if m.Problem != "" {
		return errors.New(m.Problem)
	}
	with := s.Judge
	with.Limits, with.Comparisons = append(slices.Clone(s.Judge.Limits), m.Limits...), m.Comparisons
	with.ValuesOnly, with.StaleAfter = m.ValuesOnly, max(with.StaleAfter, m.StaleAfter)
	if m.Tolerance > 0 {
		with.Tolerance = m.Tolerance
	}
	if err := with.Validate(); err != nil {
		return fmt.Errorf("spec.analysis, with the metrics of its templates: %w", err)
	}
	s.Judge = with
	return nil
}

// onlyValuesWithoutTraffic leaves to a step that sends no requests to the canary what
// can be known without any.
func (s *Settings) onlyValuesWithoutTraffic() {
	for i := range s.Steps {
		if j := &s.Steps[i].Judge; s.Steps[i].Weight == 0 {
			j.Limits = slices.DeleteFunc(slices.Clone(j.Limits), func(l judge.Limit) bool { return l.Metric != judge.Value })
			j.Comparisons = nil
		}
	}
}

// onlyTheLastPromotes leaves the evidence for a promotion to the last step: what
// is known at one weight certifies no other.
func (s *Settings) onlyTheLastPromotes() {
	for i := range s.Steps {
		if !s.Early || i < len(s.Steps)-1 || !s.Steps[i].CanBeEarly() {
			s.Steps[i].Judge.MaxBadPromotion = 0
		}
	}
}
