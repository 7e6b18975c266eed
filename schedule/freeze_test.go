// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

func TestTheStatusOfAFreezeSaysWhetherItIsInForce(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	nightly := &v1alpha1.RecurringFreeze{Start: "0 18 * * *", Duration: "8h", TimeZone: "America/New_York"}
	for _, test := range []struct {
		name            string
		spec            v1alpha1.FreezeSpec
		now             time.Time
		inForce         metav1.ConditionStatus
		reason, message string
		next            time.Time
	}{
		{"without times", v1alpha1.FreezeSpec{}, now, "True", "Active", "In force until you delete the Freeze: releases neither begin nor grow.", time.Time{}},
		{"with an end", v1alpha1.FreezeSpec{Until: at(time.Hour)}, now, "True", "Active", "In force until Fri 2026-11-27 13:00 UTC: releases neither begin nor grow.", now.Add(time.Hour)},
		{"at its start", v1alpha1.FreezeSpec{From: at(0)}, now, "True", "Active", "In force until you delete the Freeze: releases neither begin nor grow.", time.Time{}},
		{"before its start", v1alpha1.FreezeSpec{From: at(time.Minute), Until: at(time.Hour)}, now, "False", "Scheduled", "Not in force until Fri 2026-11-27 12:01 UTC.", now.Add(time.Minute)},
		{"at its end", v1alpha1.FreezeSpec{Until: at(0)}, now, "False", "Ended", "Not in force: the Freeze has ended, or no start is known. You can delete it.", time.Time{}},
		{"between two times", v1alpha1.FreezeSpec{Recurring: nightly}, now, "False", "Scheduled", "Not in force until Fri 2026-11-27 18:00 EST.", now.Add(11 * time.Hour)},
		{"in one of several times", v1alpha1.FreezeSpec{Recurring: nightly}, now.Add(12 * time.Hour), "True", "Active", "In force until Sat 2026-11-28 02:00 EST: releases neither begin nor grow.", now.Add(19 * time.Hour)},
		{
			"a start that never comes",
			v1alpha1.FreezeSpec{Recurring: &v1alpha1.RecurringFreeze{Start: "0 0 30 2 *", Duration: "1h"}},
			now,
			"False", "Ended", "Not in force: the Freeze has ended, or no start is known. You can delete it.",
			time.Time{},
		},
		{
			"a zone that does not exist",
			v1alpha1.FreezeSpec{Recurring: &v1alpha1.RecurringFreeze{Start: "@daily", Duration: "1h", TimeZone: "Mars/Base"}},
			now,
			"True", "InvalidSpec", `In force, because the Freeze can't be read; correct spec.recurring.timeZone: "Mars/Base" is not in the time zone database; write a name such as "Europe/Berlin", or "UTC"`,
			time.Time{},
		},
		{
			"a selector that can't be read",
			v1alpha1.FreezeSpec{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Is"}}}},
			now,
			"True", "Active", `In force until you delete the Freeze: releases neither begin nor grow in any namespace, because spec.namespaceSelector can't be read: "Is" is not a valid label selector operator.`,
			time.Time{},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: test.spec}
			status := schedule.FreezeStatus(f, test.now)
			c := status.Conditions[0]
			if c.Type != "InForce" || c.Status != test.inForce || c.Reason != test.reason || c.Message != test.message {
				t.Errorf("condition = %s %s (%s) %q,\nwant %s (%s) %q", c.Type, c.Status, c.Reason, c.Message, test.inForce, test.reason, test.message)
			}
			if status.ObservedGeneration != 3 || c.ObservedGeneration != 3 {
				t.Errorf("generations = %d and %d, want 3", status.ObservedGeneration, c.ObservedGeneration)
			}
			var next time.Time
			if status.NextChangeTime != nil {
				next = status.NextChangeTime.Time
			}
			if !next.Equal(test.next) {
				t.Errorf("nextChangeTime = %s, want %s", next, test.next)
			}
		})
	}
}

// TestTheStatusOfAFreezeAgreesWithTheCalendar: what the status says is what releases do.
func TestTheStatusOfAFreezeAgreesWithTheCalendar(t *testing.T) {
	f := v1alpha1.Freeze{Spec: v1alpha1.FreezeSpec{Recurring: &v1alpha1.RecurringFreeze{Start: "30 1 * * SUN", Duration: "5h30m", TimeZone: "Europe/Berlin"}}}
	calendar, err := schedule.Parse(nil, []v1alpha1.Freeze{f})
	if err != nil {
		t.Fatal(err)
	}
	for now := time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC); now.Month() < time.November; now = now.Add(15 * time.Minute) {
		status, state := schedule.FreezeStatus(&f, now), calendar.At(now)
		if got := status.Conditions[0].Status == metav1.ConditionTrue; got != state.Frozen || !status.NextChangeTime.Time.Equal(state.Until) {
			t.Fatalf("at %s: in force %v until %s, and releases are frozen %v until %s", now, got, status.NextChangeTime, state.Frozen, state.Until)
		}
		if strings.HasPrefix(status.Conditions[0].Message, "Not") == state.Frozen {
			t.Fatalf("at %s: %q", now, status.Conditions[0].Message)
		}
	}
}

func TestTheStatusOfAFreezeKeepsTheTimeOfItsLastTransition(t *testing.T) {
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	f := &v1alpha1.Freeze{}
	f.Status = schedule.FreezeStatus(f, began)
	before := f.DeepCopy()
	later := schedule.FreezeStatus(f, began.Add(time.Hour))
	if got := later.Conditions[0].LastTransitionTime; !got.Time.Equal(began) {
		t.Errorf("lastTransitionTime = %s, want %s", got, began)
	}
	until := metav1.NewTime(began)
	f.Spec.Until = &until
	if ended := schedule.FreezeStatus(f, began.Add(time.Hour)); !ended.Conditions[0].LastTransitionTime.Time.Equal(began.Add(time.Hour)) {
		t.Errorf("lastTransitionTime = %s after the end", ended.Conditions[0].LastTransitionTime)
	}
	if before.Status.Conditions[0].Status != f.Status.Conditions[0].Status {
		t.Error("the Freeze was changed")
	}
}
