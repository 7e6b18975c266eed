// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

var start = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// judging is a release whose second of two steps is live since ten seconds.
func judging() *state.Draft {
	d := &state.Draft{}
	d.Rollout, d.Now = &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}}, start.Add(30*time.Second)
	d.Canary = &state.Canary{Available: 1}
	step := strategy.Step{Route: strategy.Route{Weight: 20}, Hold: time.Minute, Judge: judge.Defaults()}
	d.Steps = []strategy.Step{step, step}
	d.Judge = judge.Defaults()
	live := metav1.NewMicroTime(start.Add(20 * time.Second))
	d.Status.Step = &v1alpha1.StepStatus{Index: 1, ProgrammedAt: &live}
	began := metav1.NewTime(start.Add(time.Millisecond))
	d.Status.Canary = &v1alpha1.VersionStatus{Revision: "v2", StartedAt: &began}
	for i := range 2 {
		end := start.Add(time.Duration(25+5*i) * time.Second)
		d.Windows = append(d.Windows, analysis.Window{Start: end.Add(-5 * time.Second), End: end, Weight: 20})
	}
	return d
}

func TestEachWindowIsAnEntryAndTheLastOneHasTheVerdict(t *testing.T) {
	d := judging()
	JudgeTraffic(d)
	if len(d.Entries) != 2 || d.Recorded.Rollout != "shop/website" || d.Recorded.Revision != "v2" || !d.Recorded.Began.Equal(start) {
		t.Fatalf("%d entries of %+v", len(d.Entries), d.Recorded)
	}
	for i, e := range d.Entries {
		last := i == 1
		if e.Step != 1 || !e.Live.Equal(start.Add(20*time.Second)) || !e.Last || e.Ended || e.Holdout || e.At.IsZero() == last || !e.Window.End.Equal(d.Windows[i].End) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if last := d.Entries[1]; !last.Before.End().Equal(d.Windows[0].End) || last.Result != d.Verdict || last.Action != policy.Hold {
		t.Errorf("the last entry: %+v", last)
	}
}

func TestTheActionIsWhatThePolicySays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*state.Draft)
		want   policy.Action
	}{
		"the step is held":        {func(*state.Draft) {}, policy.Hold},
		"a step without evidence": {func(d *state.Draft) { d.Steps[1].Hold = 0 }, policy.Hold},
		"a step that goes on without evidence": {func(d *state.Draft) {
			d.Now = start.Add(3 * time.Minute)
			d.Steps[1].OnInconclusive = v1alpha1.InconclusivePromote
		}, policy.Promote},
		"the same, which is not the last": {func(d *state.Draft) {
			d.Now, d.Status.Step.Index = start.Add(3*time.Minute), 0
			d.Steps[0].OnInconclusive = v1alpha1.InconclusivePromote
		}, policy.Step},
		"a step without traffic": {func(d *state.Draft) {
			d.Now = start.Add(3 * time.Minute)
			d.Steps[1].Weight = 0
		}, policy.Promote},
		"the same with a limit": {func(d *state.Draft) {
			d.Now = start.Add(3 * time.Minute)
			d.Steps[1].Weight, d.Steps[1].Judge.Limits = 0, []judge.Limit{judge.MinSuccessRate(.9)}
		}, policy.Hold},
		"a user ended it": {func(d *state.Draft) {
			d.Steps[1].Weight, d.Status.Step.PassedAt = 0, new(metav1.NewMicroTime(d.Now))
		}, policy.Promote},
		"it is not live": {func(d *state.Draft) {
			d.Now, d.Status.Step.ProgrammedAt = start.Add(3*time.Minute), nil
			d.Steps[1].OnInconclusive = v1alpha1.InconclusivePromote
		}, policy.Hold},
		"all steps are over": {func(d *state.Draft) { d.Status.Step.Index = 2 }, policy.Hold},
	} {
		d := judging()
		test.change(d)
		JudgeTraffic(d)
		if got := d.Entries[len(d.Entries)-1].Action; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestNumbersThatBecameKnownAtOnceAreOneEntry(t *testing.T) {
	d := judging()
	d.Windows = nil
	for i, name := range []string{"a", "b", "c"} {
		at := start.Add(time.Duration(25+i/2) * time.Second)
		d.Values = append(d.Values, analysis.KnownValue{At: at, Value: analysis.Value{Name: name}})
	}
	JudgeTraffic(d)
	var got []int
	for _, e := range d.Entries {
		got = append(got, len(e.Values))
	}
	if diff := cmp.Diff([]int{2, 1}, got); diff != "" {
		t.Error(diff)
	}
}
