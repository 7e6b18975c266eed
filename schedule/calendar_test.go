// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests do not depend on the machine

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// instant reads a time with its offset, such as 2026-11-23T09:00:00+01:00.
func instant(tb testing.TB, text string) time.Time {
	tb.Helper()
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

func parse(tb testing.TB, s *v1alpha1.Schedule, freezes ...v1alpha1.Freeze) Calendar {
	tb.Helper()
	c, err := Parse(s, freezes)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func window(start, duration string) v1alpha1.Window {
	return v1alpha1.Window{Start: v1alpha1.CronExpression(start), Duration: v1alpha1.Duration(duration)}
}

func windows(zone string, list ...v1alpha1.Window) *v1alpha1.Schedule {
	return &v1alpha1.Schedule{TimeZone: zone, Windows: list}
}

func freezes(list ...v1alpha1.FreezeWindow) *v1alpha1.Schedule {
	return &v1alpha1.Schedule{Freezes: list}
}

func freezeWindow(start, duration, reason string) v1alpha1.FreezeWindow {
	return v1alpha1.FreezeWindow{Start: v1alpha1.CronExpression(start), Duration: v1alpha1.Duration(duration), Reason: reason}
}

func recurringFreeze(name, zone, start, duration string) v1alpha1.Freeze {
	return v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FreezeSpec{
		Reason: "books are closed",
		Recurring: &v1alpha1.RecurringFreeze{
			TimeZone: zone, Start: v1alpha1.CronExpression(start), Duration: v1alpha1.Duration(duration),
		},
	}}
}

func singleFreeze(tb testing.TB, name, from, until string) v1alpha1.Freeze {
	tb.Helper()
	f := v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FreezeSpec{Reason: "peak season"}}
	if from != "" {
		f.Spec.From = &metav1.Time{Time: instant(tb, from)}
	}
	if until != "" {
		f.Spec.Until = &metav1.Time{Time: instant(tb, until)}
	}
	return f
}

// answer is a State with times as text, for tables.
type answer struct {
	state                string // open, closed or frozen
	until, opens, reason string
}

func answerOf(s State) answer {
	show := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339Nano)
	}
	a := answer{state: "closed", until: show(s.Until), opens: show(s.Opens), reason: s.Reason}
	if s.Open {
		a.state = "open"
	}
	if s.Frozen {
		a.state = "frozen"
	}
	return a
}

type moment struct {
	at   string
	want answer
}

// check asks one Calendar at several moments.
func check(t *testing.T, c Calendar, moments []moment) {
	t.Helper()
	for _, m := range moments {
		if diff := cmp.Diff(m.want, answerOf(c.At(instant(t, m.at))), cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", m.at, diff)
		}
	}
}

func TestWithoutAScheduleItIsAlwaysOpen(t *testing.T) {
	for name, s := range map[string]*v1alpha1.Schedule{"none": nil, "an empty one": {}, "only a zone": {TimeZone: "Asia/Kathmandu"}} {
		t.Run(name, func(t *testing.T) {
			check(t, parse(t, s), []moment{{"2026-11-21T18:00:00Z", answer{state: "open"}}})
		})
	}
}

func TestTheZeroCalendarIsClosed(t *testing.T) {
	want := answer{state: "closed", reason: "outside the windows of spec.schedule, which never open"}
	check(t, Calendar{}, []moment{{"2026-11-21T18:00:00Z", want}})
	c, err := Parse(windows("Mars/Olympus"), nil)
	if err == nil {
		t.Fatal("no error")
	}
	check(t, c, []moment{{"2026-11-21T18:00:00Z", want}})
	if _, ok, err := (Calendar{}).Next("@daily", instant(t, "2026-11-21T18:00:00Z")); err != nil || !ok {
		t.Errorf("Next of the zero Calendar: %v, %v", ok, err)
	}
}

const outside = "outside the windows of spec.schedule"

