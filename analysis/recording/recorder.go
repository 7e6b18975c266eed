// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Entry is one window that the operator judged, or one number of a user that became known
// while no traffic could be measured.
type Entry struct {
	// Window is nil where there are only the Values, known at a time.
	Window *analysis.Window
	Known  time.Time
	Values []analysis.Value
	// Before is the state of the judge before it.
	Before judge.State
	// Stage is what it was judged by.
	Stage policy.Stage
	// Step is the index of the step, and Live since when its weight is live; zero while
	// it is not.
	Step int
	Live time.Time
	// Last, Ended and Holdout are those of the policy.Progress.
	Last, Ended, Holdout bool
	// At is when the operator looked; zero when it looked only after the next one.
	At     time.Time
	Result judge.Result
	Action policy.Action
}

// end is the end of the window, or when the value became known.
func (e *Entry) end() time.Time {
	if e.Window != nil {
		return e.Window.End
	}
	return e.Known
}

// Recorder makes the recording of one release that goes on.
type Recorder struct {
	release Release
	lines   []Line
	// base is the position before lines[from], and here the one after all lines. From
	// there on the lines are exact.
	base, here Position
	from       int
	// interrupted is whether windows may be missing before the next line.
	interrupted bool
}

// maxLines is how many lines are kept in memory before the older ones are merged: more
// than are stored.
const maxLines = 768

// New begins the recording of a release.
func New(of Release) *Recorder {
	return &Recorder{release: of, base: Position{began: of.Began}, here: Position{began: of.Began}}
}

// Continue goes on after lines that were recorded before the operator restarted, if they
// are of this release; there may be none.
func Continue(of Release, lines []Line) *Recorder {
	r := New(of)
	r.interrupted = true
	if len(lines) == 0 || lines[0].Release == nil || *lines[0].Release != of {
		return r
	}
	for _, l := range lines {
		if _, _, err := r.here.Next(&l); err != nil {
			return Continue(of, nil) // it can't be judged by what it says
		}
		l.Release, l.Settings = nil, r.here.settings
		r.lines = append(r.lines, l)
	}
	return r
}

// Release is which release is recorded.
func (r *Recorder) Release() Release { return r.release }

// Lines are those so far.
func (r *Recorder) Lines() []Line { return stored(r.release, r.lines) }

// Add records an entry once: what is judged before it is on record is judged again in the
// next look. It reports whether the entry was new.
func (r *Recorder) Add(e Entry) bool {
	l := r.line(&e)
	if r.knows(&l) {
		return false
	}
	r.resumeAt(&l, e.Before)
	if _, _, err := r.here.Next(&l); err != nil {
		return false // what can't be judged by its settings was not judged either
	}
	r.lines = append(r.lines, l)
	if len(r.lines) > maxLines {
		r.shrink()
	}
	return true
}

// knows reports whether there is a line of the same window. Where that is now judged by
// something else, because a user changed it before it was on record, the line is taken back.
func (r *Recorder) knows(l *Line) bool {
	i := len(r.lines)
	for i > 0 && *r.lines[i-1].T >= *l.T {
		i--
	}
	if i == len(r.lines) {
		return false
	}
	if known := &r.lines[i]; i < r.from || *known.T > *l.T || same(known.Live, l.Live) && same(known.Settings, l.Settings) {
		return true
	}
	// A line that says that windows may be missing before it says so when it is written anew.
	r.interrupted = r.interrupted || slices.ContainsFunc(r.lines[i:], func(l Line) bool { return l.Gap == GapRestarted })
	r.lines, r.here = r.lines[:i], r.base
	for j := r.from; j < i; j++ {
		if _, _, err := r.here.Next(&r.lines[j]); err != nil {
			panic(err) // it was judged when it was added
		}
	}
	return false
}

// line writes an entry down.
func (r *Recorder) line(e *Entry) Line {
	began, step := r.release.Began, e.Step
	l := Line{
		T: new(since(began, e.end())), Step: &step, Settings: r.settingsOf(e.Stage), Last: e.Last, Ended: e.Ended, Holdout: e.Holdout,
		Judged: &Judged{
			Verdict: e.Result.Verdict, Reason: e.Result.Reason, Action: e.Action,
			Rollback: Rounded(e.Result.Evidence), Promote: Rounded(e.Result.PromotionEvidence),
		},
	}
	if !e.Live.IsZero() {
		l.Live = new(since(began, e.Live))
	}
	if !e.At.IsZero() {
		l.Judged.At = new(since(began, e.At))
	}
	if e.Window == nil {
		l.setValues(e.Values)
		return l
	}
	l.setWindow(began, e.Window)
	return l
}

// settingsOf are those of the line before where they are the same.
func (r *Recorder) settingsOf(s policy.Stage) *Settings {
	next := MakeSettings(s)
	if n := len(r.lines); n > 0 && same(r.lines[n-1].Settings, next) {
		return r.lines[n-1].Settings
	}
	return next
}

func (l *Line) setWindow(began time.Time, w *analysis.Window) {
	weight := w.Weight
	l.Seconds, l.Weight = new(w.End.Sub(w.Start).Seconds()), &weight
	l.Canary, l.Stable = makeVariant(w.Canary), makeVariant(w.Stable)
	if w.Proxies != (analysis.Variant{}) {
		l.Proxies = makeVariant(w.Proxies)
	}
	for _, s := range w.Samples {
		sample := Sample{Name: s.Name, Canary: makeVariant(s.Canary), Stable: makeVariant(s.Stable)}
		if !s.Start.IsZero() {
			sample.Start = new(since(began, s.Start))
		}
		l.Samples = append(l.Samples, sample)
	}
	l.setValues(w.Values)
}

// setValues writes numbers down. One that is none, or infinite, is as good as missing, and
// JSON has neither.
func (l *Line) setValues(values []analysis.Value) {
	for _, v := range values {
		if _, ok := v.Get(); !ok {
			v.Value = nil
		}
		l.Values = append(l.Values, Value(v))
	}
}

func makeVariant(a analysis.Variant) *Variant {
	out := &Variant{Requests: &a.Requests, Failures: &a.Failures}
	if h := a.Latency; h != nil {
		out.Latency = &Latency{LE: h.LE, Counts: h.Counts}
	}
	if a.Spread != (analysis.Spread{}) {
		out.Spread = (*Spread)(&a.Spread)
	}
	return out
}

// resumeAt writes the operator's state into a line where the lines before do not lead to it.
func (r *Recorder) resumeAt(l *Line, before judge.State) {
	if r.leadsTo(l, before) {
		return
	}
	if start := before.StepStart(); !start.IsZero() && !r.interrupted {
		l.Begun = new(since(r.release.Began, start))
		if r.leadsTo(l, before) {
			return
		}
		l.Begun = nil
	}
	if r.interrupted {
		l.Gap, r.interrupted = GapRestarted, false
	}
	l.Resume = text(before)
}

// leadsTo reports whether the lines so far lead to the operator's state before a line.
func (r *Recorder) leadsTo(l *Line, before judge.State) bool {
	there := r.here
	return there.enter(l) == nil && there.State == before && !r.interrupted
}

func text(s judge.State) string {
	out, err := s.MarshalText()
	if err != nil {
		panic(err) // it never fails
	}
	return string(out)
}
