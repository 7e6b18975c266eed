// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// calendarCycle is the longest time between two days that an expression names, in
// days: eight years, from 29 February 2096 to 29 February 2104. One that names
// none within it names none at all.
const calendarCycle = 8*365 + 1

// star marks a field of cron.SpecSchedule that was written as "*" or "?". Of the
// two fields for days, both have to match if either is a star, else one of them.
const star = 1 << 63

// expression is a cron expression. It is evaluated here, on minutes of the wall
// clock, and not by cron.SpecSchedule.Next, which can't look back and skips a day
// whose start the clocks skip.
type expression struct {
	minutes, hours uint64 // bit n: the minute, the hour n
	days           cron.SpecSchedule
	// widest is the longest time between two starts of the same day, in minutes.
	widest int64
}

// parseExpression reads an expression. The error quotes it and says what to write.
func parseExpression(text v1alpha1.CronExpression) (expression, error) {
	spec, err := parseCron(strings.TrimSpace(string(text)))
	if err != nil {
		return expression{}, fmt.Errorf("%q is not a valid cron expression: %w", string(text), err)
	}
	e := expression{minutes: spec.Minute & (1<<60 - 1), hours: spec.Hour & (1<<24 - 1), days: *spec}
	if e.minutes == 0 || e.hours == 0 || spec.Dom == 0 || spec.Month == 0 || spec.Dow == 0 {
		return expression{}, fmt.Errorf("%q is not a valid cron expression: one of its fields matches nothing; write * for any value", string(text))
	}
	e.widest = max(widestGap(e.minutes), widestGap(e.hours)*60-span(e.minutes))
	return e, nil
}

// parseCron refuses what the parser would take but this package can't honour.
func parseCron(text string) (*cron.SpecSchedule, error) {
	switch {
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return nil, errors.New("it must not name a time zone; use the field timeZone")
	case strings.HasPrefix(text, "@every"):
		return nil, errors.New("@every has no fixed start; name minutes and hours, such as \"0 */2 * * *\"")
	case !strings.HasPrefix(text, "@") && len(strings.Fields(text)) == 6:
		return nil, errors.New("it has six fields; seconds are not supported, write minute, hour, day of month, month and day of week")
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%w; write minute, hour, day of month, month and day of week, such as \"0 9 * * MON-FRI\"", err)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("write minute, hour, day of month, month and day of week, such as \"0 9 * * MON-FRI\"")
	}
	return spec, nil
}

// next is the first minute that the expression names after the given one.
func (e *expression) next(after minute) (minute, bool) {
	day, rest := floorDiv(int64(after)+1, minutesPerDay), int(mod(int64(after)+1, minutesPerDay))
	for limit := day + calendarCycle; day <= limit; rest = 0 {
		matches, month := e.names(day)
		if matches {
			if m, ok := e.atOrAfter(rest); ok {
				return minute(day*minutesPerDay + m), true
			}
		}
		day++
		if !month {
			day = firstOfMonth(day-1, 1)
		}
	}
	return 0, false
}

// last is the last minute that the expression names up to the given one. One before
// the day of the oldest is not looked for.
func (e *expression) last(upTo, oldest minute) (minute, bool) {
	day, rest := floorDiv(int64(upTo), minutesPerDay), int(mod(int64(upTo), minutesPerDay))
	for limit := floorDiv(int64(oldest), minutesPerDay); day >= limit; rest = minutesPerDay - 1 {
		matches, month := e.names(day)
		if matches {
			if m, ok := e.atOrBefore(rest); ok {
				return minute(day*minutesPerDay + m), true
			}
		}
		if !month {
			day = firstOfMonth(day, 0)
		}
		day--
	}
	return 0, false
}

// lastOfDay is the last start of the day of a start.
func (e *expression) lastOfDay(start minute) minute {
	m, _ := e.atOrBefore(minutesPerDay - 1) // there is one: no field is empty
	return minute(floorDiv(int64(start), minutesPerDay)*minutesPerDay + m)
}

// names reports whether the expression names a day, counted from 1970-01-01, and
// its month at all.
func (e *expression) names(day int64) (matches, month bool) {
	date := dateOf(day)
	if 1<<uint(date.Month())&e.days.Month == 0 {
		return false, false
	}
	ofMonth := 1<<uint(date.Day())&e.days.Dom != 0
	ofWeek := 1<<uint(date.Weekday())&e.days.Dow != 0
	if (e.days.Dom|e.days.Dow)&star != 0 {
		return ofMonth && ofWeek, true
	}
	return ofMonth || ofWeek, true
}

// atOrAfter is the first start of a day at or after a minute of the day.
func (e *expression) atOrAfter(m int) (int64, bool) {
	hour := m / 60
	if rest := e.minutes >> (m % 60); e.hours>>hour&1 != 0 && rest != 0 {
		return int64(m + bits.TrailingZeros64(rest)), true
	}
	later := e.hours >> (hour + 1)
	if later == 0 {
		return 0, false
	}
	hour += 1 + bits.TrailingZeros64(later)
	return int64(hour*60 + bits.TrailingZeros64(e.minutes)), true
}

// atOrBefore is the last start of a day at or before a minute of the day.
func (e *expression) atOrBefore(m int) (int64, bool) {
	hour := m / 60
	if rest := e.minutes & (1<<(m%60+1) - 1); e.hours>>hour&1 != 0 && rest != 0 {
		return int64(hour*60 + bits.Len64(rest) - 1), true
	}
	earlier := e.hours & (1<<hour - 1)
	if earlier == 0 {
		return 0, false
	}
	return int64((bits.Len64(earlier)-1)*60 + bits.Len64(e.minutes) - 1), true
}

// widestGap is the longest distance between two neighbouring bits, 0 for one bit.
func widestGap(set uint64) int64 {
	widest, before := 0, bits.TrailingZeros64(set)
	for rest := set & (set - 1); rest != 0; rest &= rest - 1 {
		n := bits.TrailingZeros64(rest)
		widest, before = max(widest, n-before), n
	}
	return int64(widest)
}

// span is the distance between the first and the last bit.
func span(set uint64) int64 {
	return int64(bits.Len64(set) - 1 - bits.TrailingZeros64(set))
}

// dateOf is a day of the calendar, as midnight in UTC.
func dateOf(day int64) time.Time { return time.Unix(day*24*3600, 0).UTC() }

// firstOfMonth is the first day of the month of a day, or of one some months later.
func firstOfMonth(day int64, later time.Month) int64 {
	date := dateOf(day)
	return floorDiv(time.Date(date.Year(), date.Month()+later, 1, 0, 0, 0, 0, time.UTC).Unix(), 24*3600)
}

// mod is what floorDiv leaves.
func mod(a, b int64) int64 { return a - floorDiv(a, b)*b }
