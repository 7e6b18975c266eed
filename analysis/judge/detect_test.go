// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
)

// A canary that is worse by the effect that is said to be detectable after some
// time must be found by then about every second time.
func TestTheDetectableEffectIsFoundAboutEverySecondTime(t *testing.T) {
	for _, tt := range []struct {
		name       string
		rate, base float64
		weight     int32
		after      time.Duration
	}{
		{"few requests", 20, .001, 10, time.Minute},
		{"many requests", 1000, .001, 10, time.Minute},
		{"a higher base rate", 1000, .01, 10, 2 * time.Minute},
		{"half of the traffic", 500, .01, 50, 2 * time.Minute},
		{"nearly all of the traffic", 500, .01, 90, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			play := func(seed uint64, effect float64) judge.Result {
				flow := newTraffic(seed, tt.rate)
				flow.stable, flow.canary = always(tt.base), always(tt.base+effect)
				flow.weight = func(time.Duration) int32 { return tt.weight }
				var s judge.State
				var r judge.Result
				for flow.at < tt.after && r.Verdict != judge.Fail {
					s, r = plain().Next(s, flow.next())
				}
				return r
			}
			const runs = 300
			effect := play(0, 0).MinDetectableEffect
			found := 0
			for seed := range uint64(runs) {
				if play(seed, effect).Verdict == judge.Fail {
					found++
				}
			}
			t.Logf("%s: %.2f pp are said to be detectable after %v, and are found in %d of %d runs", tt.name, 100*effect, tt.after, found, runs)
			if found < runs*35/100 || found > runs*90/100 {
				t.Errorf("found in %d of %d runs, want about half", found, runs)
			}
		})
	}
}

func TestMoreRequestsDetectSmallerEffects(t *testing.T) {
	var s judge.State
	last := plain().Assess(s, epoch).MinDetectableEffect
	if last != 1 {
		t.Errorf("detectable without requests = %v, want 1: nothing would be found", last)
	}
	for i := range 100 {
		var r judge.Result
		s, r = plain().Next(s, window(i, 10, variant(100, 0), variant(900, 1)))
		if r.MinDetectableEffect > last*1.001 || r.MinDetectableEffect <= 0 {
			t.Fatalf("window %d: %v after %v", i, r.MinDetectableEffect, last)
		}
		last = r.MinDetectableEffect
	}
	if last > .01 {
		t.Errorf("detectable after 10,000 requests = %v, want less than 1 pp", last)
	}
}
