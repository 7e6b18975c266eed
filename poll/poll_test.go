// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/poll/fair"
)

// diary is when each task was done, in a bubble of synctest.
type diary struct {
	begun time.Time
	mu    sync.Mutex
	times map[string][]time.Duration
	// takes is how long each task takes.
	takes map[string]time.Duration
	busy  int
	most  int
}

// task is one of a namespace of its own.
func (d *diary) task(key string, every time.Duration) Task {
	return Task{Namespace: key, From: d.begun, Every: every, Do: func(ctx context.Context) { d.do(ctx, key) }}
}

func (d *diary) do(ctx context.Context, key string) {
	d.mu.Lock()
	d.busy++
	d.most = max(d.most, d.busy)
	d.times[key] = append(d.times[key], time.Since(d.begun))
	d.mu.Unlock()
	select {
	case <-time.After(d.takes[key]):
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.busy--
	if ctx.Err() != nil {
		d.times[key+" ended"] = append(d.times[key+" ended"], time.Since(d.begun))
	}
	d.mu.Unlock()
}

// play runs a Poller in a bubble while the test goes on.
func play(t *testing.T, slots int, test func(p *Poller[string], d *diary)) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{begun: time.Now(), times: map[string][]time.Duration{}, takes: map[string]time.Duration{}}
		p := New[string](clock.RealClock{}, fair.NewSlots(fair.Limits{Slots: slots}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		test(p, d)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d.busy != 0 {
			t.Errorf("%d tasks are under way after the end", d.busy)
		}
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (d *diary) expect(t *testing.T, want map[string][]time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, d.times); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func seconds(list ...int) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, s := range list {
		out[i] = time.Duration(s) * time.Second
	}
	return out
}

func TestATaskIsDoneOnItsGridAndAtOnceWhenAsked(t *testing.T) {
	play(t, 2, func(p *Poller[string], d *diary) {
		pass(2 * time.Second)
		p.Set("a", d.task("a", 5*time.Second))
		p.Set("b", d.task("b", 10*time.Second))
		pass(11 * time.Second)
		p.Now("a")
		pass(8 * time.Second)
		d.expect(t, map[string][]time.Duration{"a": seconds(5, 10, 13, 15, 20), "b": seconds(10, 20)})
	})
}

func TestATaskThatIsAskedForWhileItIsDoneIsDoneOnceMore(t *testing.T) {
	play(t, 2, func(p *Poller[string], d *diary) {
		d.takes["a"] = time.Second
		p.Set("a", d.task("a", 5*time.Second))
		p.Now("a")
		pass(500 * time.Millisecond)
		p.Now("a")
		p.Now("a")
		pass(6 * time.Second)
		d.expect(t, map[string][]time.Duration{"a": seconds(0, 1, 5)})
	})
}

func TestWhatASlowTaskMissesIsNotMadeUpFor(t *testing.T) {
	play(t, 1, func(p *Poller[string], d *diary) {
		d.takes["a"] = 12 * time.Second
		p.Set("a", d.task("a", 5*time.Second))
		pass(40 * time.Second)
		d.expect(t, map[string][]time.Duration{"a": seconds(5, 20, 35)})
	})
}

func TestNoMoreTasksThanSlotsAreDoneAtOnce(t *testing.T) {
	play(t, 3, func(p *Poller[string], d *diary) {
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			d.takes[key] = time.Second
			p.Set(key, d.task(key, 10*time.Second))
		}
		pass(19 * time.Second)
		if d.most != 3 || len(d.times) != 7 {
			t.Errorf("%d of %d tasks at once, want 3 of 7", d.most, len(d.times))
		}
	})
}

func TestTasksOfANamespaceWaitForEachOther(t *testing.T) {
	play(t, 4, func(p *Poller[string], d *diary) {
		for _, key := range []string{"a", "b", "c"} {
			d.takes[key] = time.Second
			task := d.task(key, 10*time.Second)
			task.Namespace = "shop"
			p.Set(key, task)
		}
		d.takes["other"] = time.Second // so that it goes on beside the others, whichever begins first
		p.Set("other", d.task("other", 10*time.Second))
		pass(15 * time.Second)
		if d.most != 3 || len(d.times["other"]) != 1 || d.times["other"][0] != 10*time.Second {
			t.Errorf("%d at once, %v", d.most, d.times)
		}
		if third := max(d.times["a"][0], d.times["b"][0], d.times["c"][0]); third != 11*time.Second {
			t.Errorf("the third of the namespace was done at %s", third)
		}
	})
}

func TestATaskThatIsRemovedWhileItWaitsIsNotDone(t *testing.T) {
	play(t, 1, func(p *Poller[string], d *diary) {
		d.takes["a"] = time.Minute
		p.Set("a", d.task("a", 5*time.Second))
		p.Set("b", d.task("b", 6*time.Second))
		pass(7 * time.Second)
		p.Remove("b")
		p.Remove("a")
		pass(time.Minute)
		d.expect(t, map[string][]time.Duration{"a": seconds(5), "a ended": seconds(7)})
	})
}

func TestARemovedTaskEndsAtOnce(t *testing.T) {
	play(t, 1, func(p *Poller[string], d *diary) {
		d.takes["a"] = time.Minute
		p.Set("a", d.task("a", 5*time.Second))
		pass(7 * time.Second)
		p.Remove("a")
		p.Remove("b") // which is not there
		p.Now("b")
		pass(time.Minute)
		d.expect(t, map[string][]time.Duration{"a": seconds(5), "a ended": seconds(7)})
	})
}

func TestAReplacedTaskEndsAtOnceAndTheNewOneIsDone(t *testing.T) {
	play(t, 2, func(p *Poller[string], d *diary) {
		d.takes["a"] = time.Minute
		p.Set("k", d.task("a", 5*time.Second))
		pass(7 * time.Second)
		p.Set("k", d.task("b", 4*time.Second))
		pass(6 * time.Second)
		d.expect(t, map[string][]time.Duration{"a": seconds(5), "a ended": seconds(7), "b": seconds(8, 12)})
	})
}

func TestTheNextTimeIsAlwaysWithinOneInterval(t *testing.T) {
	from := time.Unix(1e9, 0)
	task := Task{From: from, Every: 5 * time.Second}
	for since, want := range map[time.Duration]time.Duration{
		0:                         5 * time.Second,
		time.Second:               4 * time.Second,
		5 * time.Second:           5 * time.Second,
		time.Hour + 3*time.Second: 2 * time.Second,
		-time.Hour - time.Second:  time.Second, // the clock was set back
	} {
		if got := task.left(from.Add(since)); got != want {
			t.Errorf("%s after the start: %s, want %s", since, got, want)
		}
	}
}

func TestEveryBeginsAtOnceAndDoesNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, times := time.Now(), []time.Duration(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 22*time.Second)
		defer cancel()
		Every(ctx, clock.RealClock{}, 5*time.Second, func(context.Context) {
			times = append(times, time.Since(begun))
			time.Sleep(time.Duration(len(times)) * 2 * time.Second) // the third takes longer than its turn
		})
		if diff := cmp.Diff(seconds(0, 5, 10, 20), times); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
