// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var histories = flag.Int("histories", 54, "how many random schedules are compared with the oracle")

// oracle knows the state of each minute of some days. It is made by watching a
// clock on the wall minute by minute, with none of the code under test.
type oracle struct {
	begin        time.Time
	open, frozen []bool
}

// cover marks the minutes of the intervals that begin when the clock of a zone
// shows, or has just skipped, a time that the expression names.
func (o *oracle) cover(t *testing.T, marks []bool, zone, expr, duration string) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	times, err := cron.ParseStandard(expr)
	if err != nil {
		t.Fatal(err)
	}
	length, err := time.ParseDuration(duration)
	if err != nil {
		t.Fatal(err)
	}
	const long = 4 * 24 * time.Hour // longer than any duration here, and than any change of the clocks
	begin := o.begin.Add(-2 * long)
	shown := face(begin, location)
	following := times.Next(shown)
	for at := begin; at.Before(o.begin.Add(time.Duration(len(marks)) * time.Minute)); at = at.Add(time.Minute) {
		if now := face(at, location); now.After(shown) {
			shown = now
		}
		starts := false
		for !following.IsZero() && !following.After(shown) {
			starts, following = true, times.Next(following)
		}
		if starts {
			first := int(at.Sub(o.begin) / time.Minute)
			for i := max(first, 0); i < min(first+int(length/time.Minute), len(marks)); i++ {
				marks[i] = true
			}
		}
	}
}

// face is what a clock shows, as if it were UTC.
func face(at time.Time, location *time.Location) time.Time {
	l := at.In(location)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// until is the first minute after the given one whose state differs.
func (o *oracle) until(i int, differs func(i, j int) bool) (int, bool) {
	for j := i + 1; j < len(o.open); j++ {
		if differs(i, j) {
			return j, true
		}
	}
	return 0, false
}

// changes are places and days at which clocks are changed, some with little care.
var changes = []struct{ zone, day string }{
	{"Europe/Berlin", "2027-03-28T00:00:00Z"},
	{"Europe/Berlin", "2026-10-25T00:00:00Z"},
	{"America/New_York", "2027-03-14T00:00:00Z"},
	{"America/New_York", "2026-11-01T00:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T00:00:00Z"},
	{"Australia/Lord_Howe", "2027-04-03T00:00:00Z"},
	{"Asia/Kathmandu", "2026-12-31T00:00:00Z"},
	{"Pacific/Apia", "2011-12-30T00:00:00Z"},
	{"America/Sao_Paulo", "2018-11-04T00:00:00Z"}, // midnight is skipped
	{"Africa/Casablanca", "2027-02-07T00:00:00Z"}, // negative summer time
	{"America/Scoresbysund", "2024-03-31T00:00:00Z"},
	{"Antarctica/Troll", "2027-03-28T00:00:00Z"}, // two hours
	{"UTC", "2028-02-29T00:00:00Z"},
	// Beyond the tables of changes that systems come with, where rules begin.
	{"Europe/Berlin", "2040-12-31T00:00:00Z"},
	{"America/New_York", "2040-12-31T00:00:00Z"},
	{"Australia/Lord_Howe", "2044-12-31T00:00:00Z"},
	{"Europe/Berlin", "2041-03-31T00:00:00Z"},
	{"America/New_York", "2039-11-06T00:00:00Z"},
}

// dense makes expressions that name times of nearly every day.
func dense(r *rand.Rand) string {
	return fmt.Sprintf("%s %s * * %s",
		[]string{"0", "15,45", "*/10", "*", "59", "30-40"}[r.IntN(6)],
		[]string{"*", "*/2", "0", "1", "2", "1,2", "0-3", "22-23", "9"}[r.IntN(9)],
		[]string{"*", "*", "*", "SUN", "MON-SAT", "*/2"}[r.IntN(6)])
}

func TestEveryMinuteIsAsTheOracleSays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, uint64(*histories)))
	durations := []string{"1m", "7m", "10m", "30m", "1h", "90m", "3h", "24h", "25h", "50h"}
	length := func() string { return durations[r.IntN(len(durations))] }
	for n := range *histories {
		place, other := changes[n%len(changes)], changes[r.IntN(len(changes))]
		o := &oracle{begin: instant(t, place.day).Add(-36 * time.Hour), open: make([]bool, 5*minutesPerDay), frozen: make([]bool, 5*minutesPerDay)}
		s := &v1alpha1.Schedule{TimeZone: place.zone}
		within, without := make([]bool, len(o.open)), make([]bool, len(o.open))
		for range r.IntN(4) {
			w := window(dense(r), length())
			s.Windows = append(s.Windows, w)
			o.cover(t, within, place.zone, string(w.Start), string(w.Duration))
		}
		for range r.IntN(3) {
			f := freezeWindow(dense(r), length(), "freeze")
			s.Freezes = append(s.Freezes, f)
			o.cover(t, without, place.zone, string(f.Start), string(f.Duration))
		}
		var list []v1alpha1.Freeze
		for range r.IntN(2) {
			f := recurringFreeze("ops", other.zone, dense(r), length())
			list = append(list, f)
			o.cover(t, o.frozen, other.zone, string(f.Spec.Recurring.Start), string(f.Spec.Recurring.Duration))
		}
		for i := range o.open {
			o.open[i] = (len(s.Windows) == 0 || within[i]) && !without[i] && !o.frozen[i]
		}
		o.compare(t, r, parse(t, s, list...), fmt.Sprintf("%+v %+v", s, list))
		if t.Failed() {
			return
		}
	}
}

