// SPDX-License-Identifier: Apache-2.0

package debounce

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func at(after time.Duration) time.Time { return time.Unix(1e9, 0).Add(after) }

func TestSomethingIsAtRestWhenItHasLookedTheSameForAWhile(t *testing.T) {
	type look struct {
		after   time.Duration
		version string
		want    bool
	}
	pause := Pause{Quiet: 100 * ms, Most: 2 * time.Second}
	busy := []look{}
	for after := time.Duration(0); after < pause.Most; after += 50 * ms {
		busy = append(busy, look{after, after.String(), false})
	}
	for name, looks := range map[string][]look{
		"at the second look":               {{0, "1", false}, {99 * ms, "1", false}, {100 * ms, "1", true}},
		"since its last change":            {{0, "1", false}, {90 * ms, "2", false}, {150 * ms, "2", false}, {190 * ms, "2", true}},
		"anew when it is waited for again": {{0, "1", false}, {100 * ms, "1", true}, {101 * ms, "1", false}},
		"at last when it never rests":      append(busy, look{pause.Most, "x", true}),
	} {
		t.Run(name, func(t *testing.T) {
			var w Waits[string]
			for _, l := range looks {
				if got := w.Look("a", l.version, pause, at(l.after)) == 0; got != l.want {
					t.Fatalf("after %s, version %s: at rest %v, want %v", l.after, l.version, got, l.want)
				}
			}
		})
	}
}

func TestALookSaysHowLongToWait(t *testing.T) {
	var w Waits[string]
	for _, l := range []struct {
		after time.Duration
		pause Pause
		want  time.Duration
	}{
		{0, Pause{Quiet: time.Second}, time.Second},
		{300 * ms, Pause{Quiet: time.Second}, 700 * ms},
		{300 * ms, Pause{Quiet: time.Second, Most: 2 * time.Second}, 700 * ms},
		{-time.Hour, Pause{Quiet: time.Second}, time.Second}, // the clock was set back
		{time.Second, Pause{Quiet: time.Second}, 0},
		{time.Second, Pause{Quiet: time.Second}, time.Second}, // which begins anew
	} {
		if got := w.Look("a", "", l.pause, at(l.after)); got != l.want {
			t.Errorf("after %s: %s, want %s", l.after, got, l.want)
		}
	}
}

func TestWhatIsNotWaitedForIsForgotten(t *testing.T) {
	var w Waits[string]
	for _, key := range []string{"a", "b", "c"} {
		w.Look(key, "1", Pause{Quiet: time.Second}, at(0))
	}
	w.Look("a", "1", Pause{Quiet: time.Second}, at(time.Second))
	w.Forget("b")
	if len(w.of) != 1 {
		t.Errorf("remembers %v", w.of)
	}
}

func TestAPauseThatNeverBeganIsOver(t *testing.T) {
	if left := Left(time.Time{}, time.Minute, at(0)); left != 0 {
		t.Errorf("%s are left", left)
	}
}
