// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

// Planned is a step with the earliest times at which it may begin and end. A time is
// zero when it is not known: a user has to decide first, or the schedule does not open.
// Last comes the promotion, which only begins.
type Planned struct {
	// Index of the step, counted from 0 as in status.step.index; one more than that of the
	// last step for the promotion.
	Index int `json:"stepIndex"`
	// Weight of the canary in percent.
	Weight int32 `json:"weight"`
	// State is Done, Present, Later or Promotion; all steps are Later where nothing is
	// released.
	State string `json:"state"`
	// Begins and Ends are not in the past of a step that is still to come.
	Begins time.Time `json:"begins,omitzero"`
	Ends   time.Time `json:"ends,omitzero"`
	// Waits says what the step waits for beside its time, or "".
	Waits string `json:"waitsFor,omitempty"`
	// MinDetectableEffect is how much more often than stable the canary would have to fail for
	// half of such releases to be rolled back by the end of the step, such as "0.5pp".
	// Unset when it is not known, or when nothing would be found.
	MinDetectableEffect string `json:"minDetectableEffect,omitempty"`
}

// States of a step.
const (
	Done      = "Done"
	Present   = "Present"
	Later     = "Later"
	Promotion = "Promotion"
)

// defaultScaleDownDelay is that of spec.strategy.blueGreen.
const defaultScaleDownDelay = v1alpha1.Duration("30s")

// Plan says when each step of a release would happen at the earliest: of the one in
// progress, or of one that began now. The evidence may take longer than a step's hold.
func Plan(ro *v1alpha1.Rollout, calendar schedule.Calendar, now time.Time) ([]Planned, error) {
	steps, field, err := stepsOf(&ro.Spec.Strategy)
	if err != nil {
		return nil, err
	}
	p := planner{calendar: calendar, present: ro.Status.Step, now: now, at: now, paused: ro.Spec.Paused}
	p.finishes = ro.Spec.Schedule != nil && ro.Spec.Schedule.WhenClosed == v1alpha1.ClosedFinish
	p.begun = ro.Status.Canary != nil && ro.Status.Canary.StartedAt != nil
	var list []Planned
	for i := range steps {
		next, err := p.step(i, &steps[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field(i), err)
		}
		list = append(list, next)
	}
	last := Planned{Index: len(steps), Weight: 100, State: Promotion}
	last.Begins, last.Waits, err = p.opens("")
	return append(list, last), err
}

// stepsOf are the steps of any strategy, with what each is called in the spec: those of a
// ramp and of BlueGreen are made as the operator makes them.
func stepsOf(s *v1alpha1.Strategy) (steps []v1alpha1.Step, field func(int) string, err error) {
	one := func(name string) func(int) string { return func(int) string { return name } }
	switch {
	case s.Type == v1alpha1.StrategyBlueGreen:
		b := s.BlueGreen
		if b == nil {
			b = &v1alpha1.BlueGreen{}
		}
		steps = []v1alpha1.Step{{Hold: b.Hold, Until: b.Until}, {Weight: 100, At: b.At, Hold: cmp.Or(b.ScaleDownDelay, defaultScaleDownDelay)}}
		return steps, one("spec.strategy.blueGreen"), nil
	case s.Ramp != nil:
		weights, err := s.Ramp.Weights()
		for _, w := range weights {
			steps = append(steps, v1alpha1.Step{Weight: w, Hold: s.Ramp.Every})
		}
		return steps, one("spec.strategy.ramp"), err
	case len(s.Steps) == 0:
		return nil, nil, errors.New("spec.strategy: has neither steps nor a ramp; add at least one step with a weight")
	}
	return s.Steps, func(i int) string { return fmt.Sprintf("spec.strategy.steps[%d]", i) }, nil
}

// planner goes from step to step.
type planner struct {
	calendar schedule.Calendar
	// present is the step in progress; nil when there is none.
	present *v1alpha1.StepStatus
	now     time.Time
	// at is when the step before ends; zero when that is not known.
	at time.Time
	// paused is spec.paused: no step begins.
	paused bool
	// finishes is whether a release that has begun goes on in closed times, unless an
	// operator's Freeze closes them.
	finishes, begun bool
}

func (p *planner) step(i int, s *v1alpha1.Step) (Planned, error) {
	out := Planned{Index: i, Weight: s.Weight, State: p.state(i)}
	if out.State == Done {
		return out, nil
	}
	hold, err := holdOf(s)
	if err != nil {
		return out, err
	}
	if out.Begins, out.Waits, err = p.begins(out.State, s.At); err != nil {
		return out, err
	}
	p.begun = true // before the next one
	if !out.Begins.IsZero() {
		out.Ends = later(out.Begins.Add(hold), p.now)
	}
	p.at = out.Ends
	passed := out.State == Present && p.present.PassedAt != nil
	switch {
	case s.Until == v1alpha1.UntilManual && passed:
		p.at = p.now
	case s.Until == v1alpha1.UntilManual:
		out.Waits, p.at = person, time.Time{}
	}
	return out, nil
}

// What steps wait for.
const (
	person  = "a user or a hook"
	resume  = "spec.paused to be false"
	freezes = "the Freezes of operators to be over"
)

func holdOf(s *v1alpha1.Step) (time.Duration, error) {
	if s.Hold == "" {
		return 0, nil
	}
	hold, err := s.Hold.Parse()
	if err != nil {
		return 0, fmt.Errorf("hold: %w", err)
	}
	return hold, nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (p *planner) state(i int) string {
	switch {
	case p.present == nil || int(p.present.Index) < i:
		return Later
	case int(p.present.Index) == i:
		return Present
	}
	return Done
}

// begins is when a step began to count, or when it may at the earliest.
func (p *planner) begins(state string, at v1alpha1.CronExpression) (time.Time, string, error) {
	if state == Present && p.present.ProgrammedAt != nil {
		return p.present.ProgrammedAt.Time, "", nil
	}
	return p.opens(at)
}

// opens is when a step may begin after the one before, and what it waits for until then:
// the time of its own, and a window when the one before ends while it is closed.
func (p *planner) opens(at v1alpha1.CronExpression) (time.Time, string, error) {
	switch {
	case p.at.IsZero():
		return p.at, "", nil
	case p.paused:
		return time.Time{}, resume, nil
	}
	begin := p.at
	if at != "" {
		// A step that ends at the very time that the next one names does not wait for
		// the time after.
		next, found, err := p.calendar.Next(at, begin.Add(-time.Nanosecond))
		if err != nil {
			return time.Time{}, "", fmt.Errorf("at: %w", err)
		}
		if !found {
			return time.Time{}, fmt.Sprintf("the time %q, which never comes", at), nil
		}
		begin = next
	}
	begin, waits := p.window(begin)
	return begin, waits, nil
}

// window is when the schedule lets a step begin that could at a time, and what it waits for.
func (p *planner) window(begin time.Time) (time.Time, string) {
	state, finishes := p.calendar.At(begin), p.finishes && p.begun
	switch {
	case state.Open || finishes && !state.Frozen:
		return begin, ""
	case finishes && !state.Until.IsZero():
		return p.thaw(state)
	}
	return state.Opens, state.Reason
}

// thaw is when the Freezes of operators are over, one after the other, for a release that
// closed windows do not hold.
func (p *planner) thaw(state schedule.State) (time.Time, string) {
	for range mostFreezes {
		begin := state.Until
		if state = p.calendar.At(begin); !state.Frozen {
			return begin, freezes
		}
		if state.Until.IsZero() {
			break
		}
	}
	return time.Time{}, freezes
}

// mostFreezes are the most that are looked at, one after the other.
const mostFreezes = 1000
