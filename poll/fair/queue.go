// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"slices"
	"time"
)

// Limits of a Queue.
type Limits struct {
	// Slots is how many tasks have one at the same time, at least 1.
	Slots int
	// PerNamespace is how many of them are of one namespace at most; zero for what is fair.
	PerNamespace int
	// Keep is for how long a task keeps its slot from a namespace that has none; zero for
	// ever. It is for tasks that can be interrupted, those of Claim.
	Keep time.Duration
}

// Queue gives slots to tasks: to namespaces in turns, and within a namespace to the task that
// waits for longest. A namespace gets one more only while it has fewer than are free:
//
//   - A namespace alone has half of the slots at most, and k that want all of them have each
//     one of k+1 parts, so that one part stays free.
//   - The last free slot goes to a namespace that has none.
//   - Where none is free, a namespace that has none waits for at most one task of each other
//     namespace. If each task ends within a time and there are fewer namespaces than slots,
//     it waits for that time at most.
//   - With a time to keep slots, a task that has overstayed is recalled when such a namespace
//     waits, the one that overstays for longest first. The namespace of a task that ends goes
//     to the end of the turns: what waits for a first slot waits for none of its next tasks.
//
// It has no clock and is not for several goroutines.
type Queue[T comparable] struct {
	limits Limits
	// holds are the namespaces of tasks with a slot, and held how many each has.
	holds map[T]string
	held  map[string]int
	// waits are tasks without one, and turns their namespaces, the next one first.
	waits map[string][]T
	turns []string
	// late are the tasks that overstay, the first one first, and recalled those of them that
	// were to leave and have not yet.
	late     []T
	recalled map[T]bool
}

// NewQueue makes a queue of which all slots are free.
func NewQueue[T comparable](limits Limits) *Queue[T] {
	return &Queue[T]{limits: limits, holds: map[T]string{}, held: map[string]int{}, waits: map[string][]T{}, recalled: map[T]bool{}}
}

// Join adds a task that is not in the queue.
func (q *Queue[T]) Join(namespace string, task T) {
	if len(q.waits[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waits[namespace] = append(q.waits[namespace], task)
}

// Next gives a free slot to a task, if there is one of both.
func (q *Queue[T]) Next() (task T, given bool) {
	turn := slices.IndexFunc(q.turns, q.may)
	if turn < 0 {
		return task, false
	}
	namespace := q.turns[turn]
	task = q.waits[namespace][0]
	q.turns = slices.Delete(q.turns, turn, turn+1)
	if q.waits[namespace] = q.waits[namespace][1:]; len(q.waits[namespace]) > 0 {
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.waits, namespace)
	}
	q.holds[task] = namespace
	q.held[namespace]++
	return task, true
}

// may reports whether a namespace may have one more slot.
func (q *Queue[T]) may(namespace string) bool {
	held := q.held[namespace]
	return held < q.limits.Slots-len(q.holds) && (q.limits.PerNamespace == 0 || held < q.limits.PerNamespace)
}

// Overstay notes that a task has had its slot for as long as it keeps it from others.
func (q *Queue[T]) Overstay(task T) {
	if _, holds := q.holds[task]; holds {
		q.late = append(q.late, task)
	}
}

// Recall gives a task that has to leave, if there is one: of those that overstay one for each
// namespace that waits for its first slot. A task is given once.
func (q *Queue[T]) Recall() (task T, given bool) {
	starving := 0
	for _, namespace := range q.turns {
		if q.held[namespace] == 0 {
			starving++
		}
	}
	if len(q.late) == 0 || starving <= len(q.recalled) {
		return task, false
	}
	task, q.late = q.late[0], q.late[1:]
	q.recalled[task] = true
	return task, true
}

// Leave takes a task away, whether it has a slot or waits.
func (q *Queue[T]) Leave(task T) {
	if namespace, holds := q.holds[task]; holds {
		if turn := slices.Index(q.turns, namespace); turn >= 0 && q.limits.Keep > 0 {
			q.turns = append(slices.Delete(q.turns, turn, turn+1), namespace)
		}
		delete(q.recalled, task)
		q.late = slices.DeleteFunc(q.late, func(t T) bool { return t == task })
		delete(q.holds, task)
		if q.held[namespace]--; q.held[namespace] == 0 {
			delete(q.held, namespace)
		}
		return
	}
	for namespace, waiting := range q.waits {
		i := slices.Index(waiting, task)
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

// Load is how many slots tasks have, and how many tasks wait.
type Load struct{ Held, Waiting int }

// Loads are those of the namespaces that have a task.
func (q *Queue[T]) Loads() map[string]Load {
	loads := make(map[string]Load, len(q.held)+len(q.waits))
	for namespace, n := range q.held {
		loads[namespace] = Load{Held: n}
	}
	for namespace, waiting := range q.waits {
		loads[namespace] = Load{Held: q.held[namespace], Waiting: len(waiting)}
	}
	return loads
}
