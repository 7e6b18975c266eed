// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Calendar is the schedule of a Rollout together with the operator's Freezes, as
// Parse reads them. It is not changed by use and may be shared. The zero Calendar
// is always closed, so that an error of Parse that is overlooked stops releases.
type Calendar struct {
	zone    *time.Location // of the schedule; nil is UTC
	sources int            // how many cursors a search needs
	anytime bool           // there are no windows, which means that everything is one
	windows union
	freezes union // of the schedule
	frozen  union // by operators
	// names are what messages call the sources of freezes and of frozen.
	freezeNames, frozenNames []string
}

// State is whether a release may go on at a moment.
type State struct {
	// Open: releases may begin and grow.
	Open bool
	// Frozen: closed by an operator's Freeze, which holds a release in progress too,
	// whatever spec.schedule.whenClosed says.
	Frozen bool
	// Until is when Open or Frozen changes, and so when to look again. Zero when no
	// such time is known: five years and more were searched. In a schedule of tens of
	// thousands of intervals without a gap, it may be earlier, never later.
	Until time.Time
	// Opens is when Open becomes true, by what is known now. Zero when Open, and when
	// no such time is known. It is later than Until where one reason to be closed
	// follows another.
	Opens time.Time
	// Reason is why it is closed, as part of a sentence, with times in the
	// schedule's zone; "" when Open.
	Reason string
}

// At is the state at a moment.
func (c Calendar) At(now time.Time) State {
	s := c.search()
	frozen, freeze, window := c.frozen.at(s, now), c.freezes.at(s, now), c.window(s, now)
	state := State{Open: !frozen.inside && !freeze.inside && window.inside, Frozen: frozen.inside}
	if state.Open {
		state.Until = c.local(earliest(frozen.until, earliest(freeze.until, window.until)))
		return state
	}
	state.Opens = c.local(c.opens(s, now, c.frozen))
	switch {
	case frozen.inside:
		state.Until = c.local(frozen.until)
	case len(c.frozen) == 0:
		state.Until = state.Opens
	default:
		state.Until = c.local(earliest(frozen.until, c.opens(s, now, nil)))
	}
	state.Reason = c.reason(s, now, state)
	if s.cut {
		state.Opens = time.Time{} // it is only how far the search came
	}
	return state
}

// Next is the first time after the given one that a cron expression of the Rollout
// names, in the schedule's zone; ok is false when it never comes (such as 30
// February). The error quotes the expression and says what to write; the caller
// names the field.
func (c Calendar) Next(expr v1alpha1.CronExpression, after time.Time) (t time.Time, ok bool, err error) {
	e, err := parseExpression(expr)
	if err != nil {
		return time.Time{}, false, err
	}
	d := dial{zone: c.place()}
	m, ok := e.next(d.reached(after))
	if !ok {
		return time.Time{}, false, nil
	}
	return d.first(m), true, nil
}

func (c Calendar) search() *search {
	return &search{cursors: make([]cursor, c.sources), steps: maxSteps}
}

// window is the spell of the windows.
func (c Calendar) window(s *search, at time.Time) spell {
	if c.anytime {
		return spell{inside: true}
	}
	return c.windows.at(s, at)
}

// opens is the first moment from the given one on that is within a window and
// neither in a freeze of the schedule nor in one of the given Freezes. Zero when
// there is none that is known; when the search is cut, how far it came.
func (c Calendar) opens(s *search, at time.Time, frozen union) time.Time {
	s.again()
	for limit := at.Add(lookAhead); ; {
		until, closed := c.closed(s, at, frozen)
		switch {
		case !closed:
			return at
		case until.IsZero(), !s.step(1 + len(frozen) + len(c.freezes) + len(c.windows)):
			return until
		case at.After(limit):
			return time.Time{}
		}
		at = until
	}
}

// closed reports whether anything closes a moment, and until when one such does.
func (c Calendar) closed(s *search, at time.Time, frozen union) (until time.Time, closed bool) {
	for _, u := range []union{frozen, c.freezes} {
		if sp := u.at(s, at); sp.inside {
			return sp.until, true
		}
	}
	window := c.window(s, at)
	return window.until, !window.inside
}

// place is the schedule's zone.
func (c Calendar) place() *time.Location {
	if c.zone == nil {
		return time.UTC
	}
	return c.zone
}

// local shows a time in the schedule's zone; zero stays zero.
func (c Calendar) local(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.In(c.place())
}
