// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/poll/fair"
)

// k is the Rollout that is measured.
var k = named("k")

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// counting is a source that counts ten canary and ninety stable requests a second for every target.
type counting struct {
	begun time.Time
	// read replaces the answer for the canary backend of that name.
	read map[string]func(ctx context.Context, s analysis.Scrape) (analysis.Scrape, error)

	busy, most atomic.Int32
	mu         sync.Mutex
	times      map[string][]time.Duration // of each scrape by canary backend
}

func newCounting() *counting {
	return &counting{
		begun: time.Now(),
		read:  map[string]func(context.Context, analysis.Scrape) (analysis.Scrape, error){},
		times: map[string][]time.Duration{},
	}
}

func (s *counting) Scrape(ctx context.Context, t analysis.Target, at time.Time) (analysis.Scrape, error) {
	if busy := s.busy.Add(1); busy > s.most.Load() {
		s.most.Store(busy)
	}
	defer s.busy.Add(-1)
	s.mu.Lock()
	s.times[t.Canary] = append(s.times[t.Canary], at.Sub(s.begun))
	s.mu.Unlock()
	seconds := int64(at.Sub(s.begun) / time.Second)
	out := analysis.Scrape{At: at, Pods: map[string]analysis.PodCounters{}}
	for _, p := range t.Pods {
		out.Pods[p.UID] = analysis.PodCounters{Canary: analysis.Variant{Requests: 10 * seconds}, Stable: analysis.Variant{Requests: 90 * seconds}}
	}
	if read, ok := s.read[t.Canary]; ok {
		return read(ctx, out)
	}
	return out, nil
}

func (s *counting) scrapes(canary string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.times[canary]...)
}

func targetOf(canary string) analysis.Target {
	return analysis.Target{Pods: []analysis.Pod{{UID: "a", Address: "10.0.0.1:9113"}}, Stable: "stable", Canary: canary}
}

// collecting starts Proxies in a bubble and stops them at the end of the test.
func collecting(t *testing.T, s *counting, slots int) *Proxies {
	t.Helper()
	p := newProxies(s, clock.RealClock{}, slots)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start = %v, want nil after the context ended", err)
		}
	})
	return p
}

func newProxies(s Source, c clock.WithTicker, slots int) *Proxies {
	o := ProxiesOptions{Source: s, Clock: c, Changes: changes.New()}
	if slots > 0 {
		o.Slots = fair.NewSlots(fair.Limits{Slots: slots})
	}
	return NewProxies(o)
}

func TestWindowsCloseEachIntervalAndTheOwnerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		c := collecting(t, s, 0)
		begun := time.Now()
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10, Since: begun})
		pass(21 * time.Second)
		windows, health := c.Windows(k, time.Time{})
		if len(windows) == 0 {
			t.Fatalf("no windows; health %+v", health)
		}
		newest := windows[len(windows)-1]
		want := analysis.Window{Start: newest.End.Add(-5 * time.Second), End: newest.End, Weight: 10, Canary: arm(50), Stable: arm(450)}
		for i, got := range slices.Backward(windows) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("window %d (-want +got):\n%s", i, diff)
			}
			want.Start, want.End = want.Start.Add(-5*time.Second), want.End.Add(-5*time.Second)
		}
		wantHealth := analysis.Health{LastScrape: newest.End, LastWindow: newest.End, Pods: 1}
		if diff := cmp.Diff(wantHealth, health); diff != "" {
			t.Errorf("health (-want +got):\n%s", diff)
		}
		if later, _ := c.Windows(k, newest.Start); len(later) != 1 {
			t.Errorf("%d windows after the start of the newest, want only that", len(later))
		}
		if later, _ := c.Windows(k, newest.End); len(later) != 0 {
			t.Errorf("%d windows after the end of the newest, want none", len(later))
		}
		if got, want := len(c.Changes), len(windows)+1; got != want {
			t.Errorf("notified %d times, want %d: for each window and for the first scrape", got, want)
		}
	})
}

func TestRoundsDoNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["slow"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			time.Sleep(700 * time.Millisecond)
			return out, nil
		}
		c := newProxies(s, clock.RealClock{}, 0)
		c.watch(k, targetOf("slow"), analysis.Weight{Since: time.Now()})
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second}
		if diff := cmp.Diff(want, s.scrapes("slow")); diff != "" {
			t.Errorf("scraped at (-want +got):\n%s", diff)
		}
	})
}

