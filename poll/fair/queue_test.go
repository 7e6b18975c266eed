// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// play carries out a script: "+a" adds a task of namespace a, "-a" ends the oldest task of a that
// has a slot, "!a" takes the oldest of a away that waits. It returns who got slots, in order.
func play(q *Queue[int], script string) string {
	var log []string
	running, waiting := map[string][]int{}, map[string][]int{}
	of := map[int]string{}
	for t, step := range strings.Fields(script) {
		namespace := step[1:]
		switch step[0] {
		case '+':
			q.Join(namespace, t)
			of[t] = namespace
			waiting[namespace] = append(waiting[namespace], t)
		case '-':
			q.Leave(running[namespace][0])
			running[namespace] = running[namespace][1:]
		case '!':
			q.Leave(waiting[namespace][0])
			waiting[namespace] = waiting[namespace][1:]
		}
		for {
			t, given := q.Next()
			if !given {
				break
			}
			n := of[t]
			waiting[n], running[n] = waiting[n][1:], append(running[n], t)
			log = append(log, n)
		}
	}
	return strings.Join(log, " ")
}

func TestSlotsGoToNamespacesInTurns(t *testing.T) {
	one, two := Limits{Slots: 1, PerNamespace: 1}, Limits{Slots: 2, PerNamespace: 1}
	four, eight, few := Limits{Slots: 4}, Limits{Slots: 8}, Limits{Slots: 8, PerNamespace: 2}
	for name, test := range map[string]struct {
		limits       Limits
		script, want string
	}{
		"a task with no other gets a slot at once":          {one, "+a", "a"},
		"the second task waits for the first":               {one, "+a +b -a", "a b"},
		"a namespace with many tasks is one among others":   {one, "+a +a +a +a +b +c -a -a -b -c -a", "a a b c a a"},
		"who comes later waits for one task more":           {one, "+a +a +a -a +b -a -a", "a a a b"},
		"a namespace never has all slots":                   {two, "+a +a +b", "a b"},
		"a free slot stays free while only one asks":        {two, "+a +a +a -a", "a a"},
		"who stops waiting is left out":                     {one, "+a +b +c !b -a", "a c"},
		"who stops waiting as the last of a namespace":      {one, "+a +b !b +b -a", "a b"},
		"a namespace alone has half of the slots":           {four, "+a +a +a +a +a", "a a"},
		"the last slot is for a namespace that has none":    {four, "+a +a +a +b +b +c", "a a b c"},
		"a third finds slots beside two that want all":      {eight, "+a +a +a +a +a +b +b +b +b +c +c", "a a a a b b c"},
		"shares become equal as tasks end":                  {eight, "+a +a +a +a +a +b +b +b +b -a -a -b", "a a a a b b b a b"},
		"a limit is below the fair share":                   {few, "+a +a +a +a +b", "a a b"},
		"any number may wait without a limit":               {Limits{Slots: 1}, "+a +a +a +a +a -a -a -a -a", "a a a a a"},
		"the place in the turns is kept while tasks remain": {one, "+a +b +b +c !b -a", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, play(NewQueue[int](test.limits), test.script)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// world plays random tasks and checks after each step what must always hold.
type world struct {
	*Queue[int]
	t      *testing.T
	random *rand.Rand
	last   int
	of     map[int]string
	// running are the tasks with a slot, and waiting those without one by namespace.
	running []int
	waiting map[string][]int
	// passed are the slots that others got since the oldest task of a namespace without any waits.
	passed map[string]map[string]int
}

func (w *world) join(namespace string) {
	w.last++
	w.of[w.last] = namespace
	w.waiting[namespace] = append(w.waiting[namespace], w.last)
	w.Join(namespace, w.last)
}

func (w *world) leave(task int) {
	w.Leave(task)
	w.running = slices.DeleteFunc(w.running, func(t int) bool { return t == task })
	namespace := w.of[task]
	w.waiting[namespace] = slices.DeleteFunc(w.waiting[namespace], func(t int) bool { return t == task })
	if len(w.waiting[namespace]) == 0 {
		delete(w.waiting, namespace)
		delete(w.passed, namespace)
	}
}

func (w *world) held(namespace string) (n int) {
	for _, task := range w.running {
		if w.of[task] == namespace {
			n++
		}
	}
	return n
}

// give gives all slots that are free, as Slots do.
func (w *world) give() {
	for {
		free := w.limits.Slots - len(w.running)
		task, given := w.Next()
		if !given {
			break
		}
		namespace := w.of[task]
		held := w.held(namespace)
		if held >= free || w.limits.PerNamespace > 0 && held >= w.limits.PerNamespace {
			w.t.Fatalf("%+v: %s gets one of %d free slots and has %d", w.limits, namespace, free, held)
		}
		if first := w.waiting[namespace][0]; task != first {
			w.t.Fatalf("task %d of %s gets a slot before %d", task, namespace, first)
		}
		w.waiting[namespace] = w.waiting[namespace][1:]
		delete(w.passed, namespace)
		if len(w.waiting[namespace]) == 0 {
			delete(w.waiting, namespace)
		}
		w.running = append(w.running, task)
		w.pass(namespace)
	}
	for namespace := range w.waiting {
		if w.held(namespace) == 0 && len(w.running) < w.limits.Slots {
			w.t.Fatalf("%+v: %s has no slot, and one is free", w.limits, namespace)
		}
	}
}

// pass notes that a namespace got a slot while others wait for their first.
func (w *world) pass(by string) {
	for namespace := range w.waiting {
		if w.held(namespace) > 0 {
			delete(w.passed, namespace)
			continue
		}
		if w.passed[namespace] == nil {
			w.passed[namespace] = map[string]int{}
		}
		if w.passed[namespace][by]++; w.passed[namespace][by] > 1 {
			w.t.Fatalf("%+v: %s got two slots while %s waits for its first", w.limits, by, namespace)
		}
	}
}

// Whatever others do: a namespace gets a slot only while it has fewer than are free, one
// without any gets a free one at once, and where none is free it waits for at most one task
// of each other namespace.
func TestWhateverOthersDoANamespaceHasItsTurn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		limits := Limits{Slots: 1 + random.IntN(12), PerNamespace: random.IntN(3)}
		w := &world{
			Queue: NewQueue[int](limits), t: t, random: random,
			of: map[int]string{}, waiting: map[string][]int{}, passed: map[string]map[string]int{},
		}
		for range 300 {
			switch random.IntN(8) {
			case 0, 1, 2:
				w.join(fmt.Sprint("n", random.IntN(8)))
			case 3, 4:
				w.join("greedy")
			case 5:
				for _, tasks := range w.waiting {
					w.leave(tasks[random.IntN(len(tasks))])
					break
				}
			default:
				if len(w.running) > 0 {
					w.leave(w.running[random.IntN(len(w.running))])
				}
			}
			w.give()
			if len(w.running) > limits.Slots {
				t.Fatalf("%d tasks have %d slots", len(w.running), limits.Slots)
			}
		}
		for _, task := range slices.Concat(append(slices.Collect(maps.Values(w.waiting)), w.running)...) {
			w.leave(task)
		}
		if len(w.holds)+len(w.Queue.held)+len(w.waits)+len(w.turns)+len(w.late)+len(w.recalled) > 0 {
			t.Fatalf("something is left: %+v", w.Queue)
		}
	}
}

// Ten tenants on a clock of seconds: one has fifty tasks every ten seconds that take ten
// seconds each, the others four every five seconds that take one.
func TestATarpitTakesItsShare(t *testing.T) {
	const slots, long, short = 32, 10, 1
	q := NewQueue[int](Limits{Slots: slots})
	ends, joined, takes := map[int]int{}, map[int]int{}, map[int]int{}
	next := 0
	join := func(namespace string, now, lasts int) {
		next++
		joined[next], takes[next] = now, lasts
		q.Join(namespace, next)
	}
	for now := range 120 {
		for task, end := range ends {
			if end <= now {
				q.Leave(task)
				delete(ends, task)
			}
		}
		if now%long == 0 {
			for range 50 {
				join("tarpit", now, long)
			}
		}
		if now%5 == 2 {
			for tenant := range 9 {
				for range 4 {
					join(fmt.Sprint("tenant", tenant), now, short)
				}
			}
		}
		for {
			task, given := q.Next()
			if !given {
				break
			}
			ends[task] = now + takes[task]
			if waited := now - joined[task]; takes[task] == short && waited >= 5 {
				t.Fatalf("second %d: a tenant waited for %d seconds", now, waited)
			}
		}
		if n := q.Loads()["tarpit"].Held; n > slots/2 {
			t.Fatalf("second %d: the tarpit has %d slots", now, n)
		}
	}
}
