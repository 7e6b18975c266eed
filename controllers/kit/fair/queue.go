// SPDX-License-Identifier: Apache-2.0

package fair

import "slices"

// Limits of a Queue. Each is at least 1.
type Limits struct {
	// Slots is how many tasks have one at the same time.
	Slots int
	// PerNamespace is how many of them are of one namespace.
	PerNamespace int
	// Waiting is how many tasks of one namespace wait.
	Waiting int
}

// Ticket is a task in a queue.
type Ticket int

// Queue gives slots to tasks: to namespaces in turns, and within a namespace to the task that
// waits for longest. It has no clock and is not for several goroutines.
type Queue struct {
	limits Limits
	last   Ticket
	// holds are the namespaces of tasks with a slot.
	holds map[Ticket]string
	// waits are tasks without one, and turns their namespaces, the next one first.
	waits map[string][]Ticket
	turns []string
}

// NewQueue makes a queue of which all slots are free.
func NewQueue(limits Limits) *Queue {
	return &Queue{limits: limits, holds: map[Ticket]string{}, waits: map[string][]Ticket{}}
}

// Join adds a task. It is refused where too many of its namespace wait already.
func (q *Queue) Join(namespace string) (t Ticket, joined bool) {
	if len(q.waits[namespace]) >= q.limits.Waiting {
		return 0, false
	}
	if len(q.waits[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.last++
	q.waits[namespace] = append(q.waits[namespace], q.last)
	return q.last, true
}

// Next gives a free slot to a task, if there is one of both.
func (q *Queue) Next() (t Ticket, given bool) {
	if len(q.holds) >= q.limits.Slots {
		return 0, false
	}
	for i, namespace := range q.turns {
		if q.held(namespace) >= q.limits.PerNamespace {
			continue
		}
		t = q.waits[namespace][0]
		q.turns = slices.Delete(q.turns, i, i+1)
		if q.waits[namespace] = q.waits[namespace][1:]; len(q.waits[namespace]) > 0 {
			q.turns = append(q.turns, namespace)
		} else {
			delete(q.waits, namespace)
		}
		q.holds[t] = namespace
		return t, true
	}
	return 0, false
}

// Leave takes a task away, whether it has a slot or waits.
func (q *Queue) Leave(t Ticket) {
	delete(q.holds, t)
	for namespace, waiting := range q.waits {
		i := slices.Index(waiting, t)
		if i < 0 {
			continue
		}
		if q.waits[namespace] = slices.Delete(waiting, i, i+1); len(q.waits[namespace]) == 0 {
			delete(q.waits, namespace)
			q.turns = slices.DeleteFunc(q.turns, func(n string) bool { return n == namespace })
		}
		return
	}
}

func (q *Queue) held(namespace string) int {
	n := 0
	for _, of := range q.holds {
		if of == namespace {
			n++
		}
	}
	return n
}
