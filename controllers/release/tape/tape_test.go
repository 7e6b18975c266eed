// SPDX-License-Identifier: Apache-2.0

package tape_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/tape"
)

var began = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

var of = recording.Release{Rollout: "shop/website", Revision: "v2", Began: began}

// player plays looks at a Rollout into a Tape.
type player struct {
	t *testing.T
	tape.Tape
	status v1alpha1.RolloutStatus
	judge  judge.State
	end    time.Time
}

func newPlayer(t *testing.T) *player {
	return &player{t: t, end: began, status: v1alpha1.RolloutStatus{Step: &v1alpha1.StepStatus{}}}
}

// look judges one window in a look that changes the status, and returns the keys of what is
// stored, and of what is removed with a minus.
func (p *player) look(change func(*state.Decision)) []string {
	p.t.Helper()
	w := analysis.Window{Start: p.end, End: p.end.Add(5 * time.Second), Weight: 10}
	before := p.judge
	p.end, p.judge = w.End, judgeOf(p.judge, w)
	d := &state.Decision{Status: *p.status.DeepCopy(), Recorded: of, Entries: []recording.Entry{{
		Window: &w, Before: before, Stage: policy.Stage{Judge: judge.Defaults()}, At: w.End,
	}}}
	if change != nil {
		change(d)
	}
	texts, err := p.Look(&p.status, d)
	if err != nil {
		p.t.Fatal(err)
	}
	p.status = d.Status
	var out []string
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if texts[key] == "" {
			key = "-" + key
		}
		out = append(out, key)
	}
	return out
}

func judgeOf(s judge.State, w analysis.Window) judge.State {
	s, _ = judge.Defaults().Next(s, w)
	return s
}

func leftOut(d *state.Decision) { d.LeftOut = true }

func figures(d *state.Decision) {
	d.Status.Analysis = &v1alpha1.AnalysisStatus{LastWindowEnd: new(metav1.NewMicroTime(d.Entries[0].Window.End))}
}

func step(d *state.Decision) { d.Status.Step = &v1alpha1.StepStatus{Index: d.Status.Step.Index + 1} }

func end(d *state.Decision) {
	entry := v1alpha1.HistoryEntry{Revision: "v2", StartedAt: new(metav1.NewTime(began.Add(7 * time.Millisecond)))}
	d.Status.History = append([]v1alpha1.HistoryEntry{entry}, d.Status.History...)
}

func TestAStepIsStoredInPlaceOfAWriteOfFiguresAndOneIsKeptForTheEnd(t *testing.T) {
	p := newPlayer(t)
	if p.LeaveOut() {
		t.Error("figures are left out though there is nothing to store")
	}
	p.look(nil)
	if !p.LeaveOut() {
		t.Fatal("no write is left out")
	}
	p.look(leftOut)
	if got := p.look(step); got != nil || p.LeaveOut() {
		t.Errorf("stored %v after one write that was left out, or two are left out in a row", got)
	}
	p.look(figures)
	if !p.LeaveOut() {
		t.Fatal("no other write is left out")
	}
	p.look(leftOut)
	p.look(figures)
	if p.LeaveOut() {
		t.Error("more is left out than is needed")
	}
	if got := p.look(step); !cmp.Equal(got, []string{"v2.1893585600"}) {
		t.Errorf("stored %v", got)
	}
	if got := p.look(step); got != nil {
		t.Errorf("stored %v with the write that is kept for the end", got)
	}
	if got := p.look(end); !cmp.Equal(got, []string{"v2.1893585600"}) {
		t.Errorf("stored %v at the end", got)
	}
	if p.LeaveOut() {
		t.Error("figures are left out after the end")
	}
}

func TestAReleaseIsStoredAtItsEndWhateverWasLeftOut(t *testing.T) {
	p := newPlayer(t)
	p.look(nil)
	if got := p.look(end); len(got) != 1 {
		t.Errorf("stored %v", got)
	}
}

func TestRecordingsGoWithTheHistory(t *testing.T) {
	p := newPlayer(t)
	var want []string
	for i := range 12 {
		at := metav1.NewTime(began.Add(-time.Duration(i+1) * time.Hour))
		p.status.History = append(p.status.History, v1alpha1.HistoryEntry{Revision: fmt.Sprint("old", i), StartedAt: &at})
		if i >= v1alpha1.MaxRecordings-1 {
			want = append(want, "-"+recording.Key(fmt.Sprint("old", i), at.Time))
		}
	}
	p.status.History = append(p.status.History, v1alpha1.HistoryEntry{Revision: "first"}) // it came up without steps
	want = append(want, recording.Key("v2", began))
	slices.Sort(want)
	if got := p.look(nil); got != nil {
		t.Errorf("stored %v before the end", got)
	}
	if diff := cmp.Diff(want, p.look(end)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasJudgedBeforeARestartIsMissed(t *testing.T) {
	p := newPlayer(t)
	p.look(nil)
	d := &state.Decision{Recorded: of, Entries: []recording.Entry{{Before: p.judge}}}
	if p.Misses(d) {
		t.Error("it misses what it has")
	}
	if p.Tape = (tape.Tape{}); !p.Misses(d) {
		t.Error("it does not miss what was judged before the restart")
	}
	d.Entries[0].Before = judge.State{}
	if p.Misses(d) {
		t.Error("it misses windows of a release that had none")
	}
	p.Continue(of, nil)
	p.look(nil)
	if got := p.look(end); len(got) != 1 {
		t.Errorf("stored %v", got)
	}
}
