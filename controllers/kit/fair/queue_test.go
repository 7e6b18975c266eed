// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// play carries out a script: "+a" adds a task of namespace a, "-a" ends the oldest task of a that
// has a slot, "!a" takes the oldest of a away that waits. It returns who got slots, in order.
func play(q *Queue, script string) string {
	var log []string
	running, waiting := map[string][]Ticket{}, map[string][]Ticket{}
	of := map[Ticket]string{}
	for _, step := range strings.Fields(script) {
		namespace := step[1:]
		switch step[0] {
		case '+':
			t, joined := q.Join(namespace)
			if !joined {
				log = append(log, "refused:"+namespace)
				continue
			}
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
	one, two := Limits{Slots: 1, PerNamespace: 1, Waiting: 10}, Limits{Slots: 2, PerNamespace: 1, Waiting: 3}
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
		"too many tasks of a namespace are refused":         {two, "+a +a +a +a +a +b", "a refused:a b"},
		"who stops waiting is left out":                     {one, "+a +b +c !b -a", "a c"},
		"who stops waiting as the last of a namespace":      {one, "+a +b !b +b -a", "a b"},
		"the place in the turns is kept while tasks remain": {one, "+a +b +b +c !b -a", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, play(NewQueue(test.limits), test.script)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever one namespace does, another waits for at most one task of each namespace, per slot.
func TestANamespaceWaitsForAtMostOneTaskOfEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limits := Limits{Slots: 1 + random.IntN(4), PerNamespace: 1 + random.IntN(2), Waiting: 1 + random.IntN(50)}
		q := NewQueue(limits)
		of, running := map[Ticket]string{}, []Ticket{}
		before := map[string]int{} // the tasks of others that got slots since "victim" joined
		var victim Ticket
		for range 300 {
			switch random.IntN(3) {
			case 0, 1:
				n := fmt.Sprint("n", random.IntN(8))
				if tk, joined := q.Join(n); joined {
					of[tk] = n
				}
				if tk, joined := q.Join("victim"); victim == 0 && joined {
					victim, before = tk, map[string]int{}
				} else if joined {
					q.Leave(tk)
				}
			default:
				if len(running) > 0 {
					i := random.IntN(len(running))
					q.Leave(running[i])
					running = append(running[:i], running[i+1:]...)
				}
			}
			for {
				tk, given := q.Next()
				if !given {
					break
				}
				if tk == victim { // which takes no time
					q.Leave(tk)
					victim = 0
					continue
				}
				running = append(running, tk)
				before[of[tk]]++
				if victim != 0 && before[of[tk]] > 1 {
					t.Fatalf("%+v: %s got %d slots before a task that came earlier", limits, of[tk], before[of[tk]])
				}
			}
			if len(running) > limits.Slots {
				t.Fatalf("%d tasks have %d slots", len(running), limits.Slots)
			}
		}
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	s := NewSlots(Limits{Slots: 1, PerNamespace: 1, Waiting: 1})
	release, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ended, "b"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := s.Acquire(t.Context(), "b")
		if err == nil {
			second()
		}
		got <- err
	}()
	release()
	release() // has no effect
	if err := <-got; err != nil {
		t.Error(err)
	}
	if n := len(s.woken); n != 0 {
		t.Errorf("%d are left", n)
	}
}
