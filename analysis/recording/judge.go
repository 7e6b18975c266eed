// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Position is how far a recording has been judged. The zero Position is before its first
// line.
type Position struct {
	// State of the judge.
	State judge.State
	// Inexact is whether the State may differ from the operator's, since windows were
	// merged or left out.
	Inexact bool

	began    time.Time
	stage    policy.Stage
	settings *Settings
	live     *float64
}

// Next judges a line as the operator did, by the settings of the recording. It returns
// what the operator has to have said, and the verdict with all that it rests on.
func (p *Position) Next(l *Line) (Judged, judge.Result, error) {
	if err := p.enter(l); err != nil {
		return Judged{}, judge.Result{}, err
	}
	p.Inexact = (p.Inexact || l.Merged > 0 || l.Gap != "") && l.Resume == ""
	r := p.absorb(l)
	at, action := l.at(), policy.Hold
	if at != nil {
		r = p.stage.Judge.Assess(p.State, after(p.began, *at))
		action = p.stage.React(p.progress(l, *at), r)
	}
	return Judged{
		At: at, Verdict: r.Verdict, Reason: r.Reason, Action: action,
		Rollback: Rounded(r.Evidence), Promote: Rounded(r.PromotionEvidence),
	}, r, nil
}

// enter does what happened between the line before and the window of this one.
func (p *Position) enter(l *Line) error {
	if l.Release != nil {
		p.began = l.Release.Began
	}
	if p.began.IsZero() {
		p.began = epoch
	}
	if l.Settings != nil && l.Settings != p.settings {
		stage, err := l.Settings.Stage()
		if err != nil {
			return err
		}
		p.settings, p.stage = l.Settings, stage
	}
	switch {
	case l.Resume != "":
		state, err := l.resumed()
		if err != nil {
			return err
		}
		p.State = state
	case l.Begun != nil:
		p.State = p.State.StartStep(after(p.began, *l.Begun))
	case l.Live != nil && (p.live == nil || *l.Live != *p.live):
		p.State = p.State.StartStep(after(p.began, *l.Live))
	}
	p.live = l.Live
	return nil
}

func (p *Position) absorb(l *Line) (r judge.Result) {
	if l.OnlyValues() {
		known := after(p.began, *l.T)
		for _, v := range l.values() {
			p.State = p.stage.Judge.Values(p.State, known, []analysis.Value{v})
		}
		return p.stage.Judge.Assess(p.State, known)
	}
	p.State, r = p.stage.Judge.Next(p.State, l.Window(p.began))
	return r
}

// progress is how far the release had come when the operator looked.
func (p *Position) progress(l *Line, at float64) policy.Progress {
	if l.Live == nil {
		return policy.Progress{Promoted: true} // there is no step that could end
	}
	return policy.Progress{
		Held: after(p.began, at).Sub(after(p.began, *l.Live)), Last: l.Last, Ended: l.Ended, Holdout: l.Holdout,
	}
}

func (l *Line) at() *float64 {
	if l.Judged == nil {
		return nil
	}
	return l.Judged.At
}

// Same reports whether both say the same, whenever that was.
func (j Judged) Same(as Judged) bool {
	j.At, as.At = nil, nil
	return j == as
}

// Rounded keeps nine digits, which are the same on every processor.
func Rounded(x float64) float64 {
	const digits = 9
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return x // as large as a float64 can be
	}
	return r
}