func TestATargetThatHangsDelaysNoOtherAndIsGivenUpAfterAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["hangs"] = func(ctx context.Context, _ analysis.Scrape) (analysis.Scrape, error) {
			<-ctx.Done()
			return analysis.Scrape{}, errors.New("did not answer in time")
		}
		c := collecting(t, s, 0)
		for i := range 4 {
			c.watch(named(fmt.Sprint("hangs", i)), targetOf("hangs"), analysis.Weight{Since: time.Now()})
		}
		c.watch(named("fine"), targetOf("fine"), analysis.Weight{Since: time.Now()})
		pass(61 * time.Second)
		if windows, health := c.Windows(named("fine"), time.Time{}); len(windows) < 10 {
			t.Errorf("%d windows of the other target in a minute, want at least 10; health %+v", len(windows), health)
		}
		_, health := c.Windows(named("hangs0"), time.Time{})
		want := analysis.Health{Reason: analysis.ReasonNoData, Message: "did not answer in time", Pods: 1}
		if diff := cmp.Diff(want, health); diff != "" {
			t.Errorf("health of the one that hangs (-want +got):\n%s", diff)
		}
	})
}

func TestNoMoreTargetsThanAllowedAreScrapedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["c"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			time.Sleep(100 * time.Millisecond)
			return out, nil
		}
		c := collecting(t, s, 5) // of which a namespace gets three
		for i := range 20 {
			c.watch(named(strconv.Itoa(i)), targetOf("c"), analysis.Weight{Since: time.Now()})
		}
		pass(7 * time.Second)
		if most := s.most.Load(); most != 3 {
			t.Errorf("%d scraped at once, want 3", most)
		}
		for i := range 20 {
			if windows, health := c.Windows(named(strconv.Itoa(i)), time.Time{}); len(windows) != 1 {
				t.Errorf("target %d: %d windows, want 1; health %+v", i, len(windows), health)
			}
		}
	})
}

func TestNoWindowClosesWhileTheWeightChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collecting(t, newCounting(), 0)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10, Since: time.Now()})
		pass(21 * time.Second)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10})
		changing := time.Now()
		pass(12 * time.Second)
		windows, health := c.Windows(k, changing)
		if len(windows) != 0 || health.Reason != analysis.ReasonWeightChanging {
			t.Errorf("%d windows (%s) while the weight changes, want none (WeightChanging)", len(windows), health.Reason)
		}
		confirmed := time.Now()
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 20, Since: confirmed})
		pass(15 * time.Second)
		windows, _ = c.Windows(k, changing)
		if len(windows) == 0 {
			t.Fatal("no windows after the weight was confirmed")
		}
		for _, w := range windows {
			if w.Start.Before(confirmed) || w.Weight != 20 {
				t.Errorf("window from %v at weight %d, want none from before %v", w.Start, w.Weight, confirmed)
			}
		}
	})
}

func TestAWindowBeginsRightAfterTheWeightIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		c := collecting(t, s, 0)
		pass(2 * time.Second)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10, Since: time.Now()})
		pass(10 * time.Second)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10})
		pass(time.Second)
		confirmed := time.Now()
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 20, Since: confirmed})
		pass(3 * time.Second)
		want := []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 13 * time.Second, 15 * time.Second}
		if diff := cmp.Diff(want, s.scrapes("c")); diff != "" {
			t.Errorf("scraped at (-want +got):\n%s", diff)
		}
		windows, _ := c.Windows(k, confirmed)
		if len(windows) != 1 || !windows[0].Start.Equal(confirmed) {
			t.Errorf("windows %v, want one that begins at %v", windows, confirmed)
		}
	})
}

// The weight is confirmed while a scrape from before is under way.
func TestAScrapeThatCameTooEarlyIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["c"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			time.Sleep(time.Second)
			return out, nil
		}
		c := collecting(t, s, 0)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10, Since: time.Now()})
		pass(500 * time.Millisecond)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 20, Since: time.Now()})
		pass(7 * time.Second)
		if diff := cmp.Diff([]time.Duration{0, time.Second, 5 * time.Second}, s.scrapes("c")); diff != "" {
			t.Errorf("scraped at (-want +got):\n%s", diff)
		}
		if windows, _ := c.Windows(k, time.Time{}); len(windows) != 1 || windows[0].Weight != 20 {
			t.Errorf("windows %v, want one at weight 20", windows)
		}
	})
}

