// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestParseNamesTheFieldAndTheFix(t *testing.T) {
	good := window("@daily", "1h")
	tests := []struct {
		name     string
		schedule v1alpha1.Schedule
		want     string
	}{
		{"an unknown zone", v1alpha1.Schedule{TimeZone: "Europe/Berlinn"}, `spec.schedule.timeZone: "Europe/Berlinn" is not in the time zone database; write a name such as "Europe/Berlin", or "UTC"`},
		{"the zone of the machine", v1alpha1.Schedule{TimeZone: "Local"}, `spec.schedule.timeZone: "Local" is not in the time zone database; write a name such as "Europe/Berlin", or "UTC"`},
		{"a path instead of a zone", v1alpha1.Schedule{TimeZone: "../../etc/passwd"}, `spec.schedule.timeZone: "../../etc/passwd" is not in the time zone database; write a name such as "Europe/Berlin", or "UTC"`},
		{
			"seconds in the second window",
			v1alpha1.Schedule{Windows: []v1alpha1.Window{good, window("0 0 9 * * *", "1h")}},
			`spec.schedule.windows[1].start: "0 0 9 * * *" is not a valid cron expression: it has six fields; seconds are not supported, write minute, hour, day of month, month and day of week`,
		},
		{
			"a window of no time",
			v1alpha1.Schedule{Windows: []v1alpha1.Window{window("@daily", "0h0m")}},
			`spec.schedule.windows[0].duration: "0h0m" is zero; write how long it lasts, such as 8h`,
		},
		{
			"a freeze that is no duration",
			v1alpha1.Schedule{Freezes: []v1alpha1.FreezeWindow{freezeWindow("@daily", "-1h", "")}},
			`spec.schedule.freezes[0].duration: "-1h" is not a duration: write whole numbers with h, m, s or ms, such as 90s or 1h30m`,
		},
		{
			"a freeze that has a zone",
			v1alpha1.Schedule{Freezes: []v1alpha1.FreezeWindow{freezeWindow("TZ=UTC 0 9 * * *", "1h", "")}},
			`spec.schedule.freezes[0].start: "TZ=UTC 0 9 * * *" is not a valid cron expression: it must not name a time zone; use the field timeZone`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(&test.schedule, nil)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAppliesByTheLabelsOfTheNamespace(t *testing.T) {
	shop := map[string]string{"team": "shop"}
	tests := []struct {
		name     string
		selector *metav1.LabelSelector
		labels   map[string]string
		want     bool
	}{
		{"none means all", nil, nil, true},
		{"an empty one means all", &metav1.LabelSelector{}, shop, true},
		{"a label that matches", &metav1.LabelSelector{MatchLabels: shop}, shop, true},
		{"a label that does not", &metav1.LabelSelector{MatchLabels: shop}, map[string]string{"team": "web"}, false},
		{"a namespace without labels", &metav1.LabelSelector{MatchLabels: shop}, nil, false},
		{"one that can't be read means all", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}}}, nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &v1alpha1.Freeze{Spec: v1alpha1.FreezeSpec{NamespaceSelector: test.selector}}
			if got := Applies(f, test.labels); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestParseDoesNotReorderTheCallersFreezes(t *testing.T) {
	list := []v1alpha1.Freeze{singleFreeze(t, "b", "", ""), singleFreeze(t, "a", "", "")}
	parse(t, nil, list...)
	if list[0].Name != "b" {
		t.Error("the list of the cache was changed")
	}
}

// Whatever a user writes: no panic, no endless search, and an answer that agrees
// with itself.
func FuzzParse(f *testing.F) {
	f.Add("Europe/Berlin", "0 9 * * MON-FRI", "8h", "0 0 20 12 *", "288h", "America/New_York", int64(1_790_000_000))
	f.Add("Pacific/Apia", "* * * * *", "1m", "1-59/2 * * * *", "1m", "Australia/Lord_Howe", int64(1_325_203_200))
	f.Add("UTC", "TZ=", "0s", "@every 1s", "99999h99999h", "Local", int64(-1))
	f.Add("", "0 0 30 2 *", "1ms", "*/99999999999 , * * *", "1h", "../x", int64(0))
	f.Fuzz(func(t *testing.T, zone, start, duration, freeze, freezeDuration, freezeZone string, second int64) {
		at := time.Unix(second%(1<<35), 0) // within a thousand years of now, as in a timestamp
		s := windows(zone, window(start, duration))
		s.Freezes = []v1alpha1.FreezeWindow{freezeWindow(freeze, freezeDuration, "fuzz")}
		c, err := Parse(s, []v1alpha1.Freeze{recurringFreeze("fuzz", freezeZone, freeze, duration)})
		checkState(t, c, at)
		if err == nil != (c.zone != nil) {
			t.Errorf("error %v with a zone %v", err, c.zone)
		}
		if next, ok, err := c.Next(v1alpha1.CronExpression(start), at); err == nil && ok && !next.After(at) {
			t.Errorf("next after %s is %s", at, next)
		}
	})
}

// checkState: what At says about a moment agrees with what it says about others.
func checkState(t *testing.T, c Calendar, at time.Time) State {
	t.Helper()
	got := c.At(at)
	if got.Open != (got.Reason == "") || got.Open && (got.Frozen || !got.Opens.IsZero()) {
		t.Errorf("at %s: %+v contradicts itself", at, got)
	}
	if again := c.At(at); again != got {
		t.Errorf("at %s: first %+v, then %+v", at, got, again)
	}
	for _, later := range []time.Time{got.Until, got.Opens} {
		if !later.IsZero() && !later.After(at) {
			t.Errorf("at %s: %+v is not later", at, got)
		}
	}
	if !got.Opens.IsZero() && !c.At(got.Opens).Open {
		t.Errorf("at %s: it is said to open at %s and does not", at, got.Opens)
	}
	return got
}
