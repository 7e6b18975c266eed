// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// stepper goes through the steps of a canary. Argo's steps are instructions, one after the
// other; a step of Serin is a state with what ends it.
type stepper struct {
	*rollout
	// total is what weights are parts of, 100 unless maxTrafficWeight says so.
	total float64
	// now is the state that the next step has, and steps are those that are complete.
	now   v1alpha1.Step
	held  time.Duration
	open  bool
	steps []v1alpha1.Step
}

// instructions of Argo, by the name of their field.
var instructions = map[string]func(*stepper, source.Field){
	"setWeight":      (*stepper).setWeight,
	"pause":          (*stepper).pause,
	"setCanaryScale": (*stepper).setCanaryScale,
	"setHeaderRoute": (*stepper).setHeaderRoute,
	"setMirrorRoute": (*stepper).setMirrorRoute,
	"analysis":       (*stepper).analysis,
}

func (r *rollout) steps(canary source.Field) {
	s := stepper{rollout: r, total: 100}
	if most := canary.At("trafficRouting", "maxTrafficWeight"); most.Present() {
		s.total = float64(most.Int(100, 1, 1<<31-1))
	}
	for _, f := range canary.At("steps").Items() {
		for _, name := range f.Keys() {
			if do := instructions[name]; do != nil {
				do(&s, f.At(name))
			}
		}
	}
	s.close()
	s.finish(canary)
}

// finish writes the steps.
func (s *stepper) finish(canary source.Field) {
	if n := len(s.steps); n > 0 && s.steps[n-1].Weight == 100 && s.steps[n-1].Hold == "" && s.steps[n-1].Until == "" && len(s.steps[n-1].Matches) == 0 {
		s.steps = s.steps[:n-1] // the promotion itself
	}
	if len(s.steps) == 0 {
		canary.At("steps").Note(source.Assumed, "there are no steps that wait: one of 20 %% for five minutes is written, change it as you like")
		s.steps = []v1alpha1.Step{{Weight: 20, Hold: "5m"}}
	}
	if len(s.steps) > target.MostSteps {
		canary.At("steps").Fail("are %d in Serin: at most %d are possible, so join some", len(s.steps), target.MostSteps)
	}
	s.serin.Spec.Strategy.Steps = s.steps
}

// close ends the step in the making, if there is one, and keeps its state for the next.
func (s *stepper) close() {
	if !s.open {
		return
	}
	step := s.now
	step.Hold = target.Duration(s.held)
	s.steps = append(s.steps, step)
	s.now.Until, s.held, s.open = "", 0, false
}

func (s *stepper) setWeight(f source.Field) {
	s.close()
	given := 100 * float64(f.Int(0, 0, 1<<31-1)) / s.total
	weight := int32(math.Round(math.Min(given, 100)))
	if given != float64(weight) {
		f.Note(source.Differs, "is %d %%: weights are whole percentages", weight)
	}
	if len(s.now.Matches) > 0 {
		f.Note(source.Differs, "from here on requests that match the header are split by weight like all others")
		s.now.Matches, s.now.Weight = nil, 0
	}
	if weight < s.now.Weight {
		f.Note(source.NoEqual, "weights never go down but to 0, by a rollback: the weight stays %d %%", s.now.Weight)
		weight = s.now.Weight
	}
	s.now.Weight, s.open = weight, true
}

func (s *stepper) pause(f source.Field) {
	duration := f.At("duration")
	if s.now.Until != "" { // it waits for a user already
		s.close()
	}
	s.open = true
	if duration.Present() {
		s.held += duration.Duration()
		return
	}
	f.Read()
	s.now.Until = v1alpha1.UntilManual
}

// setCanaryScale sets the pods of the steps that follow, and of the one that has begun if
// nothing has waited in it yet.
func (s *stepper) setCanaryScale(f source.Field) {
	if s.held > 0 || s.now.Until != "" {
		s.close()
	}
	replicas, weight := f.At("replicas"), f.At("weight")
	switch n := replicas.Int(0, 0, 1<<31-1); {
	case f.At("matchTrafficWeight").Flag(false):
		s.now.CanaryReplicas = nil
	case replicas.Present() && n == 0, weight.Present() && weight.Int(0, 0, 100) == 0:
		f.Note(source.NoEqual, "a canary always has a pod: one pod is written")
		s.now.CanaryReplicas = new(intstr.FromInt32(1))
	case replicas.Present():
		s.now.CanaryReplicas = new(intstr.FromInt32(n))
	case weight.Present():
		s.now.CanaryReplicas = new(intstr.FromString(string(target.Decimal(weight.Number())) + "%"))
	}
}

// setHeaderRoute sends all requests with a header to the canary: a step with matches.
func (s *stepper) setHeaderRoute(f source.Field) {
	name := f.At("name").Text()
	if !f.At("match").Present() {
		s.close()
		if len(s.now.Matches) > 0 {
			s.now.Matches, s.now.Weight = nil, 0
		}
		return
	}
	if s.now.Weight > 0 && len(s.now.Matches) == 0 {
		f.Note(source.NoEqual, "requests that match come before those by weight: move it before the first setWeight above 0")
		return
	}
	s.close()
	match := specsv1.HTTPMatch{Name: "header"}
	for _, m := range f.At("match").Items() {
		match.Headers.Items = append(match.Headers.Items, specsv1.Header{Name: m.At("headerName").Text(), Regex: target.Expression(m.At("headerValue"))})
	}
	group := target.RouteGroup(target.Meta(s.object, target.Name(s.serin.Name+"-"+name, 253)), match)
	group.Labels, group.Annotations = nil, nil
	s.made = append(s.made, group)
	s.now.Matches, s.now.Weight, s.open = []string{group.Name}, 100, true
}

// setMirrorRoute has requests mirrored to the canary.
func (s *stepper) setMirrorRoute(f source.Field) {
	f.At("name").Read()
	if s.held > 0 || s.now.Until != "" {
		s.close()
	}
	match, percentage := f.At("match"), f.At("percentage")
	if !match.Present() {
		s.now.Mirror = nil
		return
	}
	if !everything(match.Read()) {
		match.Note(source.Differs, "requests of every kind are mirrored, not only those that match: check that all of them may happen twice")
	}
	percent := percentage.Int(100, 0, 100)
	s.now.Mirror, s.open = &percent, true
	if percent == 0 {
		s.now.Mirror = nil
	}
}

// everything is whether the conditions of a mirror hold for each request.
func everything(match source.Field) bool {
	return slices.ContainsFunc(match.Items(), func(m source.Field) bool {
		keys := m.Keys()
		return len(keys) == 0 || len(keys) == 1 && keys[0] == "path" && m.At("path", "prefix").Value() == "/"
	})
}

// analysis measures the templates of a step in every step.
func (s *stepper) analysis(f source.Field) {
	s.templates(f)
	f.Note(source.Differs, "the metrics are measured in every step, and each step waits for them, not only here")
}
