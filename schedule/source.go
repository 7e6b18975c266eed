// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Searches end here: what is not found by then has no time that is known.
const (
	// lookAhead is how far ahead.
	lookAhead = 5 * 366 * 24 * time.Hour
	// maxSteps bounds the work of a part of a search to milliseconds, for schedules
	// in which thousands of intervals follow each other. It then says what is known:
	// that the state lasts at least until there.
	maxSteps = 1 << 15
)

// search is what one question needs in addition to the Calendar.
type search struct {
	cursors []cursor
	steps   int
	// cut: a part of the search ended because of maxSteps.
	cut bool
}

// step counts sources that are looked at; false when the present part of the
// search has to end.
func (s *search) step(sources int) bool {
	s.steps -= sources
	s.cut = s.cut || s.steps < 0
	return s.steps >= 0
}

// again begins another part of the search.
func (s *search) again() { s.steps = maxSteps }

// cursor is what is remembered of one recurring source. A source that comes rarely
// is asked again and again for the same start while others are followed.
type cursor struct {
	dial
	// following is the first start after the minute since, where that is known.
	since, following minute
	known, never     bool
}

// spell is the time around a moment that is inside of a source, or outside.
type spell struct {
	inside bool
	// until is when it ends; zero when no end is known.
	until time.Time
}

// source is intervals of time.
type source interface {
	// inside reports whether a moment is in one of them and, if so, when the run of
	// intervals that overlap or touch ends (zero: no end is known).
	inside(s *search, at time.Time) (end time.Time, inside bool)
	// next is the first start after a moment.
	next(s *search, after time.Time) (start time.Time, ok bool)
}

// recurring comes again and again.
type recurring struct {
	when     expression
	duration time.Duration
	zone     *time.Location
	// memory is how long ago, on the wall, the start of an interval that lasts can be.
	memory minute
	index  int // of its cursor in a search
}

func (r *recurring) cursor(s *search) *cursor {
	c := &s.cursors[r.index]
	c.zone = r.zone
	return c
}

// following is the first start after a minute.
func (r *recurring) following(c *cursor, after minute) (minute, bool) {
	if !c.known || after < c.since || !c.never && after >= c.following {
		following, ok := r.when.next(after)
		c.since, c.following, c.known, c.never = after, following, true, !ok
	}
	return c.following, !c.never
}

func (r *recurring) inside(s *search, at time.Time) (end time.Time, inside bool) {
	c := r.cursor(s)
	reached := c.reached(at)
	m, ok := r.when.last(reached, reached-r.memory)
	if !ok {
		return time.Time{}, false
	}
	// Every interval is equally long: the one that began last ends last.
	start := c.first(m)
	if !at.Before(start.Add(r.duration)) {
		return time.Time{}, false
	}
	return r.runEnd(s, c, m, start), true
}

// runEnd follows starts for as long as each comes before the end of the one before.
func (r *recurring) runEnd(s *search, c *cursor, m minute, start time.Time) time.Time {
	for limit := start.Add(lookAhead); !start.After(limit); {
		m, start = r.skip(c, m, start)
		following, ok := r.following(c, m)
		if !ok || !s.step(1) {
			return start.Add(r.duration)
		}
		at := c.first(following)
		if at.Sub(start) > r.duration {
			return start.Add(r.duration)
		}
		m, start = following, at
	}
	return time.Time{}
}

// skip goes to the last start of the day where there can't be a gap on the way:
// intervals longer than the widest distance, and no change of the clocks.
func (r *recurring) skip(c *cursor, m minute, start time.Time) (minute, time.Time) {
	if time.Duration(r.when.widest)*time.Minute > r.duration {
		return m, start
	}
	last := r.when.lastOfDay(m)
	if at := c.first(last); c.from <= start.Unix() { // first turned the dial to the stretch of at
		return last, at
	}
	return m, start
}

func (r *recurring) next(s *search, after time.Time) (time.Time, bool) {
	c := r.cursor(s)
	m, ok := r.following(c, c.reached(after))
	if !ok {
		return time.Time{}, false
	}
	return c.first(m), true
}

// single is one interval. A zero from has begun, a zero until does not end.
type single struct{ from, until time.Time }

func (i single) inside(_ *search, at time.Time) (time.Time, bool) {
	return i.until, !at.Before(i.from) && (i.until.IsZero() || at.Before(i.until))
}

func (i single) next(_ *search, after time.Time) (time.Time, bool) {
	return i.from, after.Before(i.from)
}

// union is the time that is inside of any of its sources.
type union []source

// at is the spell around a moment.
func (u union) at(s *search, at time.Time) spell {
	_, end, inside := u.longest(s, at)
	if !inside {
		return spell{until: u.next(s, at)}
	}
	// Whatever covers the end makes it later.
	for limit := at.Add(lookAhead); !end.IsZero() && s.step(len(u)); {
		_, further, covered := u.longest(s, end)
		if !covered {
			break
		}
		if end.After(limit) {
			return spell{inside: true}
		}
		end = further
	}
	return spell{inside: true, until: end}
}

// longest finds the source that is inside for the longest time, the first of
// several.
func (u union) longest(s *search, at time.Time) (index int, end time.Time, inside bool) {
	for i, src := range u {
		until, in := src.inside(s, at)
		if in && (!inside || !end.IsZero() && (until.IsZero() || until.After(end))) {
			index, end, inside = i, until, true
		}
	}
	return index, end, inside
}

// next is the first start after a moment, zero when there is none.
func (u union) next(s *search, after time.Time) time.Time {
	var first time.Time
	for _, src := range u {
		if start, ok := src.next(s, after); ok {
			first = earliest(first, start)
		}
	}
	return first
}

// earliest is the earlier time; one that is zero does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
