// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"
)

// A clock of a process stands still while the machine is suspended, and the times of the
// API don't: what counts is the time of day.
func TestAJumpIsALookThatIsLate(t *testing.T) {
	start := time.Now()
	for name, test := range map[string]struct {
		looks  []time.Duration
		asked  time.Duration
		jumped bool
	}{
		"the first look":                {looks: []time.Duration{time.Hour}},
		"a look in time":                {looks: []time.Duration{0, time.Minute}, asked: time.Minute},
		"a look that an event brings":   {looks: []time.Duration{0, time.Second}, asked: time.Minute},
		"a look that nothing asked for": {looks: []time.Duration{0, time.Hour}},
		"a look in a long queue":        {looks: []time.Duration{0, time.Minute + LateLook}, asked: time.Minute},
		"a late look":                   {looks: []time.Duration{0, time.Hour}, asked: time.Minute, jumped: true},
	} {
		var l Lookout
		for _, at := range test.looks {
			l = l.Look(start.Add(at))
			l = l.LookAgain(test.asked)
		}
		if l.At != l.At.Round(0) {
			t.Errorf("%s: the time is that of a clock that stands still", name)
		}
		if jumped := l.Jump != (Jump{}); jumped != test.jumped {
			t.Errorf("%s: %+v", name, l.Jump)
		}
	}
}
