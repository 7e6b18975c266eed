// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Tape is the recording of one Rollout. The zero Tape is empty.
type Tape struct {
	recorder *recording.Recorder
	// unsaved is whether the recorder has windows that are not stored.
	unsaved bool
	// leftOut is whether the last write of figures was left out, and credit how many were
	// for which nothing was stored yet.
	leftOut bool
	credit  int
}

// reserve is how many writes are kept for the end of the release, which is always stored.
const reserve = 1

// LeaveOut reports whether the next write of figures is to be left out. Of two in a row, one
// is written.
func (t *Tape) LeaveOut() bool { return t.unsaved && !t.leftOut && t.credit <= reserve }

// Misses reports whether windows of the release were judged that the Tape does not know,
// because the operator restarted.
func (t *Tape) Misses(d *state.Decision) bool {
	return len(d.Entries) > 0 && !t.records(d.Recorded) && !d.Entries[0].Before.End().IsZero()
}

// Continue goes on with what was stored before the operator restarted.
func (t *Tape) Continue(of recording.Release, stored []recording.Line) {
	*t = Tape{recorder: recording.Continue(of, stored)}
}

// Look records what was judged in a look at a Rollout that had a status stored before. It returns
// what is to be stored, by the key of the release; "" is to be removed.
func (t *Tape) Look(before *v1alpha1.RolloutStatus, d *state.Decision) (map[string]string, error) {
	if len(d.Entries) > 0 && !t.records(d.Recorded) {
		*t = Tape{recorder: recording.New(d.Recorded)}
	}
	for _, e := range d.Entries {
		if t.recorder.Add(e) {
			t.unsaved = true
		}
	}
	t.countWrites(before, d)
	switch {
	case t.recorder == nil:
		return nil, nil
	case ended(t.recorder.Release(), d.Status.History):
		return t.end(before, d)
	case t.unsaved && t.credit > reserve && stepped(before.Step, d.Status.Step):
		t.credit--
		return t.store()
	}
	return nil, nil
}

// countWrites notes whether figures were written or left out.
func (t *Tape) countWrites(before *v1alpha1.RolloutStatus, d *state.Decision) {
	if d.LeftOut {
		t.leftOut, t.credit = true, t.credit+1
	} else if !d.Later && figures(before) != figures(&d.Status) {
		t.leftOut = false
	}
}

// figures changes with the figures of a status that is written.
func figures(s *v1alpha1.RolloutStatus) string {
	if s.Analysis == nil || s.Analysis.LastWindowEnd == nil {
		return ""
	}
	return s.Analysis.LastWindowEnd.String()
}

func (t *Tape) records(r recording.Release) bool {
	return t.recorder != nil && t.recorder.Release() == r
}

// end stores the recording of a release that has ended, and removes those that are not kept.
func (t *Tape) end(before *v1alpha1.RolloutStatus, d *state.Decision) (map[string]string, error) {
	out, err := t.store()
	*t = Tape{}
	if err != nil {
		return nil, err
	}
	kept := d.Status.History[:min(len(d.Status.History), v1alpha1.MaxRecordings)]
	keep := keys(kept)
	for key := range keys(before.History) {
		if !keep[key] {
			out[key] = ""
		}
	}
	return out, nil
}

func (t *Tape) store() (map[string]string, error) {
	text, err := t.recorder.Text()
	if err != nil {
		return nil, err
	}
	t.unsaved = false
	of := t.recorder.Release()
	return map[string]string{recording.Key(of.Revision, of.Began): text}, nil
}

// ended reports whether the history has a release.
func ended(r recording.Release, history []v1alpha1.HistoryEntry) bool {
	return keys(history)[recording.Key(r.Revision, r.Began)]
}

// keys are those of the releases that began.
func keys(history []v1alpha1.HistoryEntry) map[string]bool {
	out := map[string]bool{}
	for _, h := range history {
		if h.StartedAt != nil {
			out[recording.Key(h.Revision, second(h.StartedAt))] = true
		}
	}
	return out
}

// second is a time as the API stores it.
func second(t *metav1.Time) time.Time { return t.UTC().Truncate(time.Second) }

// stepped reports whether a step ended.
func stepped(before, after *v1alpha1.StepStatus) bool {
	return before != nil && after != nil && before.Index != after.Index
}
