// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

// Calendar is when releases may go on in the next days.
type Calendar struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Lanes are the schedules, those first for which a release waits.
	Lanes []Lane `json:"lanes"`
	// LeftOut is how many lanes are too many to show.
	LeftOut int      `json:"leftOut,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

// Lane is one schedule, with the Freezes that concern it, and all Rollouts that have it.
type Lane struct {
	TimeZone string   `json:"timeZone"`
	Freezes  []string `json:"freezes,omitempty"`
	Rollouts []Row    `json:"rollouts"`
	Spans    []Span   `json:"spans"`
	// Wrong says why the schedule can't be read, or "".
	Wrong string `json:"wrong,omitempty"`
}

// Span is a time in which a lane is open, closed or frozen.
type Span struct {
	State  string    `json:"state"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
}

// Bounds of a calendar.
const (
	calendarDays = 7
	maxLanes     = 100
	maxSpans     = 200 // more than one begins and ends in an hour
)

// CalendarSources are what a calendar is made of.
type CalendarSources struct {
	Rollouts []v1alpha1.Rollout
	Freezes  []v1alpha1.Freeze
	// Labels of the namespaces, by which Freezes choose them.
	Labels map[string]map[string]string
	Now    time.Time
}

// MakeCalendar puts Rollouts together that go on at the same times.
func MakeCalendar(s CalendarSources) Calendar {
	c := Calendar{From: s.Now, Until: s.Now.AddDate(0, 0, calendarDays), Lanes: []Lane{}}
	lanes := map[string]int{}
	for i := range s.Rollouts {
		ro := &s.Rollouts[i]
		freezes := s.freezesOf(ro.Namespace)
		key := laneKey(ro.Spec.Schedule, freezes)
		at, known := lanes[key]
		if !known {
			at = len(c.Lanes)
			lanes[key] = at
			c.Lanes = append(c.Lanes, c.lane(ro.Spec.Schedule, freezes))
		}
		c.Lanes[at].Rollouts = append(c.Lanes[at].Rollouts, MakeRow(ro))
	}
	slices.SortStableFunc(c.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(b.waiting(), a.waiting()), cmp.Compare(len(b.Rollouts), len(a.Rollouts)))
	})
	if len(c.Lanes) > maxLanes {
		c.Lanes, c.LeftOut = c.Lanes[:maxLanes], len(c.Lanes)-maxLanes
	}
	return c
}

func (s *CalendarSources) freezesOf(namespace string) []v1alpha1.Freeze {
	var concern []v1alpha1.Freeze
	for i := range s.Freezes {
		if schedule.Applies(&s.Freezes[i], s.Labels[namespace]) {
			concern = append(concern, s.Freezes[i])
		}
	}
	return concern
}

// laneKey is the same for Rollouts that go on at the same times.
func laneKey(s *v1alpha1.Schedule, freezes []v1alpha1.Freeze) string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %q", text, namesOf(freezes))
}

func namesOf(freezes []v1alpha1.Freeze) []string {
	var names []string
	for i := range freezes {
		names = append(names, freezes[i].Name)
	}
	return names
}

// waiting is how many Rollouts wait for the lane to open.
func (l *Lane) waiting() (n int) {
	for i := range l.Rollouts {
		if l.Rollouts[i].State == v1alpha1.ReasonWaitingForSchedule {
			n++
		}
	}
	return n
}

// lane has the spans of a schedule from one state to the next.
func (c *Calendar) lane(s *v1alpha1.Schedule, freezes []v1alpha1.Freeze) Lane {
	l := Lane{TimeZone: "UTC", Freezes: namesOf(freezes), Spans: []Span{}}
	if s != nil && s.TimeZone != "" {
		l.TimeZone = s.TimeZone
	}
	calendar, err := schedule.Parse(s, freezes)
	if err != nil {
		l.Wrong = Sentence(err.Error())
		return l
	}
	for at := c.From; at.Before(c.Until) && len(l.Spans) < maxSpans; {
		state := calendar.At(at)
		span := Span{State: "closed", From: at.UTC(), Until: c.Until.UTC(), Reason: state.Reason}
		switch {
		case state.Open:
			span.State = "open"
		case state.Frozen:
			span.State = "frozen"
		}
		if until := state.Until; !until.IsZero() && until.Before(c.Until) && until.After(at) {
			span.Until = until.UTC()
		}
		l.Spans = append(l.Spans, span)
		at = span.Until
	}
	return l
}