// odd is a clock that never shows a whole microsecond.
type odd struct{ clock.RealClock }

func (o odd) Now() time.Time { return o.RealClock.Now().Add(123 * time.Nanosecond) }

func TestTheTimesOfWindowsSurviveBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newProxies(newCounting(), odd{}, 0)
		c.watch(k, targetOf("c"), analysis.Weight{Since: time.Now()})
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		windows, _ := c.Windows(k, time.Time{})
		if len(windows) == 0 {
			t.Fatal("no windows")
		}
		for _, w := range windows {
			if stored := time.UnixMicro(w.End.UnixMicro()); !stored.Equal(w.End) {
				t.Errorf("window ends at %v, which is stored as %v", w.End, stored)
			}
		}
	})
}

// The scrape began at the old weight and ended when it was already changing.
func TestAWeightThatChangesDuringAScrapeDropsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		var c *Proxies
		var change atomic.Bool
		s.read["c"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			if change.Load() {
				c.watch(k, targetOf("c"), analysis.Weight{Percent: 10})
			}
			return out, nil
		}
		c = newProxies(s, clock.RealClock{}, 0)
		c.watch(k, targetOf("c"), analysis.Weight{Percent: 10, Since: time.Now()})
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		time.AfterFunc(7*time.Second, func() { change.Store(true) })
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if windows, health := c.Windows(k, time.Time{}); len(windows) != 1 || health.Reason != analysis.ReasonWeightChanging {
			t.Errorf("%d windows (%s), want only the one from before (WeightChanging)", len(windows), health.Reason)
		}
	})
}

func TestHealthSaysWhyDataIsMissingAndTheOwnerIsToldOnce(t *testing.T) {
	failing := func(context.Context, analysis.Scrape) (analysis.Scrape, error) {
		return analysis.Scrape{}, errors.New("none of 1 proxies could be read")
	}
	var calls atomic.Int32
	for _, tt := range []struct {
		name string
		read func(context.Context, analysis.Scrape) (analysis.Scrape, error)
		pods []analysis.Pod
		want analysis.Health
	}{
		{"no pod can be read", failing, targetOf("c").Pods, analysis.Health{Reason: analysis.ReasonNoData, Message: "none of 1 proxies could be read", Pods: 1}},
		{"the target has no pods", nil, nil, analysis.Health{Reason: analysis.ReasonNoPods, Message: "there are no proxies to read"}},
		{"the source panics", func(context.Context, analysis.Scrape) (analysis.Scrape, error) { panic("broken") }, targetOf("c").Pods, analysis.Health{Reason: analysis.ReasonNoData, Message: "the source panicked: broken", Pods: 1}},
		{"the message differs each time", func(context.Context, analysis.Scrape) (analysis.Scrape, error) {
			return analysis.Scrape{}, fmt.Errorf("call %d", min(calls.Add(1), 3))
		}, targetOf("c").Pods, analysis.Health{Reason: analysis.ReasonNoData, Message: "call 3", Pods: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCounting()
				if tt.read != nil {
					s.read["c"] = tt.read
				}
				c := collecting(t, s, 0)
				broken := targetOf("c")
				broken.Pods = tt.pods
				c.watch(k, broken, analysis.Weight{Since: time.Now()})
				pass(31 * time.Second)
				windows, health := c.Windows(k, time.Time{})
				if len(windows) != 0 {
					t.Errorf("%d windows, want none", len(windows))
				}
				if diff := cmp.Diff(tt.want, health); diff != "" {
					t.Errorf("health (-want +got):\n%s", diff)
				}
				if n := len(c.Changes); n != 1 {
					t.Errorf("notified %d times, want once", n)
				}
			})
		})
	}
}

func TestAPodThatIsMissedShowsInHealthWhileTheOthersAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["c"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			out.Missed = []analysis.Missed{{UID: "b", Err: errors.New("proxy 10.0.0.2:9113: did not answer in time")}}
			return out, nil
		}
		c := collecting(t, s, 0)
		two := targetOf("c")
		two.Pods = append(two.Pods, analysis.Pod{UID: "b", Address: "10.0.0.2:9113"})
		c.watch(k, two, analysis.Weight{Since: time.Now()})
		pass(11 * time.Second)
		windows, health := c.Windows(k, time.Time{})
		if len(windows) == 0 || health.Reason != "" || health.Missed != 1 || health.Message != "proxy 10.0.0.2:9113: did not answer in time" {
			t.Errorf("%d windows, health %+v; want windows and one pod missed with the reason", len(windows), health)
		}
	})
}

