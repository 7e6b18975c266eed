// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// judgeTraffic judges what the canary answered since the last look, at whatever stage
// the release is.
func judgeTraffic(d *draft) {
	d.judged = true
	if d.canary == nil || d.byReplicas || !d.begun() || d.status.Step == nil {
		return
	}
	d.measure = true
	if d.status.Analysis == nil && len(d.Windows) == 0 && d.status.Step.ProgrammedAt == nil {
		return // it gets no traffic yet
	}
	config := judgeOf(&d.snapshot)
	state := judgeWindows(d, config)
	d.verdict = config.Assess(state, d.Now)
	d.failing = d.verdict.Verdict == judge.Fail
	putOnRecord(d, state)
	if last := d.status.Analysis.LastWindowEnd; last != nil {
		// Once data is stale it stays so until there is a new window.
		if stale := last.Add(config.StaleAfter + time.Second); d.Now.Before(stale) {
			d.wake(stale)
		}
	}
}

// startEvidence begins the evidence of the present step: a Pass needs traffic
// from after its weight took effect.
func startEvidence(d *draft) {
	state := evidenceState(&d.snapshot).StartStep(d.status.Step.ProgrammedAt.Time)
	d.verdict = judgeOf(&d.snapshot).Assess(state, d.Now)
	d.failing = d.verdict.Verdict == judge.Fail
	putOnRecord(d, state)
}

// judgeOf is how the present step is judged, with what former releases have taught.
func judgeOf(s *snapshot) judge.Config {
	i := int(s.status.Step.Index)
	if i >= len(s.steps) {
		return s.judge
	}
	c := s.stepAt(i).judge
	if text := s.status.Dispersion; text != "" {
		var d judge.Dispersion
		if d.UnmarshalText([]byte(text)) == nil { // else it is measured again
			c.Dispersion = d
		}
	}
	return c
}

// evidenceState reads the state of the test. A state that can't be read begins
// anew: that forgets evidence, and never invents any.
func evidenceState(s *snapshot) judge.State {
	var state judge.State
	if a := s.status.Analysis; a != nil && a.State != "" {
		if err := state.UnmarshalText([]byte(a.State)); err != nil {
			return judge.State{}
		}
	}
	return state
}

// judgeWindows adds the windows and values that were not judged yet, each once.
func judgeWindows(d *draft, config judge.Config) judge.State {
	state := evidenceState(&d.snapshot)
	if d.status.Analysis == nil {
		d.status.Analysis = &v1alpha1.AnalysisStatus{}
	}
	for _, w := range d.Windows {
		if !known(&d.snapshot, state, w) {
			state, _ = config.Next(state, w)
			count(d.status.Analysis, w)
		}
	}
	for _, v := range d.Values {
		state = config.Values(state, v.At, []analysis.Value{v.Value})
		d.status.Analysis.LastValueAt = new(metav1.NewMicroTime(v.At))
	}
	return state
}

// known reports whether a window was judged already or belongs to an earlier
// release.
func known(s *snapshot, state judge.State, w analysis.Window) bool {
	if c := s.status.Canary; c != nil && c.StartedAt != nil && w.Start.Before(c.StartedAt.Time) {
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
func putOnRecord(d *draft, state judge.State) {
	if d.status.Analysis == nil {
		d.status.Analysis = &v1alpha1.AnalysisStatus{}
	}
	a, r := d.status.Analysis, d.verdict
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

// keepDispersion notes what the release has taught about stable's requests.
func keepDispersion(d *draft) {
	if d.status.Analysis == nil {
		return
	}
	dispersion := evidenceState(&d.snapshot).Dispersion()
	if dispersion == (judge.Dispersion{}) {
		return
	}
	if text, err := dispersion.MarshalText(); err == nil {
		d.status.Dispersion = string(text)
	}
}

// evidenceSentence is what the analysis says, with the reason where measurements
// are missing.
func evidenceSentence(s *snapshot) string {
	text := s.verdict.Explain()
	if s.verdict.Verdict == judge.Inconclusive && s.DataProblem != "" {
		text += " (" + s.DataProblem + ")"
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// figure writes evidence for people: "0.42", "42.8", "3897".
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
