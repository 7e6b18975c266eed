// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// evidenceState reads the state of the test. A state that can't be read begins
// anew: that forgets evidence, and never invents any.
func (p *pass) evidenceState() judge.State {
	var s judge.State
	if a := p.status.Analysis; a != nil && a.State != "" {
		if err := s.UnmarshalText([]byte(a.State)); err != nil {
			return judge.State{}
		}
	}
	return s
}

// startEvidence begins the evidence of the present step: a Pass needs traffic
// from after its weight took effect.
func (p *pass) startEvidence() judge.Result {
	s := p.evidenceState().StartStep(p.status.Step.ProgrammedAt.Time)
	r := p.judge.Assess(s, p.Now)
	p.report(s, r)
	return r
}

// judgeWindows adds the windows that were not judged yet, each once.
func (p *pass) judgeWindows() judge.Result {
	s := p.evidenceState()
	for _, w := range p.Windows {
		if p.judged(s, w) {
			continue
		}
		s, _ = p.judge.Next(s, w)
		p.count(w)
	}
	for _, v := range p.Values {
		s = p.judge.Values(s, v.At, []analysis.Value{v.Value})
		at := metav1.NewMicroTime(v.At)
		p.analysisStatus().LastValueAt = &at
	}
	result := p.judge.Assess(s, p.Now)
	p.report(s, result)
	return result
}

// judged reports whether a window was judged already or belongs to an earlier
// release.
func (p *pass) judged(s judge.State, w analysis.Window) bool {
	if c := p.status.Canary; c != nil && c.StartedAt != nil && w.Start.Before(c.StartedAt.Time) {
		return true
	}
	return !w.End.After(s.End())
}

// count adds a window to the totals that people see.
func (p *pass) count(w analysis.Window) {
	a := p.analysisStatus()
	a.CanaryRequests += w.Canary.Requests
	a.CanaryFailures += w.Canary.Failures
	a.StableRequests += w.Stable.Requests
	a.StableFailures += w.Stable.Failures
	end := metav1.NewMicroTime(w.End)
	a.LastWindowEnd = &end
}

func (p *pass) analysisStatus() *v1alpha1.AnalysisStatus {
	if p.status.Analysis == nil {
		p.status.Analysis = &v1alpha1.AnalysisStatus{}
	}
	return p.status.Analysis
}

func (p *pass) report(s judge.State, r judge.Result) {
	a := p.analysisStatus()
	a.Verdict, a.Reason, a.Message = string(r.Verdict), string(r.Reason), shorten(r.Explain())
	a.Evidence, a.Threshold, a.DecidingMetric = figure(r.Evidence), figure(r.Threshold), r.DecidingMetric
	a.PromotionEvidence, a.PromotionThreshold, a.MinDetectableEffect = "", "", ""
	if r.PromotionThreshold > 0 {
		a.PromotionEvidence, a.PromotionThreshold = figure(r.PromotionEvidence), figure(r.PromotionThreshold)
	}
	if r.MinDetectableEffect > 0 && r.MinDetectableEffect < 1 {
		a.MinDetectableEffect = strconv.FormatFloat(100*r.MinDetectableEffect, 'g', 2, 64) + "pp"
	}
	if text, err := s.MarshalText(); err == nil {
		a.State = string(text)
	}
}

// evidenceSentence is what the analysis says, with the reason where measurements
// are missing.
func (p *pass) evidenceSentence(r judge.Result) string {
	s := r.Explain()
	if r.Verdict == judge.Inconclusive && p.DataProblem != "" {
		s += " (" + p.DataProblem + ")"
	}
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
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