func TestWatchingTheSameAgainKeepsTheWindowsAndOtherBackendsDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		c := collecting(t, s, 0)
		weight := analysis.Weight{Since: time.Now()}
		c.watch(k, targetOf("c"), weight)
		pass(21 * time.Second)
		before, _ := c.Windows(k, time.Time{})
		scrapes := len(s.scrapes("c"))
		c.watch(k, targetOf("c"), weight)
		synctest.Wait()
		if n := len(s.scrapes("c")); n != scrapes {
			t.Errorf("%d scrapes after watching again, want the %d of before", n, scrapes)
		}
		if after, _ := c.Windows(k, time.Time{}); len(after) != len(before) || len(after) == 0 {
			t.Errorf("%d windows after watching again, want the %d of before", len(after), len(before))
		}
		moved := targetOf("c")
		moved.Pods[0].UID = "b"
		c.watch(k, moved, weight)
		if after, _ := c.Windows(k, time.Time{}); len(after) != len(before) {
			t.Errorf("%d windows with other pods, want the %d of before", len(after), len(before))
		}
		c.watch(k, targetOf("other"), weight)
		if after, _ := c.Windows(k, time.Time{}); len(after) != 0 {
			t.Errorf("%d windows of other backends, want none", len(after))
		}
	})
}

func TestForgettingEndsTheMeasuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		c := collecting(t, s, 0)
		s.read["c"] = func(_ context.Context, out analysis.Scrape) (analysis.Scrape, error) {
			time.Sleep(time.Second)
			return out, nil
		}
		c.watch(k, targetOf("c"), analysis.Weight{Since: time.Now()})
		pass(10*time.Second + 500*time.Millisecond) // a scrape is under way
		before := len(c.Changes)
		c.Forget(k)
		pass(20 * time.Second)
		if windows, health := c.Windows(k, time.Time{}); len(windows) != 0 || health != (analysis.Health{}) {
			t.Errorf("%d windows, health %+v after Forget, want nothing", len(windows), health)
		}
		if n := len(c.Changes); n != before {
			t.Errorf("notified %d times more after Forget", n-before)
		}
		if n := len(s.scrapes("c")); n != 3 {
			t.Errorf("%d scrapes, want 3 from before", n)
		}
	})
}

func TestOnlyTheLastWindowsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collecting(t, newCounting(), 0)
		c.watch(k, targetOf("c"), analysis.Weight{Since: time.Now()})
		pass(11 * time.Minute)
		windows, health := c.Windows(k, time.Time{})
		if len(windows) != keep || !windows[keep-1].End.Equal(health.LastWindow) {
			t.Errorf("%d windows, want the last %d", len(windows), keep)
		}
	})
}

func TestStoppingIsNotAFaultOfTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["c"] = func(ctx context.Context, _ analysis.Scrape) (analysis.Scrape, error) {
			<-ctx.Done()
			return analysis.Scrape{}, ctx.Err()
		}
		c := newProxies(s, clock.RealClock{}, 0)
		c.watch(k, targetOf("c"), analysis.Weight{Since: time.Now()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if _, health := c.Windows(k, time.Time{}); health != (analysis.Health{}) || len(c.Changes) != 0 {
			t.Errorf("health %+v, notified %d times; want nothing", health, len(c.Changes))
		}
	})
}

func TestManyGoroutinesMayUseACollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collecting(t, newCounting(), 2)
		var users sync.WaitGroup
		for i := range 8 {
			users.Go(func() {
				for j := range 50 {
					key := named(strconv.Itoa((i + j) % 5))
					c.watch(key, targetOf("c"), analysis.Weight{Since: time.Now()})
					c.Windows(key, time.Time{})
					if j%7 == 0 {
						c.Forget(key)
					}
					time.Sleep(time.Second)
				}
			})
		}
		users.Wait()
	})
}

// counted is what one proxy answered without failures.
func arm(requests int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Spread: analysis.Spread{Proxies: 1}}
}
