// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"testing"
	"time"
)

func TestACacheIsStuckWhenEachReadIsLateWhileTheAPIAnswers(t *testing.T) {
	website, shop := Read{"Rollout", "shop", "website"}, Read{Kind: "ReplicaSet", Namespace: "shop"}
	type tick struct {
		late, inTime []Read
		away         bool
	}
	late := tick{late: []Read{website}}
	repeat := func(n int, ticks ...tick) (out []tick) {
		for range n {
			out = append(out, ticks...)
		}
		return out
	}
	for name, test := range map[string]struct {
		ticks []tick // one every 20 seconds
		stuck bool
	}{
		"each read of an object is late for longer than five minutes": {repeat(20, late), true},
		"other reads are in time":                                     {repeat(20, tick{late: []Read{website}, inTime: []Read{shop}}), true},
		"each list is late":                                           {repeat(20, tick{late: []Read{shop}}), true},
		"for less than five minutes":                                  {repeat(14, late), false},
		"a read was in time in between":                               {append(append(repeat(12, late), tick{inTime: []Read{website}}), repeat(12, late)...), false},
		"the API is away":                                             {repeat(200, tick{late: []Read{website}, away: true}), false},
		"the API is back for less than five minutes":                  {append(repeat(200, tick{late: []Read{website}, away: true}), repeat(14, late)...), false},
		"the API is back, and the cache does not follow":              {append(repeat(200, tick{late: []Read{website}, away: true}), repeat(20, late)...), true},
		"the API answers from time to time":                           {repeat(100, late, tick{late: []Read{website}, away: true}), false},
		"the object was not read again":                               {append(repeat(13, late), repeat(10, tick{})...), false},
		"nothing is late":                                             {repeat(20, tick{inTime: []Read{website, shop}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			var l Lag
			now := time.Unix(1e9, 0)
			stuck := false
			for _, tick := range test.ticks {
				for _, r := range tick.late {
					l.Late(r, now)
				}
				for _, r := range tick.inTime {
					l.CaughtUp(r)
				}
				_, since, suspect := l.Suspect(now)
				if suspect {
					l.Answered(!tick.away, now)
				}
				stuck = suspect && l.Stuck(since, now)
				now = now.Add(20 * time.Second)
			}
			if stuck != test.stuck {
				t.Errorf("stuck: %t", stuck)
			}
		})
	}
}

func TestWhatIsNotReadAgainIsForgotten(t *testing.T) {
	var l Lag
	now := time.Unix(1e9, 0)
	for i := range 1000 {
		l.Late(Read{Kind: "Pod", Name: time.Duration(i).String()}, now)
		now = now.Add(time.Second)
	}
	if len(l.late) > int(forgetAfter/time.Second)+1 {
		t.Errorf("%d reads are kept", len(l.late))
	}
}
