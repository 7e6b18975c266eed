// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/analysis/judge"
	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// maxSteps is how many steps a release can have, given or computed.
const maxSteps = 100

// step is one stage of a release as values, whatever the spec wrote it as.
type step struct {
	Route
	hold   time.Duration
	manual bool
	at     v1alpha1.CronExpression
	// pods is how many pods the canary gets: a number, a percentage of the
	// workload's, or nil for the share of the weight.
	pods           *intstr.IntOrString
	judge          judge.Config
	onInconclusive v1alpha1.InconclusivePolicy
}

// Route is what share of which requests goes to the canary.
type Route struct {
	// Weight in percent; with Matches, of the requests that match.
	Weight int32
	// Matches name HTTPRouteGroups, sorted; empty means all requests.
	Matches []string
	// Mirror is the percentage of stable's requests that the canary gets too.
	Mirror int32
}

func (r Route) equal(other Route) bool {
	return r.Weight == other.Weight && r.Mirror == other.Mirror && slices.Equal(r.Matches, other.Matches)
}

// sameRequests reports whether the two routes send the same requests to the
// canary, whatever they copy.
func (r Route) sameRequests(other Route) bool {
	return r.Weight == other.Weight && slices.Equal(r.Matches, other.Matches)
}

// exposure orders routes by how many people meet the canary. Those who match are
// always fewer than a percentage of all.
func (r Route) exposure() int32 {
	if len(r.Matches) > 0 {
		return 0
	}
	return r.Weight
}

// below reports whether fewer people meet the canary than by another route.
func (r Route) below(other Route) bool {
	return r.exposure() < other.exposure() || r.Weight == 0 && other.Weight > 0
}

func (r Route) String() string {
	s := strconv.Itoa(int(r.Weight))
	if len(r.Matches) > 0 {
		s += " of those that match " + strings.Join(r.Matches, ", ")
	}
	if r.Mirror > 0 {
		s += fmt.Sprintf(", mirroring %d %% of stable's requests", r.Mirror)
	}
	return s
}

// share is what a route means to people.
func (r Route) share() string {
	if len(r.Matches) > 0 {
		return fmt.Sprintf("%d %% of the requests that match %s", r.Weight, strings.Join(r.Matches, ", "))
	}
	return fmt.Sprintf("%d %% of the traffic", r.Weight)
}

// parseSteps turns any strategy into steps.
func (s *settings) parseSteps(spec *v1alpha1.RolloutSpec) error {
	strategy := &spec.Strategy
	var err error
	switch {
	case strategy.Type == v1alpha1.StrategyBlueGreen:
		err = s.blueGreen(strategy.BlueGreen)
	case strategy.Ramp != nil:
		err = s.ramp(strategy.Ramp)
	default:
		err = s.list(strategy.Steps)
	}
	s.onlyTheLastPromotes()
	s.onlyValuesWithoutTraffic()
	if err == nil && len(s.steps) > maxSteps {
		err = fmt.Errorf("spec.strategy: makes %d steps; at most %d are possible, so raise by or times", len(s.steps), maxSteps)
	}
	return err
}

func (s *settings) list(steps []v1alpha1.Step) error {
	if len(steps) == 0 {
		return errors.New("spec.strategy.steps: is empty; add at least one step with a weight")
	}
	for i := range steps {
		field := fmt.Sprintf("spec.strategy.steps[%d]", i)
		out, err := s.step(&steps[i], field)
		if err != nil {
			return err
		}
		s.steps = append(s.steps, out)
	}
	return nil
}

func (s *settings) step(in *v1alpha1.Step, field string) (step, error) {
	out := s.plain(in.Weight)
	out.Matches = slices.Sorted(slices.Values(in.Matches))
	if in.Mirror != nil {
		out.Mirror = min(max(*in.Mirror, 0), 100)
	}
	out.manual, out.at, out.pods = in.Until == v1alpha1.UntilManual, in.At, in.CanaryReplicas
	err := errors.Join(analysis.Duration(field+".hold", in.Hold, &out.hold), s.checkCron(field+".at", in.At), checkPods(field, in.CanaryReplicas))
	read, invalid := analysis.Settings{Judge: out.judge, OnInconclusive: out.onInconclusive}.ForStep(in.Analysis, field)
	out.judge, out.onInconclusive = read.Judge, read.OnInconclusive
	return out, errors.Join(err, invalid)
}

// plain is a step with a weight and the settings of the whole release.
func (s *settings) plain(weight int32) step {
	return step{Route: Route{Weight: min(max(weight, 0), 100)}, judge: s.judge, onInconclusive: s.onInconclusive}
}

func checkPods(field string, pods *intstr.IntOrString) error {
	if pods == nil {
		return nil
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(pods, 100, true); err != nil || n < 1 {
		return fmt.Errorf("%s.canaryReplicas: %q is no number of pods; write a number from 1 on, or a percentage from 1%% to 100%%", field, pods.String())
	}
	return nil
}

func (s *settings) checkCron(field string, at v1alpha1.CronExpression) error {
	if at == "" {
		return nil
	}
	if _, _, err := s.calendar.Next(at, time.Unix(0, 0)); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// ramp raises the weight by points or by a factor, but by at least one point.
func (s *settings) ramp(r *v1alpha1.Ramp) error {
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
		next.hold = every
		s.steps = append(s.steps, next)
	}
	return nil
}

// blueGreen is two steps: everything but the traffic, and then all of it while the
// old version stays.
func (s *settings) blueGreen(b *v1alpha1.BlueGreen) error {
	if b == nil {
		b = &v1alpha1.BlueGreen{}
	}
	all := intstr.FromString("100%")
	preview, live := s.plain(0), s.plain(100)
	preview.pods, live.pods = &all, &all
	preview.manual, live.at = b.Until == v1alpha1.UntilManual, b.At
	live.hold = defaultScaleDownDelay
	s.steps = []step{preview, live}
	return errors.Join(
		analysis.Duration("spec.strategy.blueGreen.hold", b.Hold, &s.steps[0].hold),
		analysis.Duration("spec.strategy.blueGreen.scaleDownDelay", b.ScaleDownDelay, &s.steps[1].hold),
		s.checkCron("spec.strategy.blueGreen.at", b.At),
	)
}

// canaryPods is how many pods a step needs out of all replicas.
func (s step) canaryPods(replicas int32) int32 {
	if s.pods == nil {
		return canaryReplicas(s.Weight, replicas)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.pods, int(replicas), true)
	if err != nil || replicas <= 0 {
		return canaryReplicas(s.Weight, replicas)
	}
	return int32(min(max(n, 1), int(replicas))) //nolint:gosec // at most replicas
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

// sharedReplicas is how many pods of the canary beside all of stable's give it a
// share of the requests that is nearest to the weight. It can't have more pods
// than the workload, and so never more than half of the traffic.
//
// From c/(c+n) = w/100: c = n·w/(100−w).
func sharedReplicas(weight, replicas int32) int32 {
	if weight <= 0 || replicas <= 0 {
		return 0
	}
	if weight >= 50 {
		return replicas
	}
	n := math.Round(float64(replicas) * float64(weight) / float64(100-weight))
	return min(max(int32(n), 1), replicas)
}

// share is the percentage of requests that reach the canary's pods behind a
// Service that selects both versions.
func share(canary, stable int32) int32 {
	if canary <= 0 {
		return 0
	}
	return int32(math.Round(100 * float64(canary) / float64(canary+max(stable, 0))))
}
