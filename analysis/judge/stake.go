// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"
)

// stakeDue is the part of the initial stake that is to be spent by the time
// that elapsed since betting began. Spreading it over start times makes a
// defect that begins late as visible as an early one, and a long good history
// no debt.
//
//	at           without start-up   with
//	0            .5                 .25
//	its end      –                  .4
//	each minute  .05                .035
//
// The last two minutes' worth is spread over all later minutes as 1/m(m+1), so
// that there is always some left: a defect after m such minutes costs only
// 2·ln(m) of evidence more, where a stake that is used up would leave nothing.
func stakeDue(elapsed time.Duration, s Startup) float64 {
	first, atEnd, rate := 0.5, 0.0, 0.05
	if s.For > 0 {
		first, atEnd, rate = 0.25, 0.4, 0.035
	}
	due := first
	if elapsed >= s.For {
		due += atEnd
	}
	const regular = 8 // minutes at the full rate
	minutes := math.Floor(elapsed.Minutes())
	due += rate * min(minutes, regular)
	if late := minutes - regular; late > 0 {
		due += 2 * rate * (1 - 1/(late+1))
	}
	return due
}
