// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"
)

// A machine that was suspended, or a process that was stopped, goes on with what it saw
// before: pods that came back meanwhile are still missing in its caches, and the deadline
// for them is over. So a deadline that passed in such a time is judged only once the
// caches have had time to follow:
//
//	look     due to look                       + catchUpTime
//	 |----------|-- no look, deadline passes ---|-------------|
//	            From..To: a jump                  not yet       judged
//
// A deadline passes once, so it is put off once, however often the operator is suspended.

const (
	// LateLook is how late a look may be that was only waited for in a queue.
	LateLook = 30 * time.Second
	// CatchUpTime is enough for client-go to notice that a connection is dead (30 s
	// without a frame, and 15 s without an answer to a ping) and to list again.
	CatchUpTime = time.Minute
)

// Jump is the last time in which the operator did not look although it was to.
type Jump struct{ From, To time.Time }

// Lookout is what the shell remembers between its looks at a Rollout. It may be lost: a
// new process has read everything anew, and so judges at once.
type Lookout struct {
	// At is when it looked last, and due when it was to look again; zero for never.
	At, due time.Time
	// Jump is the last one.
	Jump Jump
}

// Look notes that the shell looks now.
func (l Lookout) Look(now time.Time) Lookout {
	now = now.Round(0) // what else it has is a clock that stands still while the machine is suspended
	if !l.due.IsZero() && now.Sub(l.due) > LateLook {
		l.Jump = Jump{From: l.At, To: now}
	}
	l.At, l.due = now, time.Time{}
	return l
}

// LookAgain notes when the shell is to look again after its last look; 0 is never.
func (l Lookout) LookAgain(after time.Duration) Lookout {
	if after > 0 {
		l.due = l.At.Add(after)
	}
	return l
}