// compare asks about each change, the moments around it, and some others.
func (o *oracle) compare(t *testing.T, r *rand.Rand, c Calendar, what string) {
	t.Helper()
	for i := range o.open {
		if edge := i > 0 && (o.open[i] != o.open[i-1] || o.frozen[i] != o.frozen[i-1]); !edge && r.IntN(500) != 0 {
			continue
		}
		at := o.begin.Add(time.Duration(i) * time.Minute)
		got := checkState(t, c, at)
		if got.Open != o.open[i] || got.Frozen != o.frozen[i] {
			t.Errorf("%s\nat %s: open %v, frozen %v; want %v, %v", what, at, got.Open, got.Frozen, o.open[i], o.frozen[i])
		}
		o.compareTime(t, what+" until", i, got.Until, func(i, j int) bool { return o.open[i] != o.open[j] || o.frozen[i] != o.frozen[j] })
		if !got.Open {
			o.compareTime(t, what+" opens", i, got.Opens, func(_, j int) bool { return o.open[j] })
		}
		if i > 0 && o.open[i] != o.open[i-1] && c.At(at.Add(-1)).Open == got.Open {
			t.Errorf("%s\nat %s: a nanosecond before it was the same", what, at)
		}
	}
}

func (o *oracle) compareTime(t *testing.T, what string, i int, got time.Time, differs func(i, j int) bool) {
	t.Helper()
	j, found := o.until(i, differs)
	end := o.begin.Add(time.Duration(len(o.open)) * time.Minute)
	want := o.begin.Add(time.Duration(j) * time.Minute)
	if found && !got.Equal(want) || !found && !got.IsZero() && got.Before(end) {
		t.Errorf("%s\nfrom %s: got %s, want %s (%v)", what, o.begin.Add(time.Duration(i)*time.Minute), got, want, found)
	}
}

// Years ahead, where no oracle watches each minute: Until is when the state
// changes, and nothing changes before.
func TestUntilIsWhenTheStateChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, uint64(*histories)))
	durations := []v1alpha1.Duration{"1m", "1h", "8h", "24h", "26h", "168h", "750h", "90s", "1500ms", "9000h"}
	for n := range 3 * *histories {
		place := changes[n%len(changes)]
		s := &v1alpha1.Schedule{TimeZone: place.zone}
		for range r.IntN(4) {
			s.Windows = append(s.Windows, v1alpha1.Window{Start: randomExpression(r), Duration: durations[r.IntN(len(durations))]})
		}
		for range r.IntN(3) {
			s.Freezes = append(s.Freezes, v1alpha1.FreezeWindow{Start: randomExpression(r), Duration: durations[r.IntN(len(durations))]})
		}
		list := []v1alpha1.Freeze{
			singleFreeze(t, "once", "2027-06-01T00:00:00Z", "2027-06-15T12:34:56Z"),
			recurringFreeze("monthly", changes[r.IntN(len(changes))].zone, "30 2 28-31 * *", "3h"),
		}
		c := parse(t, s, list...)
		at := instant(t, "2026-06-01T00:00:00Z").Add(time.Duration(r.Int64N(int64(400 * 24 * time.Hour))))
		for range 4 {
			got := checkState(t, c, at)
			if got.Until.IsZero() {
				break
			}
			checkChange(t, r, c, at, got)
			at = got.Until
		}
		if t.Failed() {
			t.Fatalf("%+v", s)
		}
	}
}

func checkChange(t *testing.T, r *rand.Rand, c Calendar, at time.Time, got State) {
	t.Helper()
	same := func(s State) bool { return s.Open == got.Open && s.Frozen == got.Frozen }
	if before := c.At(got.Until.Add(-1)); !same(before) {
		t.Errorf("a nanosecond before %s it is already %+v", got.Until, before)
	}
	if after := c.At(got.Until); same(after) && !c.cutsShort(at) {
		t.Errorf("from %s until %s: %+v, and then still %+v", at, got.Until, got, after)
	}
	for range 5 {
		between := at.Add(time.Duration(r.Int64N(int64(got.Until.Sub(at)))))
		if s := c.At(between); !same(s) {
			t.Errorf("from %s until %s: %+v, but at %s %+v", at, got.Until, got, between, s)
		}
	}
}

// cutsShort tells a schedule whose search is cut short.
func (c Calendar) cutsShort(at time.Time) bool {
	s := c.search()
	c.window(s, at)
	c.freezes.at(s, at)
	c.frozen.at(s, at)
	c.opens(s, at, nil)
	return s.cut
}

func TestASearchIsCutShortRatherThanEndless(t *testing.T) {
	// Two freezes that take turns every minute, for ever: 2.6 million intervals in five years.
	c := parse(t, freezes(freezeWindow("*/2 * * * *", "1m", "even"), freezeWindow("1-59/2 * * * *", "1m", "odd")))
	at := instant(t, "2026-11-21T00:00:00Z")
	got := c.At(at)
	if got.Open || got.Until.Sub(at) < 5*24*time.Hour || !got.Opens.IsZero() {
		t.Errorf("got %+v, want closed for days at least, with no time at which it opens", got)
	}
	if want := `freeze "even" until Sat 2026-11-21 00:01 UTC`; got.Reason != want {
		t.Errorf("reason %q, want %q", got.Reason, want)
	}
	if c.At(got.Until).Open {
		t.Error("it opens after all")
	}
}
