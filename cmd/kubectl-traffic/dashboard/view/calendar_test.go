// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests do not depend on the machine

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// rollouts are those of a namespace with one schedule.
func rollouts(namespace string, s *v1alpha1.Schedule, names ...string) (list []v1alpha1.Rollout) {
	for _, name := range names {
		ro := website(v1alpha1.ReasonHolding)
		ro.Namespace, ro.Name, ro.Spec.Schedule = namespace, name, s
		list = append(list, *ro)
	}
	return list
}

func officeHours() *v1alpha1.Schedule {
	return &v1alpha1.Schedule{TimeZone: "Europe/Berlin", Windows: []v1alpha1.Window{{Start: "0 9 * * MON-FRI", Duration: "8h"}}}
}

// weekend is a Freeze of the namespaces of a team.
func weekend(team string) v1alpha1.Freeze {
	from, until := metav1.NewTime(time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC))
	return v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.FreezeSpec{
		Reason: "the sale", From: &from, Until: &until, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
	}}
}

// lanesOf are the lanes in short, and the first spans of each.
func lanesOf(c view.Calendar) (lanes []string) {
	for _, l := range c.Lanes {
		var names, spans []string
		for _, r := range l.Rollouts {
			names = append(names, r.Namespace+"/"+r.Name)
		}
		for _, s := range l.Spans[:min(3, len(l.Spans))] {
			spans = append(spans, fmt.Sprintf("%s until %s", s.State, s.Until.Format("02T15:04")))
		}
		lanes = append(lanes, strings.Join(names, " ")+": "+strings.Join(spans, ", "))
	}
	return lanes
}

// now is a Tuesday, 13:00 in Berlin.
var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestRolloutsThatGoOnAtTheSameTimesShareALane(t *testing.T) {
	list := append(rollouts("shop", officeHours(), "website", "search"), rollouts("shop", nil, "payments")...)
	list = append(list, rollouts("books", officeHours(), "ledger")...)
	list[3].Status.Conditions[0].Reason = v1alpha1.ReasonWaitingForSchedule
	got := view.MakeCalendar(view.CalendarSources{
		Rollouts: list, Freezes: []v1alpha1.Freeze{weekend("books")}, Now: now,
		Labels: map[string]map[string]string{"books": {"team": "books"}, "shop": {"team": "shop"}},
	})
	want := []string{
		"books/ledger: open until 24T16:00, closed until 25T08:00, open until 25T10:00", // what waits comes first
		"shop/website shop/search: open until 24T16:00, closed until 25T08:00, open until 25T16:00",
		"shop/payments: open until 01T12:00",
	}
	if diff := cmp.Diff(want, lanesOf(got)); diff != "" {
		t.Error(diff)
	}
	if s := got.Lanes[0].Spans[3]; s.State != "frozen" || !strings.Contains(s.Reason, "the sale") || got.Lanes[0].TimeZone != "Europe/Berlin" || got.Lanes[0].Freezes[0] != "sale" {
		t.Errorf("frozen lane: %+v", got.Lanes[0])
	}
	for _, l := range got.Lanes {
		for i, s := range l.Spans {
			if i > 0 && !s.From.Equal(l.Spans[i-1].Until) {
				t.Errorf("a gap before %+v", s)
			}
		}
		if last := l.Spans[len(l.Spans)-1]; !last.Until.Equal(now.AddDate(0, 0, 7)) {
			t.Errorf("the last span ends at %s", last.Until)
		}
	}
}

func TestACalendarIsBoundedAndNamesWhatIsWrong(t *testing.T) {
	minutes := &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: "*/2 * * * *", Duration: "1m"}}}
	list := append(rollouts("shop", minutes, "busy"), rollouts("shop", &v1alpha1.Schedule{TimeZone: "Moon/Crater"}, "lost")...)
	for i := range 150 {
		list = append(list, rollouts("shop", &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: v1alpha1.CronExpression(fmt.Sprintf("%d %d * * *", i%60, i/60)), Duration: "1h"}}}, fmt.Sprintf("website-%d", i))...)
	}
	c := view.MakeCalendar(view.CalendarSources{Rollouts: list, Now: now})
	if len(c.Lanes) != 100 || c.LeftOut != 52 || len(c.Lanes[0].Spans) != 200 {
		t.Errorf("%d lanes, %d left out, %d spans", len(c.Lanes), c.LeftOut, len(c.Lanes[0].Spans))
	}
	if lost := c.Lanes[1]; !strings.Contains(lost.Wrong, "Moon/Crater") || len(lost.Spans) != 0 {
		t.Errorf("a time zone that there is not: %+v", lost)
	}
}