func TestWindows(t *testing.T) {
	officeHours := windows("Europe/Berlin", window("0 9 * * MON-FRI", "8h"))
	tests := []struct {
		name     string
		schedule *v1alpha1.Schedule
		moments  []moment
	}{
		{"a window includes its start and excludes its end", officeHours, []moment{
			{"2026-11-20T08:59:59.999999999+01:00", answer{"closed", "2026-11-20T09:00:00+01:00", "2026-11-20T09:00:00+01:00", outside + " until Fri 2026-11-20 09:00 CET"}},
			{"2026-11-20T09:00:00+01:00", answer{state: "open", until: "2026-11-20T17:00:00+01:00"}},
			{"2026-11-20T16:59:59.999999999+01:00", answer{state: "open", until: "2026-11-20T17:00:00+01:00"}},
			{"2026-11-20T17:00:00+01:00", answer{"closed", "2026-11-23T09:00:00+01:00", "2026-11-23T09:00:00+01:00", outside + " until Mon 2026-11-23 09:00 CET"}},
		}},
		{"windows that touch are one", windows("UTC", window("0 8 * * *", "4h"), window("0 12 * * *", "90m"), window("30 13 * * *", "1h")), []moment{
			{"2026-11-20T09:00:00Z", answer{state: "open", until: "2026-11-20T14:30:00Z"}},
		}},
		{"windows that overlap are one", windows("UTC", window("0 8 * * *", "4h"), window("0 11 * * *", "4h")), []moment{
			{"2026-11-20T09:00:00Z", answer{state: "open", until: "2026-11-20T15:00:00Z"}},
		}},
		{"a window within another does not end it", windows("UTC", window("0 8 * * *", "10h"), window("0 9 * * *", "1h")), []moment{
			{"2026-11-20T09:30:00Z", answer{state: "open", until: "2026-11-20T18:00:00Z"}},
		}},
		{"a window that is longer than its period never ends", windows("UTC", window("0 8 * * *", "25h")), []moment{
			{"2026-11-20T07:00:00Z", answer{state: "open"}},
		}},
		{"a window that is as long as its period never ends", windows("UTC", window("* * * * *", "1m")), []moment{
			{"2026-11-20T07:00:30Z", answer{state: "open"}},
		}},
		{"two windows that take turns never end", windows("UTC", window("0 8 * * *", "12h"), window("0 20 * * *", "12h")), []moment{
			{"2026-11-20T07:00:00Z", answer{state: "open"}},
		}},
		{"a window that lasts for weeks began weeks ago", windows("UTC", window("0 0 1 * *", "480h")), []moment{
			{"2026-11-20T23:59:00Z", answer{state: "open", until: "2026-11-21T00:00:00Z"}},
			{"2026-11-21T00:00:00Z", answer{"closed", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", outside + " until Tue 2026-12-01 00:00 UTC"}},
		}},
		{"the 31st comes in seven months", windows("UTC", window("0 0 31 * *", "24h")), []moment{
			{"2027-01-31T12:00:00Z", answer{state: "open", until: "2027-02-01T00:00:00Z"}},
			{"2027-02-01T00:00:00Z", answer{"closed", "2027-03-31T00:00:00Z", "2027-03-31T00:00:00Z", outside + " until Wed 2027-03-31 00:00 UTC"}},
		}},
		{"29 February comes in leap years", windows("UTC", window("0 0 29 2 *", "24h")), []moment{
			{"2026-11-20T12:00:00Z", answer{"closed", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z", outside + " until Tue 2028-02-29 00:00 UTC"}},
			{"2028-02-29T12:00:00Z", answer{state: "open", until: "2028-03-01T00:00:00Z"}},
		}},
		{"29 February is found over a century without a leap day", windows("UTC", window("0 0 29 2 *", "24h")), []moment{
			{"2096-03-01T00:00:00Z", answer{"closed", "2104-02-29T00:00:00Z", "2104-02-29T00:00:00Z", outside + " until Fri 2104-02-29 00:00 UTC"}},
		}},
		{"30 February never comes", windows("UTC", window("0 0 30 2 *", "24h")), []moment{
			{"2026-11-20T12:00:00Z", answer{state: "closed", reason: outside + ", which never open"}},
		}},
		{"a window goes on over the end of a year", windows("Asia/Kathmandu", window("30 22 31 12 *", "2h")), []moment{
			{"2026-12-31T22:29:00+05:45", answer{"closed", "2026-12-31T22:30:00+05:45", "2026-12-31T22:30:00+05:45", outside + " until Thu 2026-12-31 22:30 +0545"}},
			{"2027-01-01T00:29:59+05:45", answer{state: "open", until: "2027-01-01T00:30:00+05:45"}},
			{"2027-01-01T00:30:00+05:45", answer{"closed", "2027-12-31T22:30:00+05:45", "2027-12-31T22:30:00+05:45", outside + " until Fri 2027-12-31 22:30 +0545"}},
		}},
		{"a window may end between two minutes", windows("UTC", window("0 9 * * *", "90s500ms")), []moment{
			{"2026-11-20T09:01:30.4Z", answer{state: "open", until: "2026-11-20T09:01:30.5Z"}},
		}},
		{"day of month and day of week name either when both are given", windows("UTC", window("0 0 13 * FRI", "24h")), []moment{
			{"2026-11-20T12:00:00Z", answer{state: "open", until: "2026-11-21T00:00:00Z"}},
			{"2026-12-12T12:00:00Z", answer{"closed", "2026-12-13T00:00:00Z", "2026-12-13T00:00:00Z", outside + " until Sun 2026-12-13 00:00 UTC"}},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, parse(t, test.schedule), test.moments) })
	}
}

func TestChangesOfTheClocks(t *testing.T) {
	tests := []struct {
		name     string
		schedule *v1alpha1.Schedule
		moments  []moment
	}{
		{"a start that Berlin skips begins at the moment of the change", windows("Europe/Berlin", window("30 2 * * *", "1h")), []moment{
			{"2027-03-28T01:59:59+01:00", answer{"closed", "2027-03-28T03:00:00+02:00", "2027-03-28T03:00:00+02:00", outside + " until Sun 2027-03-28 03:00 CEST"}},
			{"2027-03-28T03:00:00+02:00", answer{state: "open", until: "2027-03-28T04:00:00+02:00"}},
			{"2027-03-28T04:00:00+02:00", answer{"closed", "2027-03-29T02:30:00+02:00", "2027-03-29T02:30:00+02:00", outside + " until Mon 2027-03-29 02:30 CEST"}},
		}},
		{"a start that Berlin shows twice begins once, at the first", windows("Europe/Berlin", window("30 2 * * *", "30m")), []moment{
			{"2026-10-25T02:29:59+02:00", answer{"closed", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+02:00", outside + " until Sun 2026-10-25 02:30 CEST"}},
			{"2026-10-25T02:45:00+02:00", answer{state: "open", until: "2026-10-25T02:00:00+01:00"}},
			{"2026-10-25T02:30:00+01:00", answer{"closed", "2026-10-26T02:30:00+01:00", "2026-10-26T02:30:00+01:00", outside + " until Mon 2026-10-26 02:30 CET"}},
		}},
		{"the start at the end of the repeated hour comes after both", windows("Europe/Berlin", window("0 3 * * *", "30m")), []moment{
			{"2026-10-25T02:59:59+02:00", answer{"closed", "2026-10-25T03:00:00+01:00", "2026-10-25T03:00:00+01:00", outside + " until Sun 2026-10-25 03:00 CET"}},
		}},
		{"durations are time that passes, so a night's window ends an hour later on the clock in spring", windows("Europe/Berlin", window("0 22 * * *", "8h")), []moment{
			{"2027-03-28T00:00:00+01:00", answer{state: "open", until: "2027-03-28T07:00:00+02:00"}},
			{"2026-10-25T00:00:00+02:00", answer{state: "open", until: "2026-10-25T05:00:00+01:00"}},
		}},
		{"a day of 23 hours is covered by a window of 24", windows("Europe/Berlin", window("0 0 * * SUN", "24h"), window("0 0 * * MON", "24h")), []moment{
			{"2027-03-28T12:00:00+02:00", answer{state: "open", until: "2027-03-30T00:00:00+02:00"}},
		}},
		{"a day of 25 hours is not", windows("Europe/Berlin", window("0 0 * * SUN", "24h"), window("0 0 * * MON", "24h")), []moment{
			{"2026-10-25T12:00:00+01:00", answer{state: "open", until: "2026-10-25T23:00:00+01:00"}},
			{"2026-10-25T23:00:00+01:00", answer{"closed", "2026-10-26T00:00:00+01:00", "2026-10-26T00:00:00+01:00", outside + " until Mon 2026-10-26 00:00 CET"}},
		}},
		{"a window of every minute is closed while the clock shows an hour again", windows("Europe/Berlin", window("* * * * *", "1m")), []moment{
			{"2026-11-20T12:00:00+01:00", answer{state: "open", until: "2027-10-31T02:00:00+01:00"}},
			{"2027-10-31T02:00:00+01:00", answer{"closed", "2027-10-31T03:00:00+01:00", "2027-10-31T03:00:00+01:00", outside + " until Sun 2027-10-31 03:00 CET"}},
		}},
		{"several starts that are skipped begin together", windows("Europe/Berlin", window("0,15,30,45 2 * * *", "10m")), []moment{
			{"2027-03-28T03:00:00+02:00", answer{state: "open", until: "2027-03-28T03:10:00+02:00"}},
			{"2027-03-28T03:10:00+02:00", answer{"closed", "2027-03-29T02:00:00+02:00", "2027-03-29T02:00:00+02:00", outside + " until Mon 2027-03-29 02:00 CEST"}},
		}},
		{"the last day of a leap year, far ahead", windows("Europe/Berlin", window("0 9 * * *", "1h")), []moment{
			{"2040-12-31T08:00:00+01:00", answer{"closed", "2040-12-31T09:00:00+01:00", "2040-12-31T09:00:00+01:00", outside + " until Mon 2040-12-31 09:00 CET"}},
			{"2040-12-31T09:30:00+01:00", answer{state: "open", until: "2040-12-31T10:00:00+01:00"}},
			{"2041-01-01T00:00:00+01:00", answer{"closed", "2041-01-01T09:00:00+01:00", "2041-01-01T09:00:00+01:00", outside + " until Tue 2041-01-01 09:00 CET"}},
		}},
		{"New York skips an hour", windows("America/New_York", window("15 2 * * SUN", "1h")), []moment{
			{"2027-03-14T01:00:00-05:00", answer{"closed", "2027-03-14T03:00:00-04:00", "2027-03-14T03:00:00-04:00", outside + " until Sun 2027-03-14 03:00 EDT"}},
		}},
		{"New York repeats an hour", windows("America/New_York", window("15 1 * * SUN", "2h")), []moment{
			{"2026-11-01T01:00:00-04:00", answer{"closed", "2026-11-01T01:15:00-04:00", "2026-11-01T01:15:00-04:00", outside + " until Sun 2026-11-01 01:15 EDT"}},
			{"2026-11-01T01:15:00-05:00", answer{state: "open", until: "2026-11-01T02:15:00-05:00"}},
		}},
		{"Lord Howe skips half an hour", windows("Australia/Lord_Howe", window("15 2 * * *", "10m")), []moment{
			{"2026-10-04T01:59:00+10:30", answer{"closed", "2026-10-04T02:30:00+11:00", "2026-10-04T02:30:00+11:00", outside + " until Sun 2026-10-04 02:30 +11"}},
		}},
		{"Lord Howe repeats half an hour", windows("Australia/Lord_Howe", window("45 1 * * *", "10m")), []moment{
			{"2027-04-04T01:44:00+11:00", answer{"closed", "2027-04-04T01:45:00+11:00", "2027-04-04T01:45:00+11:00", outside + " until Sun 2027-04-04 01:45 +11"}},
			{"2027-04-04T01:45:00+10:30", answer{"closed", "2027-04-05T01:45:00+10:30", "2027-04-05T01:45:00+10:30", outside + " until Mon 2027-04-05 01:45 +1030"}},
		}},
		{"Apia skipped a day: its start began with the next", windows("Pacific/Apia", window("0 12 30 12 *", "2h")), []moment{
			{"2011-12-29T23:59:59-10:00", answer{"closed", "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00", outside + " until Sat 2011-12-31 00:00 +14"}},
			{"2011-12-31T01:00:00+14:00", answer{state: "open", until: "2011-12-31T02:00:00+14:00"}},
		}},
		{"Apia's daily starts of the skipped day and the next are two", windows("Pacific/Apia", window("0 9 * * *", "1h")), []moment{
			{"2011-12-31T00:00:00+14:00", answer{state: "open", until: "2011-12-31T01:00:00+14:00"}},
			{"2011-12-31T01:00:00+14:00", answer{"closed", "2011-12-31T09:00:00+14:00", "2011-12-31T09:00:00+14:00", outside + " until Sat 2011-12-31 09:00 +14"}},
		}},
		{"Kwajalein skipped a day to the other side of the date line", windows("Pacific/Kwajalein", window("0 9 * * *", "1h")), []moment{
			{"1993-08-20T23:30:00-12:00", answer{"closed", "1993-08-22T00:00:00+12:00", "1993-08-22T00:00:00+12:00", outside + " until Sun 1993-08-22 00:00 +12"}},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, parse(t, test.schedule), test.moments) })
	}
}

func TestFreezesOfTheSchedule(t *testing.T) {
	endOfYear := freezeWindow("0 0 20 12 *", "288h", "end of year")
	s := windows("Europe/Berlin", window("0 9 * * MON-FRI", "8h"))
	s.Freezes = []v1alpha1.FreezeWindow{endOfYear}
	tests := []struct {
		name     string
		schedule *v1alpha1.Schedule
		moments  []moment
	}{
		{"a freeze closes a window, which opens after it", s, []moment{
			{"2026-12-18T12:00:00+01:00", answer{state: "open", until: "2026-12-18T17:00:00+01:00"}},
			{"2026-12-21T12:00:00+01:00", answer{"closed", "2027-01-01T09:00:00+01:00", "2027-01-01T09:00:00+01:00", `freeze "end of year" until Fri 2027-01-01 00:00 CET, open from Fri 2027-01-01 09:00 CET`}},
		}},
		{"what is closed by the windows opens after the freeze", s, []moment{
			{"2026-12-18T17:00:00+01:00", answer{"closed", "2027-01-01T09:00:00+01:00", "2027-01-01T09:00:00+01:00", outside + " until Mon 2026-12-21 09:00 CET, open from Fri 2027-01-01 09:00 CET"}},
		}},
		{"a freeze without windows", freezes(endOfYear), []moment{
			{"2026-11-20T12:00:00Z", answer{state: "open", until: "2026-12-20T00:00:00Z"}},
			{"2026-12-31T12:00:00Z", answer{"closed", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z", `freeze "end of year" until Fri 2027-01-01 00:00 UTC`}},
		}},
		{"a freeze without a reason is named by its field", freezes(endOfYear, freezeWindow("0 22 * * *", "1h30m", "")), []moment{
			{"2026-11-20T23:00:00Z", answer{"closed", "2026-11-20T23:30:00Z", "2026-11-20T23:30:00Z", "the freeze spec.schedule.freezes[1] until Fri 2026-11-20 23:30 UTC"}},
		}},
		{"of two freezes the one that lasts longer is named", freezes(freezeWindow("0 8 * * *", "4h", "short"), freezeWindow("0 9 * * *", "8h", "long")), []moment{
			{"2026-11-20T08:30:00Z", answer{"closed", "2026-11-20T17:00:00Z", "2026-11-20T17:00:00Z", `freeze "short" until Fri 2026-11-20 12:00 UTC, open from Fri 2026-11-20 17:00 UTC`}},
			{"2026-11-20T09:30:00Z", answer{"closed", "2026-11-20T17:00:00Z", "2026-11-20T17:00:00Z", `freeze "long" until Fri 2026-11-20 17:00 UTC`}},
		}},
		{"a freeze that never ends", freezes(freezeWindow("@daily", "24h", "for good")), []moment{
			{"2026-11-20T08:30:00Z", answer{state: "closed", reason: `freeze "for good" without an end`}},
		}},
		{"a freeze that covers every window", &v1alpha1.Schedule{
			Windows: []v1alpha1.Window{window("0 10 * * *", "1h")}, Freezes: []v1alpha1.FreezeWindow{freezeWindow("0 9 * * *", "8h", "day")},
		}, []moment{
			{"2026-11-20T10:30:00Z", answer{state: "closed", reason: `freeze "day" until Fri 2026-11-20 17:00 UTC, and closed for years after that`}},
		}},
		{"seconds are shown where there are some", freezes(freezeWindow("0 9 * * *", "90s", "short")), []moment{
			{"2026-11-20T09:00:30Z", answer{"closed", "2026-11-20T09:01:30Z", "2026-11-20T09:01:30Z", `freeze "short" until Fri 2026-11-20 09:01:30 UTC`}},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, parse(t, test.schedule), test.moments) })
	}
}

func TestFreezesByOperators(t *testing.T) {
	officeHours := windows("Europe/Berlin", window("0 9 * * MON-FRI", "8h"))
	tests := []struct {
		name     string
		schedule *v1alpha1.Schedule
		freezes  []v1alpha1.Freeze
		moments  []moment
	}{
		{"from and until", nil, []v1alpha1.Freeze{singleFreeze(t, "peak", "2026-11-26T00:00:00Z", "2026-12-01T00:00:00Z")}, []moment{
			{"2026-11-25T23:59:59.999999999Z", answer{state: "open", until: "2026-11-26T00:00:00Z"}},
			{"2026-11-26T00:00:00Z", answer{"frozen", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", `frozen by the Freeze "peak" (peak season) until Tue 2026-12-01 00:00 UTC`}},
			{"2026-12-01T00:00:00Z", answer{state: "open"}},
		}},
		{"only until", nil, []v1alpha1.Freeze{singleFreeze(t, "peak", "", "2026-12-01T00:00:00Z")}, []moment{
			{"2001-11-25T00:00:00Z", answer{"frozen", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", `frozen by the Freeze "peak" (peak season) until Tue 2026-12-01 00:00 UTC`}},
		}},
		{"only from", nil, []v1alpha1.Freeze{singleFreeze(t, "peak", "2026-11-26T00:00:00Z", "")}, []moment{
			{"2026-11-25T12:00:00Z", answer{state: "open", until: "2026-11-26T00:00:00Z"}},
			{"2026-11-26T00:00:00Z", answer{state: "frozen", reason: `frozen by the Freeze "peak" (peak season) until it is deleted`}},
		}},
		{"neither", nil, []v1alpha1.Freeze{singleFreeze(t, "peak", "", "")}, []moment{
			{"2026-11-25T12:00:00Z", answer{state: "frozen", reason: `frozen by the Freeze "peak" (peak season) until it is deleted`}},
		}},
		{"one with an end does not hide one without", nil, []v1alpha1.Freeze{
			singleFreeze(t, "ends", "", "2026-12-01T00:00:00Z"), singleFreeze(t, "stays", "", ""),
		}, []moment{
			{"2026-11-25T12:00:00Z", answer{state: "frozen", reason: `frozen by the Freeze "stays" (peak season) until it is deleted`}},
		}},
		{"recurring, in a zone of its own, told in the schedule's", officeHours, []v1alpha1.Freeze{recurringFreeze("month-end", "America/New_York", "0 0 1 * *", "48h")}, []moment{
			{"2026-12-01T12:00:00+01:00", answer{"frozen", "2026-12-03T06:00:00+01:00", "2026-12-03T09:00:00+01:00", `frozen by the Freeze "month-end" (books are closed) until Thu 2026-12-03 06:00 CET, open from Thu 2026-12-03 09:00 CET`}},
		}},
		{"where a Freeze begins in a closed time, that is a change of state", officeHours, []v1alpha1.Freeze{singleFreeze(t, "peak", "2026-11-21T00:00:00Z", "2026-11-24T00:00:00Z")}, []moment{
			{"2026-11-20T17:00:00+01:00", answer{"closed", "2026-11-21T01:00:00+01:00", "2026-11-24T09:00:00+01:00", outside + " until Mon 2026-11-23 09:00 CET, open from Tue 2026-11-24 09:00 CET"}},
		}},
		{"Freezes that touch are one", nil, []v1alpha1.Freeze{
			singleFreeze(t, "b", "2026-11-22T00:00:00Z", "2026-11-24T00:00:00Z"), singleFreeze(t, "a", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"),
		}, []moment{
			{"2026-11-21T00:00:00Z", answer{"frozen", "2026-11-24T00:00:00Z", "2026-11-24T00:00:00Z", `frozen by the Freeze "a" (peak season) until Sun 2026-11-22 00:00 UTC, open from Tue 2026-11-24 00:00 UTC`}},
		}},
		{"of equal Freezes the first by name is named, in whatever order they are listed", nil, []v1alpha1.Freeze{
			singleFreeze(t, "b", "", ""), singleFreeze(t, "a", "", ""), singleFreeze(t, "c", "", "2027-11-22T00:00:00Z"),
		}, []moment{
			{"2026-11-21T00:00:00Z", answer{state: "frozen", reason: `frozen by the Freeze "a" (peak season) until it is deleted`}},
		}},
		{"an operator's Freeze is named before one of the schedule", freezes(freezeWindow("@daily", "24h", "own")), []v1alpha1.Freeze{singleFreeze(t, "peak", "", "2026-12-01T00:00:00Z")}, []moment{
			{"2026-11-21T00:00:00Z", answer{"frozen", "2026-12-01T00:00:00Z", "", `frozen by the Freeze "peak" (peak season) until Tue 2026-12-01 00:00 UTC, and closed for years after that`}},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { check(t, parse(t, test.schedule, test.freezes...), test.moments) })
	}
}

func TestAFreezeThatCannotBeReadIsInForce(t *testing.T) {
	both := recurringFreeze("audit", "UTC", "@daily", "1h")
	both.Spec.Until = &metav1.Time{Time: instant(t, "2026-12-01T00:00:00Z")}
	tests := []struct {
		name   string
		freeze v1alpha1.Freeze
		says   string
	}{
		{"an unknown zone", recurringFreeze("audit", "Mars/Olympus", "@daily", "1h"), `spec.recurring.timeZone: "Mars/Olympus" is not in the time zone database; write a name such as "Europe/Berlin", or "UTC"`},
		{"the zone of the machine", recurringFreeze("audit", "Local", "@daily", "1h"), `spec.recurring.timeZone: "Local" is not in the time zone database`},
		{"no cron expression", recurringFreeze("audit", "UTC", "soon", "1h"), `spec.recurring.start: "soon" is not a valid cron expression`},
		{"no duration", recurringFreeze("audit", "UTC", "@daily", ""), `spec.recurring.duration: "" is not a duration`},
		{"no time at all", recurringFreeze("audit", "UTC", "@daily", "0s"), `spec.recurring.duration: "0s" is zero; write how long it lasts, such as 8h`},
		{"recurring with until", both, "spec: recurring excludes from and until; keep one of them"},
		{"until before from", singleFreeze(t, "audit", "2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"), "spec.until: must be after spec.from; correct one of them"},
		{"until at from", singleFreeze(t, "audit", "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"), "spec.until: must be after spec.from; correct one of them"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := parse(t, nil, test.freeze).At(instant(t, "2026-11-21T00:00:00Z"))
			if got.Open || !got.Frozen || !got.Until.IsZero() || !got.Opens.IsZero() {
				t.Errorf("not in force without an end: %+v", got)
			}
			begin := `frozen by the Freeze "audit" (` + test.freeze.Spec.Reason + "), which is in force because it can't be read: " + test.says
			if !strings.HasPrefix(got.Reason, begin) {
				t.Errorf("reason %q\n does not begin with %q", got.Reason, begin)
			}
		})
	}
}

func TestNext(t *testing.T) {
	tests := []struct{ name, zone, expr, after, want string }{
		{"is after the given time, not at it", "UTC", "0 9 * * *", "2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"},
		{"may be a moment later", "UTC", "0 9 * * *", "2026-11-20T08:59:59.999999999Z", "2026-11-20T09:00:00Z"},
		{"is in the schedule's zone", "Europe/Berlin", "0 9 * * MON", "2026-11-20T09:00:00Z", "2026-11-23T09:00:00+01:00"},
		{"a skipped time comes at the change", "Europe/Berlin", "30 2 * * *", "2027-03-28T00:00:00Z", "2027-03-28T03:00:00+02:00"},
		{"and not again", "Europe/Berlin", "30 2 * * *", "2027-03-28T01:00:00Z", "2027-03-29T02:30:00+02:00"},
		{"a repeated time comes once", "Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T02:30:00+01:00"},
		{"a descriptor", "Asia/Kathmandu", "@yearly", "2026-12-31T18:14:59Z", "2027-01-01T00:00:00+05:45"},
		{"a leap day", "UTC", "0 0 29 2 *", "2026-11-20T09:00:00Z", "2028-02-29T00:00:00Z"},
		{"never", "UTC", "0 0 30 2 *", "2026-11-20T09:00:00Z", ""},
		{"without a zone it is UTC", "", "@hourly", "2026-11-20T09:00:00+05:45", "2026-11-20T04:00:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok, err := parse(t, windows(test.zone)).Next(v1alpha1.CronExpression(test.expr), instant(t, test.after))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if ok {
				text = got.Format(time.RFC3339Nano)
			}
			if text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
	if _, _, err := parse(t, nil).Next("61 * * * *", time.Time{}); err == nil || !strings.Contains(err.Error(), `"61 * * * *"`) {
		t.Errorf("the error does not quote the expression: %v", err)
	}
}
