// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"time"
)

// reason says why a moment is closed: by an operator's Freeze rather than by one
// of the schedule, and by that rather than by the windows.
func (c Calendar) reason(s *search, now time.Time, state State) string {
	s.again()
	cause, ends := c.cause(s, now)
	switch {
	case s.cut, ends.IsZero(), ends.Equal(state.Opens):
		return cause
	case state.Opens.IsZero():
		return cause + ", and closed for years after that"
	}
	return cause + ", open from " + c.show(state.Opens)
}

// cause names one source and when it ends by itself, which others may outlast.
func (c Calendar) cause(s *search, now time.Time) (text string, ends time.Time) {
	if i, end, found := c.frozen.longest(s, now); found {
		name := "frozen by the Freeze " + c.frozenNames[i]
		if _, broken := c.frozen[i].(unreadable); broken {
			return name, time.Time{}
		}
		return name + c.until(end, " until it is deleted"), end
	}
	if i, end, found := c.freezes.longest(s, now); found {
		return c.freezeNames[i] + c.until(end, " without an end"), end
	}
	const outside = "outside the windows of spec.schedule"
	next := c.windows.next(s, now)
	return outside + c.until(next, ", which never open"), next
}

// until is the end of a sentence for a time, or the one for none.
func (c Calendar) until(t time.Time, never string) string {
	if t.IsZero() {
		return never
	}
	return " until " + c.show(t)
}

// show writes a time in the schedule's zone; its abbreviation tells the two
// passes of an hour that clocks show twice apart.
func (c Calendar) show(t time.Time) string {
	layout := "Mon 2006-01-02 15:04 MST"
	if t.Second() != 0 {
		layout = strings.Replace(layout, "15:04", "15:04:05", 1)
	}
	return t.In(c.place()).Format(layout)
}

// quoted names a freeze of the schedule for users.
func quoted(index int, reason string) string {
	if reason == "" {
		return fmt.Sprintf("the freeze spec.schedule.freezes[%d]", index)
	}
	return fmt.Sprintf("freeze %q", reason)
}
