// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// maxSteps is how many steps a release can have, given or computed.
const maxSteps = 100

// parseSteps turns any strategy into steps.
func (s *Settings) parseSteps(spec *v1alpha1.RolloutSpec) error {
	strategy := &spec.Strategy
	var err error
	switch {
	case strategy.Type == v1alpha1.StrategyBlueGreen:
		err = s.blueGreen(strategy.BlueGreen)
	case strategy.Ramp != nil:
		err = s.Ramp(strategy.Ramp)
	default:
		err = s.list(strategy.Steps)
	}
	s.onlyTheLastPromotes()
	s.onlyValuesWithoutTraffic()
	if err == nil && len(s.Steps) > maxSteps {
		err = fmt.Errorf("spec.strategy: makes %d steps; at most %d are possible, so raise by or times", len(s.Steps), maxSteps)
	}
	return err
}

func (s *Settings) list(steps []v1alpha1.Step) error {
	if len(steps) == 0 {
		return errors.New("spec.strategy.steps: is empty; add at least one step with a weight")
	}
	for i := range steps {
		field := fmt.Sprintf("spec.strategy.steps[%d]", i)
		out, err := s.step(&steps[i], field)
		if err != nil {
			return err
		}
		s.Steps = append(s.Steps, out)
	}
	return nil
}

func (s *Settings) step(in *v1alpha1.Step, field string) (Step, error) {
	out := s.plain(in.Weight)
	out.Matches = slices.Sorted(slices.Values(in.Matches))
	if in.Mirror != nil {
		out.Mirror = min(max(*in.Mirror, 0), 100)
	}
	out.Manual, out.At, out.Pods = in.Until == v1alpha1.UntilManual, in.At, in.CanaryReplicas
	err := errors.Join(analysis.Duration(field+".hold", in.Hold, &out.Hold), s.checkCron(field+".at", in.At), checkPods(field, in.CanaryReplicas))
	read, invalid := analysis.Settings{Judge: out.Judge, OnInconclusive: out.OnInconclusive}.ForStep(in.Analysis, field)
	out.Judge, out.OnInconclusive = read.Judge, read.OnInconclusive
	// Requests that match nothing are stable's, and where a router counts mirrored requests
	// is its own affair. Clients that stay keep the share of an earlier weight.
	out.Judge.Shares = len(out.Matches) == 0 && out.Mirror == 0 && !s.Sticky
	return out, errors.Join(err, invalid)
}

// plain is a step with a weight and the settings of the whole release.
func (s *Settings) plain(weight int32) Step {
	out := Step{Route: Route{Weight: min(max(weight, 0), 100)}, Judge: s.Judge, OnInconclusive: s.OnInconclusive}
	out.Judge.Shares = !s.Sticky
	return out
}

func checkPods(field string, pods *intstr.IntOrString) error {
	if pods == nil {
		return nil
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(pods, 100, true); err != nil || n < 1 {
		return fmt.Errorf("%s.canaryReplicas: %q is not a number of pods; write a number from 1 on, or a percentage from 1%% to 100%%", field, pods.String())
	}
	return nil
}

func (s *Settings) checkCron(field string, at v1alpha1.CronExpression) error {
	if at == "" {
		return nil
	}
	if _, _, err := s.Calendar.Next(at, time.Unix(0, 0)); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// Ramp raises the weight by points or by a factor, but by at least one point.
func (s *Settings) Ramp(r *v1alpha1.Ramp) error {
	var every time.Duration
	if err := analysis.Duration("spec.strategy.ramp.every", r.Every, &every); err != nil {
		return err
	}
	weights, err := r.Weights()
	if err != nil {
		return err
	}
	for _, w := range weights {
		next := s.plain(w)
		next.Hold = every
		s.Steps = append(s.Steps, next)
	}
	return nil
}

// blueGreen is two steps: everything but the traffic, and then all of it while the
// old version stays.
func (s *Settings) blueGreen(b *v1alpha1.BlueGreen) error {
	if b == nil {
		b = &v1alpha1.BlueGreen{}
	}
	all := intstr.FromString("100%")
	preview, live := s.plain(0), s.plain(100)
	preview.Pods, live.Pods = &all, &all
	preview.Manual, live.At = b.Until == v1alpha1.UntilManual, b.At
	live.Hold = defaultScaleDownDelay
	s.Steps = []Step{preview, live}
	return errors.Join(
		analysis.Duration("spec.strategy.blueGreen.hold", b.Hold, &s.Steps[0].Hold),
		analysis.Duration("spec.strategy.blueGreen.scaleDownDelay", b.ScaleDownDelay, &s.Steps[1].Hold),
		s.checkCron("spec.strategy.blueGreen.at", b.At),
	)
}
