// SPDX-License-Identifier: Apache-2.0

package sight_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/sight"
	"github.com/serin-dev/serin/controllers/rollout/schedule"
)

func TestPlan(t *testing.T) {
	at := func(hours, minutes int) time.Time {
		return noon.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	steps := []v1alpha1.Step{{Weight: 10, Hold: "10m"}, {Weight: 20, Hold: "1h", At: "0 15 * * *"}, {Weight: 50, Hold: "5m"}}
	inEffect := metav1.NewMicroTime(noon.Add(-4 * time.Minute))
	overdue := metav1.NewMicroTime(noon.Add(-time.Hour))
	// Releases may go on from 14:00 to 16:00, each day.
	windows := &v1alpha1.Schedule{Windows: []v1alpha1.Window{{Start: "0 14 * * *", Duration: "2h"}}}
	tests := []struct {
		name     string
		steps    []v1alpha1.Step
		present  *v1alpha1.StepStatus
		schedule *v1alpha1.Schedule
		want     []sight.Planned
	}{
		{"a release that begins now", steps, nil, nil, []sight.Planned{
			{Number: 1, Weight: 10, State: sight.Later, Begins: noon, Ends: at(0, 10)},
			{Number: 2, Weight: 20, State: sight.Later, Begins: at(3, 0), Ends: at(4, 0)},
			{Number: 3, Weight: 50, State: sight.Later, Begins: at(4, 0), Ends: at(4, 5)},
		}},
		{"windows", steps, nil, windows, []sight.Planned{
			{Number: 1, Weight: 10, State: sight.Later, Begins: at(2, 0), Ends: at(2, 10)},
			{Number: 2, Weight: 20, State: sight.Later, Begins: at(3, 0), Ends: at(4, 0)},
			{Number: 3, Weight: 50, State: sight.Later, Begins: at(26, 0), Ends: at(26, 5)},
		}},
		{"a release in progress", steps[:1], &v1alpha1.StepStatus{Index: 0, InEffectAt: &inEffect}, nil, []sight.Planned{
			{Number: 1, Weight: 10, State: sight.Present, Begins: inEffect.Time, Ends: at(0, 6)},
		}},
		{"a step whose time is over waits for evidence", steps[:1], &v1alpha1.StepStatus{Index: 0, InEffectAt: &overdue}, nil, []sight.Planned{
			{Number: 1, Weight: 10, State: sight.Present, Begins: overdue.Time, Ends: noon},
		}},
		{"after a gate nothing is known", []v1alpha1.Step{{Weight: 5}, {Weight: 10, Until: v1alpha1.UntilManual}, {Weight: 20}}, &v1alpha1.StepStatus{Index: 1}, nil, []sight.Planned{
			{Number: 1, Weight: 5, State: sight.Done},
			{Number: 2, Weight: 10, State: sight.Present, Begins: noon, Ends: noon, Waits: "a person or a hook"},
			{Number: 3, Weight: 20, State: sight.Later},
		}},
		{"a gate that was passed", []v1alpha1.Step{{Weight: 10, Until: v1alpha1.UntilManual}, {Weight: 20}}, &v1alpha1.StepStatus{Index: 0, PassedAt: &inEffect}, nil, []sight.Planned{
			{Number: 1, Weight: 10, State: sight.Present, Begins: noon, Ends: noon},
			{Number: 2, Weight: 20, State: sight.Later, Begins: noon, Ends: noon},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calendar, err := schedule.Parse(test.schedule, nil)
			if err != nil {
				t.Fatal(err)
			}
			ro := &v1alpha1.Rollout{}
			ro.Spec.Strategy.Steps, ro.Status.Step = test.steps, test.present
			got, err := sight.Plan(ro, calendar, noon)
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
	if _, err := sight.Plan(&v1alpha1.Rollout{}, calendar, noon); err == nil || !strings.Contains(err.Error(), "spec.strategy.steps") {
		t.Errorf("got %v", err)
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
		{"what a person has left", v1alpha1.RolloutSpec{Paused: true, Control: &v1alpha1.Control{By: "jane"}}, []string{"spec.paused", "spec.control.by"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, sentence := range sight.Advice(&v1alpha1.Rollout{Spec: test.spec}) {
				field, _, _ := strings.Cut(sentence, ": ")
				got = append(got, field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
