// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// give gives all slots that are free and returns who got one.
func give(q *Queue[string]) (got []string) {
	for task, given := q.Next(); given; task, given = q.Next() {
		got = append(got, "+"+task)
	}
	return got
}

func TestWhoOverstaysLeavesForANamespaceWithoutASlot(t *testing.T) {
	for name, test := range map[string]struct {
		limits                Limits
		joins, overstay, then string
		want                  string
	}{
		"none waits":            {Limits{Slots: 2}, "a1 b1", "a1 b1", "", ""},
		"who waits comes first": {Limits{Slots: 2}, "a1 b1", "b1 a1", "c1", "-b1 +c1"},
		"who waits comes before the next of the same": {Limits{Slots: 1}, "a1 a2", "a1", "b1", "-a1 +b1"},
		"one leaves for each that waits":              {Limits{Slots: 3}, "a1 b1 c1", "a1 b1 c1", "d1 e1", "-a1 -b1 +d1 +e1"},
		"tasks of a namespace with a slot wait on":    {Limits{Slots: 2, PerNamespace: 1}, "a1 b1", "a1", "b2", ""},
		"what is gone is not recalled":                {Limits{Slots: 1}, "a1", "a0", "b1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.limits.Keep = time.Minute
			q := NewQueue[string](test.limits)
			join := func(tasks string) {
				for task := range strings.FieldsSeq(tasks) {
					q.Join(task[:1], task)
				}
			}
			join(test.joins)
			give(q)
			for task := range strings.FieldsSeq(test.overstay) {
				q.Overstay(task)
			}
			join(test.then)
			var got, leave []string
			for task, given := q.Recall(); given; task, given = q.Recall() {
				got, leave = append(got, "-"+task), append(leave, task)
			}
			for _, task := range leave {
				q.Leave(task)
			}
			got = append(got, give(q)...)
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATaskThatOverstayedAndHasEndedIsNotRecalled(t *testing.T) {
	q := NewQueue[string](Limits{Slots: 1, Keep: time.Minute})
	q.Join("a", "a1")
	give(q)
	q.Overstay("a1")
	q.Leave("a1")
	q.Join("b", "b1")
	give(q)
	q.Join("c", "c1")
	if task, given := q.Recall(); given {
		t.Errorf("%s is recalled", task)
	}
}

func TestATaskThatHasLeftIsNoneOfThoseThatAreToLeave(t *testing.T) {
	q := NewQueue[string](Limits{Slots: 1, Keep: time.Minute})
	q.Join("a", "a1")
	for _, next := range []string{"b1", "c1", "d1"} {
		given := give(q)
		task := strings.TrimPrefix(given[0], "+")
		q.Overstay(task)
		q.Join(next[:1], next)
		if got, recalled := q.Recall(); !recalled || got != task {
			t.Fatalf("for %s, %q is recalled, want %s", next, got, task)
		}
		q.Leave(task)
	}
}

// Three namespaces have tasks that never end, more of them than they may have, and begin again
// whenever one is stopped. Each task of a fourth begins after the time at most for which
// others keep a slot, and ends undisturbed.
func TestHostileNamespacesDelayAnotherByNoMoreThanTheyKeepASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep, takes = 10 * time.Minute, time.Minute
		s := NewSlots(Limits{Slots: 3, PerNamespace: 1, Keep: keep})
		ctx, stop := context.WithCancel(t.Context())
		var stopped [3]atomic.Int32
		for n := range 3 {
			namespace := fmt.Sprint("hostile", n)
			for range 3 {
				go func() {
					for ctx.Err() == nil {
						held, release, err := acquire(ctx, s, namespace)
						if err != nil {
							return
						}
						<-held.Done()
						if errors.Is(context.Cause(held), ErrRecalled) {
							stopped[n].Add(1)
						}
						release()
					}
				}()
			}
			time.Sleep(time.Minute)
		}
		for n := range 20 {
			time.Sleep(time.Duration(n) * 97 * time.Second)
			began := time.Now()
			held, release, err := acquire(ctx, s, "fourth")
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > keep {
				t.Errorf("task %d waited for %s", n, waited)
			}
			time.Sleep(takes)
			if held.Err() != nil {
				t.Errorf("task %d: %v", n, context.Cause(held))
			}
			release()
		}
		stop()
		synctest.Wait()
		for n := range stopped {
			if stopped[n].Load() == 0 {
				t.Errorf("no task of the hostile namespace %d was stopped", n)
			}
		}
	})
}

// Tasks of three namespaces end by themselves just before others may have their slots, and
// each of the namespaces has a next one: a fourth comes before these.
func TestTasksThatEndJustInTimeDelayAnotherNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keep = 10 * time.Minute
		s := NewSlots(Limits{Slots: 3, PerNamespace: 1, Keep: keep})
		ctx, stop := context.WithCancel(t.Context())
		for n := range 6 {
			go func() {
				for {
					held, release, err := acquire(ctx, s, fmt.Sprint("hostile", n%3))
					if err != nil {
						return
					}
					select {
					case <-held.Done():
					case <-time.After(keep - time.Second):
					}
					release()
				}
			}()
		}
		synctest.Wait()
		began := time.Now()
		_, release, err := acquire(ctx, s, "fourth")
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > keep {
			t.Errorf("it waited for %s", waited)
		}
		release()
		stop()
		synctest.Wait()
	})
}

func TestATaskKeepsItsSlotWhileNoOtherNamespaceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(Limits{Slots: 1, Keep: time.Minute})
		held, release, err := acquire(t.Context(), s, "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if held.Err() != nil {
			t.Fatal("it was stopped although no other waits")
		}
		go func() {
			if _, release, err := acquire(t.Context(), s, "b"); err == nil {
				release()
			}
		}()
		<-held.Done()
		if got := context.Cause(held); !errors.Is(got, ErrRecalled) {
			t.Error(got)
		}
		release()
		synctest.Wait()
		if loads := s.Loads(); len(loads) != 0 {
			t.Errorf("%v are left", loads)
		}
	})
}
