// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// randomExpression makes an expression that the schema takes.
func randomExpression(r *rand.Rand) v1alpha1.CronExpression {
	field := func(lowest, highest int) string {
		a, b := lowest+r.IntN(highest-lowest+1), lowest+r.IntN(highest-lowest+1)
		a, b = min(a, b), max(a, b)
		switch r.IntN(8) {
		case 0:
			return fmt.Sprintf("%d-%d", a, b)
		case 1:
			return fmt.Sprintf("*/%d", 1+r.IntN(highest))
		case 2:
			return fmt.Sprintf("%d,%d", a, b)
		case 3:
			return fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(7))
		case 4:
			return strconv.Itoa(a)
		}
		return "*"
	}
	hour := field(0, 23)
	if r.IntN(2) == 0 {
		hour = strconv.Itoa(r.IntN(4)) // where clocks are changed
	}
	return v1alpha1.CronExpression(strings.Join([]string{field(0, 59), hour, field(1, 31), field(1, 12), field(0, 6)}, " "))
}

// The library is the oracle of what an expression means, in UTC, where it has no
// changes of the clocks to go wrong at.
func TestExpressionsNameTheSameTimesAsTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := randomExpression(r)
		e, err := parseExpression(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		theirs, err := cron.ParseStandard(string(text))
		if err != nil {
			t.Fatal(err)
		}
		at := minute(r.Int64N(100 * 366 * minutesPerDay))
		for range 5 {
			want := theirs.Next(time.Unix(int64(at)*60, 0).UTC())
			got, ok := e.next(at)
			if want.IsZero() {
				break // theirs gives up after five years, ours after eight
			}
			if !ok || int64(got)*60 != want.Unix() {
				t.Fatalf("%q after %d: got %d (%v), want %s", text, at, got, ok, want)
			}
			checkLast(t, &e, at, got)
			at = got
		}
	}
}

// checkLast: last is the inverse of next.
func checkLast(t *testing.T, e *expression, before, next minute) {
	t.Helper()
	if last, ok := e.last(next, before); !ok || last != next {
		t.Fatalf("last(%d) = %d (%v)", next, last, ok)
	}
	if last, ok := e.last(next-1, before); ok && last > before {
		t.Fatalf("last(%d) = %d, but after %d the next one is %d", next-1, last, before, next)
	}
}

func TestTheWidestGapIsTheOneBetweenStartsOfADay(t *testing.T) {
	for text, want := range map[v1alpha1.CronExpression]int64{
		"* * * * *": 1, "0 * * * *": 60, "0 9 * * *": 0, "0,45 * * * *": 45, "50,59 0-23/2 * * *": 111, "10,30 9,12 * * *": 160, "@daily": 0,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		if e.widest != want {
			t.Errorf("%q: got %d, want %d", text, e.widest, want)
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	for text, want := range map[v1alpha1.CronExpression]string{
		"":                             "empty spec string; write minute, hour, day of month, month and day of week, such as \"0 9 * * MON-FRI\"",
		"soon":                         "expected exactly 5 fields, found 1",
		"@every 5m":                    "@every has no fixed start; name minutes and hours, such as \"0 */2 * * *\"",
		"@every":                       "@every has no fixed start",
		"@reboot":                      "unrecognized descriptor",
		"TZ=UTC 0 9 * * *":             "it must not name a time zone; use the field timeZone",
		"CRON_TZ=Asia/Tokyo 0 9 * * *": "it must not name a time zone; use the field timeZone",
		"TZ=":                          "it must not name a time zone; use the field timeZone",
		" TZ=UTC 0 9 * * *":            "it must not name a time zone; use the field timeZone",
		"30 0 9 * * *":                 "seconds are not supported, write minute",
		"60 9 * * *":                   "above maximum (59)",
		"0 24 * * *":                   "above maximum (23)",
		"0 0 0 * *":                    "below minimum (1)",
		"0 0 1 13 *":                   "above maximum (12)",
		"0 0 * * 7":                    "above maximum (6)",
		"*/0 * * * *":                  "step of range should be a positive number",
		"5-1 * * * *":                  "beyond end of range",
		", * * * *":                    "one of its fields matches nothing; write * for any value",
		"0 , * * *":                    "one of its fields matches nothing",
		"0 0 , * *":                    "one of its fields matches nothing",
		"0 0 * , *":                    "one of its fields matches nothing",
		"0 0 * * ,":                    "one of its fields matches nothing",
	} {
		_, err := parseExpression(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: error %v, want one that quotes it and says %q", text, err, want)
		}
	}
}
