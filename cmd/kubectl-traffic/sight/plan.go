// SPDX-License-Identifier: Apache-2.0

package sight

import (
	"errors"
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/rollout/schedule"
)

// Planned is a step with the earliest times at which it may begin and end. A time is
// zero when it is not known: somebody has to decide first, or the schedule does not open.
type Planned struct {
	// Number of the step, counted from 1.
	Number int `json:"step"`
	// Weight of the canary in percent.
	Weight int32 `json:"weight"`
	// State is Done, Present or Later; all are Later where nothing is released.
	State string `json:"state"`
	// Begins and Ends are not in the past of a step that is still to come.
	Begins time.Time `json:"begins,omitzero"`
	Ends   time.Time `json:"ends,omitzero"`
	// Waits says what the step waits for beside its time, or "".
	Waits string `json:"waitsFor,omitempty"`
}

// States of a step.
const (
	Done    = "Done"
	Present = "Present"
	Later   = "Later"
)

// Plan says when each step of a release would happen at the earliest: of the one in
// progress, or of one that began now. The evidence may take longer than a step's hold.
func Plan(ro *v1alpha1.Rollout, calendar schedule.Calendar, now time.Time) ([]Planned, error) {
	steps := ro.Spec.Strategy.Steps
	if len(steps) == 0 {
		return nil, errors.New("a plan needs spec.strategy.steps: those of a ramp or of BlueGreen are made while it is released; kubectl traffic rollout get shows the present one")
	}
	p := planner{calendar: calendar, present: ro.Status.Step, now: now, at: now}
	var list []Planned
	for i := range steps {
		next, err := p.step(i, &steps[i])
		if err != nil {
			return nil, fmt.Errorf("spec.strategy.steps[%d]: %w", i, err)
		}
		list = append(list, next)
	}
	return list, nil
}

// planner goes from step to step.
type planner struct {
	calendar schedule.Calendar
	// present is the step in progress; nil when there is none.
	present *v1alpha1.StepStatus
	now     time.Time
	// at is when the step before ends; zero when that is not known.
	at time.Time
}

func (p *planner) step(i int, s *v1alpha1.Step) (Planned, error) {
	out := Planned{Number: i + 1, Weight: s.Weight, State: p.state(i)}
	if out.State == Done {
		return out, nil
	}
	var hold time.Duration
	var err error
	if s.Hold != "" {
		if hold, err = s.Hold.Parse(); err != nil {
			return out, fmt.Errorf("hold: %w", err)
		}
	}
	if out.Begins, err = p.begins(out.State, s.At); err != nil {
		return out, err
	}
	if !out.Begins.IsZero() {
		out.Ends = later(out.Begins.Add(hold), p.now)
	}
	p.at = out.Ends
	passed := out.State == Present && p.present.PassedAt != nil
	switch {
	case s.Until == v1alpha1.UntilManual && passed:
		p.at = p.now
	case s.Until == v1alpha1.UntilManual:
		out.Waits, p.at = "a person or a hook", time.Time{}
	}
	return out, nil
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
func (p *planner) begins(state string, at v1alpha1.CronExpression) (time.Time, error) {
	if state == Present && p.present.InEffectAt != nil {
		return p.present.InEffectAt.Time, nil
	}
	return p.opens(at)
}

// opens is when the schedule lets a step begin after the one before, and not before the
// time of its own.
func (p *planner) opens(at v1alpha1.CronExpression) (time.Time, error) {
	begin := p.at
	if begin.IsZero() {
		return begin, nil
	}
	if at != "" {
		next, found, err := p.calendar.Next(at, begin)
		if err != nil || !found {
			return time.Time{}, err
		}
		begin = next
	}
	if state := p.calendar.At(begin); !state.Open {
		return state.Opens, nil
	}
	return begin, nil
}
