// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"time"
)

// minute is what a clock on the wall shows, as the number of minutes since it
// showed 1970-01-01 00:00: one per minute of the calendar, whether the clock
// skipped it, showed it once or showed it twice.
type minute int64

const (
	minutesPerDay = 24 * 60
	// widestOffset is more than any zone was ever ahead of or behind UTC, in seconds.
	widestOffset = 16 * 3600
	// longestMemory is how long after a clock was set back it may still show what it
	// showed before, in seconds: a day (zones that moved across the date line), and
	// twice the widest offset to be safe.
	longestMemory = 24*3600 + 2*widestOffset
)

// dial is a clock on the wall of a zone. It remembers the stretch of time, between
// two changes of the clocks, that it was asked about last, because the next
// question is nearly always about the same. Not for concurrent use.
type dial struct {
	zone *time.Location
	// from and until are the stretch in Unix seconds, until excluded; the same value
	// before the first question.
	from, until int64
	// offset is what the clock is ahead of UTC within it, in seconds.
	offset int64
}

// turn moves to the stretch that contains a moment.
func (d *dial) turn(second int64) {
	if d.from <= second && second < d.until {
		return
	}
	d.from, d.until, d.offset = stretch(d.zone, second)
	for d.from != math.MinInt64 {
		_, until, offset := stretch(d.zone, d.from)
		if offset == d.offset {
			return
		}
		d.from = until
	}
}

// stretch asks the zone for the stretch that contains a moment. Where the zone has a
// rule rather than a table of changes, time.ZoneBounds is exact close to a change
// only, as its source says:
//   - It may end a stretch at the end of a year. Two stretches with one offset do
//     no harm.
//   - On the last day of a leap year it says that the stretch has ended before. There
//     it ends with that day of UTC, on which no rule changes clocks any more.
//   - In the year in which the rule follows the table, it may begin too
//     early, over a change of the table. turn looks for that.
func stretch(zone *time.Location, second int64) (from, until, offset int64) {
	const day = 24 * 3600
	at := time.Unix(second, 0).In(zone)
	_, ahead := at.Zone()
	begin, end := at.ZoneBounds()
	from, until = math.MinInt64, math.MaxInt64
	if !begin.IsZero() {
		from = min(begin.Unix(), second)
	}
	if !end.IsZero() {
		until = end.Unix()
	}
	if until <= second {
		until = (floorDiv(second, day) + 1) * day
	}
	return from, until, int64(ahead)
}

// reached is the latest minute that the clock has shown up to a moment. After it
// was set back, that is more than it shows.
func (d *dial) reached(at time.Time) minute {
	second := at.Unix()
	d.turn(second)
	latest := second + d.offset
	for from := d.from; from != math.MinInt64 && second-from < longestMemory; from = d.from {
		d.turn(from - 1)
		latest = max(latest, from-1+d.offset)
	}
	return minute(floorDiv(latest, 60))
}

// first is the first moment at which the clock shows the minute or a later one.
func (d *dial) first(m minute) time.Time {
	shown := int64(m) * 60
	at := shown - widestOffset // a moment at which it shows less
	for {
		d.turn(at)
		if at = max(at, shown-d.offset); at < d.until {
			return time.Unix(at, 0).In(d.zone)
		}
		at = d.until
	}
}

// floorDiv divides and rounds down, also below zero.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
