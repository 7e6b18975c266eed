// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"maps"
	"time"
)

const (
	// stuckAfter is how long every read of something has to be late, while the API
	// answers, until its cache counts as stuck. A watch that was interrupted begins again
	// within half a minute.
	stuckAfter = 5 * time.Minute
	// stuckReads is how many reads have to be late at least.
	stuckReads = 5
	// forgetAfter is when a read counts for nothing that was not tried again: its object
	// may be gone. A controller tries again after MaxRetry, and other late reads may come
	// before this one.
	forgetAfter = 3 * time.Minute
)

// Read is what is read of a cache: an object, or with no name all of a namespace.
type Read struct{ Kind, Namespace, Name string }

func (r Read) String() string {
	switch {
	case r.Name != "" && r.Namespace != "":
		return r.Kind + " " + r.Namespace + "/" + r.Name
	case r.Name != "" || r.Namespace != "":
		return r.Kind + " " + r.Namespace + r.Name
	}
	return r.Kind
}

// Lag knows which reads of caches are late, one after the other. It has no clock.
type Lag struct {
	late map[Read]series
	// answersSince is since when the API has answered whenever it was asked; zero while
	// it does not, or need not be asked.
	answersSince time.Time
}

// series are reads of the same, all of them late.
type series struct {
	since, last time.Time
	count       int
}

// Late notes a read that ended because its time was over.
func (l *Lag) Late(r Read, now time.Time) {
	if l.late == nil {
		l.late = map[Read]series{}
	}
	l.forget(now)
	s, found := l.late[r]
	if !found {
		s.since = now
	}
	s.last, s.count = now, s.count+1
	l.late[r] = s
}

// CaughtUp notes a read that ended in time.
func (l *Lag) CaughtUp(r Read) { delete(l.late, r) }

// forget drops what was not read again.
func (l *Lag) forget(now time.Time) {
	maps.DeleteFunc(l.late, func(_ Read, s series) bool { return now.Sub(s.last) > forgetAfter })
}

// Suspect is the read that has been late for longest, and since when; whether there is
// such a read that was late for long enough to ask whether the API answers.
func (l *Lag) Suspect(now time.Time) (worst Read, since time.Time, suspect bool) {
	l.forget(now)
	for r, s := range l.late {
		if s.count >= stuckReads && (!suspect || s.since.Before(since)) {
			worst, since, suspect = r, s.since, true
		}
	}
	if !suspect {
		l.answersSince = time.Time{}
	}
	return worst, since, suspect
}

// Answered notes whether the API answered.
func (l *Lag) Answered(answers bool, now time.Time) {
	switch {
	case !answers:
		l.answersSince = time.Time{}
	case l.answersSince.IsZero():
		l.answersSince = now
	}
}

// Stuck reports whether what was late since then has a cache that stopped following: an
// API that is away keeps caches behind too, and a restart would not help.
func (l *Lag) Stuck(since, now time.Time) bool {
	return !l.answersSince.IsZero() && now.Sub(since) >= stuckAfter && now.Sub(l.answersSince) >= stuckAfter
}

// behind is by kind since when reads are late.
func (l *Lag) behind(now time.Time) map[string]time.Time {
	l.forget(now)
	oldest := map[string]time.Time{}
	for r, s := range l.late {
		if known, found := oldest[r.Kind]; !found || s.since.Before(known) {
			oldest[r.Kind] = s.since
		}
	}
	return oldest
}
