// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// JudgeTraffic judges what the canary answered since the last look, in every phase
// of the release.
func JudgeTraffic(d *state.Draft) {
	d.Judged = true
	if d.Canary == nil || d.Unmeasured || !d.Begun() || d.Status.Step == nil {
		return
	}
	d.Measure = true
	if d.Status.Analysis == nil && len(d.Windows) == 0 && d.Status.Step.ProgrammedAt == nil {
		return // it gets no traffic yet
	}
	config := judgeOf(&d.Snapshot)
	state := judgeWindows(d, config)
	d.Verdict = config.Assess(state, d.Now)
	d.Failing = d.Verdict.Verdict == judge.Fail
	look(d)
	putOnRecord(d, state)
	if last := d.Status.Analysis.LastWindowEnd; last != nil {
		// Once data is stale it stays so until there is a new window.
		if stale := last.Add(config.StaleAfter + time.Second); d.Now.Before(stale) {
			d.Wake(stale)
		}
	}
}

// StartEvidence begins the evidence of the present step: a Pass needs traffic
// from after its weight was live.
func StartEvidence(d *state.Draft) {
	state := evidenceState(&d.Snapshot).StartStep(d.Status.Step.ProgrammedAt.Time)
	d.Verdict = judgeOf(&d.Snapshot).Assess(state, d.Now)
	d.Failing = d.Verdict.Verdict == judge.Fail
	putOnRecord(d, state)
}

// judgeOf is how the present step is judged, with what earlier releases have taught. Until
// its weight is live, the requests are shared by that of the step before.
func judgeOf(s *state.Snapshot) judge.Config {
	i := int(s.Status.Step.Index)
	if i >= len(s.Steps) {
		return s.Judge
	}
	c := s.StepAt(i).Judge
	c.Shares = c.Shares && s.Status.Step.ProgrammedAt != nil && !s.Delegated.Uneven
	if text := s.Status.Dispersion; text != "" {
		var d judge.Dispersion
		if d.UnmarshalText([]byte(text)) == nil { // else it is measured again
			c.Dispersion = d
		}
	}
	return c
}

// evidenceState reads the state of the test. A state that can't be read begins
// anew: that forgets evidence, and never invents any.
func evidenceState(s *state.Snapshot) judge.State {
	var state judge.State
	if a := s.Status.Analysis; a != nil && a.State != "" {
		if err := state.UnmarshalText([]byte(a.State)); err != nil {
			return judge.State{}
		}
	}
	return state
}

// judgeWindows adds the windows and values that were not judged yet, each once.
func judgeWindows(d *state.Draft, config judge.Config) judge.State {
	state := evidenceState(&d.Snapshot)
	if d.Status.Analysis == nil {
		d.Status.Analysis = &v1alpha1.AnalysisStatus{}
	}
	for _, w := range d.Windows {
		if !Known(&d.Snapshot, state, w) {
			before := state
			var result judge.Result
			state, result = config.Next(state, w)
			count(d.Status.Analysis, w)
			enter(d, recording.Entry{Window: &w, Before: before, Result: result})
		}
	}
	for _, v := range d.Values {
		before := state
		state = config.Values(state, v.At, []analysis.Value{v.Value})
		d.Status.Analysis.LastValueAt = new(metav1.NewMicroTime(v.At))
		enter(d, recording.Entry{Known: v.At, Values: []analysis.Value{v.Value}, Before: before, Result: config.Assess(state, v.At)})
	}
	return state
}

// Known reports whether a window was judged already, belongs to an earlier release, or is
// what an outage did to both versions.
func Known(s *state.Snapshot, state judge.State, w analysis.Window) bool {
	if c := s.Status.Canary; c != nil && c.StartedAt != nil && w.Start.Before(c.StartedAt.Time) {
		return true
	}
	if s.Befell(w.Start) {
		return true
	}
	return !w.End.After(state.End())
}

// count adds a window to the totals that users see.
func count(a *v1alpha1.AnalysisStatus, w analysis.Window) {
	a.CanaryRequests += w.Canary.Requests
	a.CanaryFailures += w.Canary.Failures
	a.StableRequests += w.Stable.Requests
	a.StableFailures += w.Stable.Failures
	a.LastWindowEnd = new(metav1.NewMicroTime(w.End))
}

// putOnRecord writes the verdict and the state that it comes from.
func putOnRecord(d *state.Draft, state judge.State) {
	if d.Status.Analysis == nil {
		d.Status.Analysis = &v1alpha1.AnalysisStatus{}
	}
	a, r := d.Status.Analysis, d.Verdict
	a.Verdict, a.Reason, a.Message = string(r.Verdict), string(r.Reason), kit.Shorten(r.Explain())
	a.Evidence, a.Threshold, a.DecidingMetric = figure(r.Evidence), figure(r.Threshold), r.DecidingMetric
	a.PromotionEvidence, a.PromotionThreshold, a.MinDetectableEffect = "", "", ""
	if r.PromotionThreshold > 0 {
		a.PromotionEvidence, a.PromotionThreshold = figure(r.PromotionEvidence), figure(r.PromotionThreshold)
	}
	if r.MinDetectableEffect > 0 && r.MinDetectableEffect < 1 {
		a.MinDetectableEffect = strconv.FormatFloat(100*r.MinDetectableEffect, 'g', 2, 64) + "pp"
	}
	if text, err := state.MarshalText(); err == nil {
		a.State = string(text)
	}
}

// KeepDispersion notes what the release has taught about stable's requests.
func KeepDispersion(d *state.Draft) {
	if d.Status.Analysis == nil {
		return
	}
	dispersion := evidenceState(&d.Snapshot).Dispersion()
	if dispersion == (judge.Dispersion{}) {
		return
	}
	if text, err := dispersion.MarshalText(); err == nil {
		d.Status.Dispersion = string(text)
	}
}

// Sentence is what the analysis says, with the reason where measurements
// are missing.
func Sentence(s *state.Snapshot) string {
	text := s.Verdict.Explain()
	if s.Verdict.Verdict == judge.Inconclusive && s.DataProblem != "" {
		text += " (" + s.DataProblem + ")"
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// figure writes evidence for users: "0.42", "42.8", "3897".
func figure(x float64) string {
	switch {
	case x < 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x < 1e6:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
