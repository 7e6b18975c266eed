// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/schedule"
)

// frozen is a Freeze of everything.
func frozen(from, until time.Time) v1alpha1.Freeze {
	f := v1alpha1.Freeze{}
	f.Name = "black-friday"
	start, end := metav1.NewTime(from), metav1.NewTime(until)
	f.Spec = v1alpha1.FreezeSpec{Reason: "sale", From: &start, Until: &end}
	return f
}

func TestPlan(t *testing.T) {
	at := func(hours, minutes int) time.Time {
		return noon.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	steps := []v1alpha1.Step{{Weight: 10, Hold: "10m"}, {Weight: 20, Hold: "1h", At: "0 15 * * *"}, {Weight: 50, Hold: "5m"}}
	programmed := metav1.NewMicroTime(noon.Add(-4 * time.Minute))
	overdue := metav1.NewMicroTime(noon.Add(-time.Hour))
	// Releases may go on from 14:00 to 16:00, each day.
	windows := &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: "0 14 * * *", Duration: "2h"}}}
	plain := func(steps ...v1alpha1.Step) v1alpha1.Strategy { return v1alpha1.Strategy{Steps: steps} }
	finish := windows.DeepCopy()
	finish.WhenClosed = v1alpha1.ClosedFinish
	five := int32(5)
	promotion := func(index int, begins time.Time, waits string) rolloutview.Planned {
		return rolloutview.Planned{Index: index, Weight: 100, State: rolloutview.Promotion, Begins: begins, Waits: waits}
	}
	const (
		person   = "a user or a hook"
		closed   = "outside the windows of spec.schedule until Sun 2026-03-01 14:00 UTC"
		tomorrow = "outside the windows of spec.schedule until Mon 2026-03-02 14:00 UTC"
	)
	tests := []struct {
		name     string
		strategy v1alpha1.Strategy
		present  *v1alpha1.StepStatus
		schedule *v1alpha1.Schedule
		freezes  []v1alpha1.Freeze
		paused   bool
		want     []rolloutview.Planned
	}{
		{name: "a release that begins now", strategy: plain(steps...), want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Begins: noon, Ends: at(0, 10)},
			{Index: 1, Weight: 20, State: rolloutview.Later, Begins: at(3, 0), Ends: at(4, 0)},
			{Index: 2, Weight: 50, State: rolloutview.Later, Begins: at(4, 0), Ends: at(4, 5)},
			promotion(3, at(4, 5), ""),
		}},
		{name: "a step that ends while the window is closed is followed when it opens", strategy: plain(steps...), schedule: windows, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Begins: at(2, 0), Ends: at(2, 10), Waits: closed},
			{Index: 1, Weight: 20, State: rolloutview.Later, Begins: at(3, 0), Ends: at(4, 0)},
			{Index: 2, Weight: 50, State: rolloutview.Later, Begins: at(26, 0), Ends: at(26, 5), Waits: tomorrow},
			promotion(3, at(26, 5), ""),
		}},
		{name: "the promotion waits for a window too", strategy: plain(v1alpha1.Step{Weight: 10, Hold: "3h"}), schedule: windows, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Begins: at(2, 0), Ends: at(5, 0), Waits: closed},
			promotion(1, at(26, 0), tomorrow),
		}},
		{name: "a release that has begun finishes while the window is closed", strategy: plain(steps...), schedule: finish, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Begins: at(2, 0), Ends: at(2, 10), Waits: closed},
			{Index: 1, Weight: 20, State: rolloutview.Later, Begins: at(3, 0), Ends: at(4, 0)},
			{Index: 2, Weight: 50, State: rolloutview.Later, Begins: at(4, 0), Ends: at(4, 5)},
			promotion(3, at(4, 5), ""),
		}},
		{
			name: "a Freeze of operators holds that release too", strategy: plain(v1alpha1.Step{Weight: 10, Hold: "3h"}), schedule: finish, freezes: []v1alpha1.Freeze{frozen(at(4, 0), at(6, 0))},
			want: []rolloutview.Planned{
				{Index: 0, Weight: 10, State: rolloutview.Later, Begins: at(2, 0), Ends: at(5, 0), Waits: closed},
				promotion(1, at(6, 0), "the Freezes of operators to be over"),
			},
		},
		{name: "a paused release", strategy: plain(v1alpha1.Step{Weight: 10, Hold: "10m"}, v1alpha1.Step{Weight: 20}), present: &v1alpha1.StepStatus{Index: 0, ProgrammedAt: &programmed}, paused: true, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Present, Begins: programmed.Time, Ends: at(0, 6)},
			{Index: 1, Weight: 20, State: rolloutview.Later, Waits: "spec.paused to be false"},
			promotion(2, time.Time{}, ""),
		}},
		{name: "a step that ends at the very time of the next", strategy: plain(v1alpha1.Step{Weight: 10, Hold: "3h"}, v1alpha1.Step{Weight: 20, At: "0 15 * * *"}), want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Begins: noon, Ends: at(3, 0)},
			{Index: 1, Weight: 20, State: rolloutview.Later, Begins: at(3, 0), Ends: at(3, 0)},
			promotion(2, at(3, 0), ""),
		}},
		{name: "a time that never comes", strategy: plain(v1alpha1.Step{Weight: 10, At: "0 0 30 2 *"}), want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Later, Waits: `the time "0 0 30 2 *", which never comes`},
			promotion(1, time.Time{}, ""),
		}},
		{name: "a release in progress", strategy: plain(steps[:1]...), present: &v1alpha1.StepStatus{Index: 0, ProgrammedAt: &programmed}, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Present, Begins: programmed.Time, Ends: at(0, 6)},
			promotion(1, at(0, 6), ""),
		}},
		{name: "a step whose time is over waits for evidence", strategy: plain(steps[:1]...), present: &v1alpha1.StepStatus{Index: 0, ProgrammedAt: &overdue}, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Present, Begins: overdue.Time, Ends: noon},
			promotion(1, noon, ""),
		}},
		{name: "after a gate nothing is known", strategy: plain(v1alpha1.Step{Weight: 5}, v1alpha1.Step{Weight: 10, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 20}), present: &v1alpha1.StepStatus{Index: 1}, want: []rolloutview.Planned{
			{Index: 0, Weight: 5, State: rolloutview.Done},
			{Index: 1, Weight: 10, State: rolloutview.Present, Begins: noon, Ends: noon, Waits: person},
			{Index: 2, Weight: 20, State: rolloutview.Later},
			promotion(3, time.Time{}, ""),
		}},
		{name: "a gate that was passed", strategy: plain(v1alpha1.Step{Weight: 10, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 20}), present: &v1alpha1.StepStatus{Index: 0, PassedAt: &programmed}, want: []rolloutview.Planned{
			{Index: 0, Weight: 10, State: rolloutview.Present, Begins: noon, Ends: noon},
			{Index: 1, Weight: 20, State: rolloutview.Later, Begins: noon, Ends: noon},
			promotion(2, noon, ""),
		}},
		{name: "a ramp", strategy: v1alpha1.Strategy{Ramp: &v1alpha1.Ramp{From: 5, To: 12, By: &five, Every: "10m"}}, present: &v1alpha1.StepStatus{Index: 1, ProgrammedAt: &programmed}, want: []rolloutview.Planned{
			{Index: 0, Weight: 5, State: rolloutview.Done},
			{Index: 1, Weight: 10, State: rolloutview.Present, Begins: programmed.Time, Ends: at(0, 6)},
			{Index: 2, Weight: 12, State: rolloutview.Later, Begins: at(0, 6), Ends: at(0, 16)},
			promotion(3, at(0, 16), ""),
		}},
		{
			name:     "blue-green with a preview, and a switch at its time",
			strategy: v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Hold: "30m", At: "0 15 * * *", ScaleDownDelay: "1h"}},
			want: []rolloutview.Planned{
				{Index: 0, State: rolloutview.Later, Begins: noon, Ends: at(0, 30)},
				{Index: 1, Weight: 100, State: rolloutview.Later, Begins: at(3, 0), Ends: at(4, 0)},
				promotion(2, at(4, 0), ""),
			},
		},
		{name: "blue-green with nothing set", strategy: v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen}, want: []rolloutview.Planned{
			{Index: 0, State: rolloutview.Later, Begins: noon, Ends: noon},
			{Index: 1, Weight: 100, State: rolloutview.Later, Begins: noon, Ends: noon.Add(30 * time.Second)},
			promotion(2, noon.Add(30*time.Second), ""),
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calendar, err := schedule.Parse(test.schedule, test.freezes)
			if err != nil {
				t.Fatal(err)
			}
			ro := &v1alpha1.Rollout{}
			ro.Spec.Strategy, ro.Spec.Schedule, ro.Spec.Paused, ro.Status.Step = test.strategy, test.schedule, test.paused, test.present
			got, err := rolloutview.Plan(ro, calendar, noon)
			if err != nil {
				t.Fatal(err)
			}
			utc := cmp.Transformer("UTC", func(t time.Time) string { return t.UTC().Format(time.RFC3339) })
			if diff := cmp.Diff(test.want, got, utc); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPlanNeedsSteps(t *testing.T) {
	calendar, err := schedule.Parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rolloutview.Plan(&v1alpha1.Rollout{}, calendar, noon); err == nil || !strings.Contains(err.Error(), "spec.strategy: has neither steps nor a ramp") {
		t.Errorf("got %v", err)
	}
}

func TestDetect(t *testing.T) {
	steps := []v1alpha1.Step{{Weight: 0, Hold: "1m"}, {Weight: 10, Hold: "5m"}, {Weight: 50, Hold: "5m", Until: v1alpha1.UntilManual}, {Weight: 100, Hold: "5m"}}
	none := []string{"", "", "", "", ""}
	tests := []struct {
		name    string
		steps   []v1alpha1.Step
		traffic rolloutview.Traffic
		present *v1alpha1.StepStatus
		want    []string
	}{
		{"much traffic", steps, rolloutview.Traffic{PerSecond: 1000, FailureRate: .001}, nil, []string{"", "0.26pp", "0.22pp", "", ""}},
		{"a service that fails more often hides more", steps, rolloutview.Traffic{PerSecond: 1000, FailureRate: .01}, nil, []string{"", "0.48pp", "0.35pp", "", ""}},
		{"little traffic", steps, rolloutview.Traffic{PerSecond: 10}, nil, []string{"", "1.9pp", "0.74pp", "", ""}},
		{"next to no traffic", steps, rolloutview.Traffic{PerSecond: .001}, nil, none},
		{"what is over", steps, rolloutview.Traffic{PerSecond: 1000, FailureRate: .001}, &v1alpha1.StepStatus{Index: 2}, []string{"", "", "0.22pp", "", ""}},
		{"it is unknown how many match", []v1alpha1.Step{{Weight: 50, Hold: "5m", Matches: []string{"beta"}}}, rolloutview.Traffic{PerSecond: 1000}, nil, []string{"", ""}},
		{"no time", []v1alpha1.Step{{Weight: 50}}, rolloutview.Traffic{PerSecond: 1000}, nil, []string{"", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ro := &v1alpha1.Rollout{}
			ro.Spec.Strategy.Steps, ro.Status.Step = test.steps, test.present
			plan, err := rolloutview.Plan(ro, schedule.Calendar{}, noon)
			if err != nil {
				t.Fatal(err)
			}
			if err := rolloutview.Detect(ro, plan, test.traffic); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range plan {
				got = append(got, p.MinDetectableEffect)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	mirror := int32(10)
	tests := []struct {
		name string
		spec v1alpha1.RolloutSpec
		want []string // the fields
	}{
		{"steps as they should be", v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Mirror: &mirror}, {Weight: 10, Hold: "5m"}, {Weight: 50, Hold: "5m"}}}}, nil},
		{"a first step for half of the users", v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 50}}}}, []string{"spec.strategy.steps[0].weight"}},
		{"half of those that match", v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 50, Matches: []string{"beta"}}}}}, nil},
		{"a leap and nothing to compare with", v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 5}, {Weight: 100}}}}, []string{"spec.strategy.steps[1].weight", "spec.strategy.steps[1].weight"}},
		{"a step in which nothing happens", v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 0}}}}, []string{"spec.strategy.steps[0]"}},
		{"what a user has left", v1alpha1.RolloutSpec{Paused: true, Control: &v1alpha1.Control{By: "jane"}}, []string{"spec.paused", "spec.control.by"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, sentence := range rolloutview.Advice(&v1alpha1.Rollout{Spec: test.spec}) {
				field, _, _ := strings.Cut(sentence, ": ")
				got = append(got, field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
