// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
)

// Result is what the judge said after one window.
type Result struct {
	// T is the end of the window, as it was given.
	T float64 `json:"t"`
	// Rollback is the evidence that the canary is worse, and Promote the evidence
	// of this step that it is not worse by the tolerance; both to nine digits,
	// which are the same on every processor.
	Rollback float64 `json:"rollback"`
	Promote  float64 `json:"promote"`
	// Verdict and Action are what the judge says, and what the operator would do.
	Verdict judge.Verdict `json:"verdict"`
	Action  policy.Action `json:"action"`
	// Reason is the reason of the verdict and a sentence about it.
	Reason string `json:"reason"`
	// Differs is whether the operator judged otherwise, where the line says what it did
	// and no line before it is the sum of several.
	Differs bool `json:"-"`
}

// Run judges all windows, and hands over a result after each. It stops at the
// first error of emit, and at a window in a step that the plan does not have.
func Run(plan Plan, windows []Window, emit func(Result) error) error {
	next := newRun(plan, windows).next
	if plan.recorded && len(windows) > 0 && windows[0].Line.Settings != nil {
		next = new(again).next
	}
	for i, w := range windows {
		result, err := next(w)
		if err == nil && result != nil {
			err = emit(*result)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// again judges a recording by its own settings.
type again struct{ recording.Position }

func (a *again) next(w Window) (*Result, error) {
	got, verdict, err := a.Next(&w.Line)
	if err != nil {
		return nil, err
	}
	said := w.Line.Judged
	return &Result{
		T: w.T, Rollback: got.Rollback, Promote: got.Promote, Verdict: got.Verdict, Action: got.Action, Reason: sentence(verdict),
		Differs: said != nil && !a.Inexact && !said.Same(got),
	}, nil
}

func sentence(r judge.Result) string { return string(r.Reason) + ": " + r.Explain() }

// Write runs the judge and writes one line of JSON for each window. It returns how many of
// them the operator judged otherwise.
func Write(plan Plan, windows []Window, out io.Writer) (differ int, err error) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	err = Run(plan, windows, func(r Result) error {
		if r.Differs {
			differ++
		}
		return encoder.Encode(r)
	})
	return differ, err
}

// run is a replay in progress.
type run struct {
	plan     Plan
	last     int // the last step of the recording
	step     int
	began    float64 // when the step did, in seconds
	state    judge.State
	promoted bool
}

func newRun(plan Plan, windows []Window) *run {
	r := &run{plan: plan, step: -1}
	for _, w := range windows {
		r.last = max(r.last, w.Step)
	}
	return r
}

// next judges a window by the plan; nil for a line without any.
func (r *run) next(w Window) (*Result, error) {
	if w.Line.OnlyValues() {
		return nil, nil
	}
	stage, last, err := r.plan.stage(w.Step, r.last)
	if err != nil {
		return nil, err
	}
	if w.Step != r.step {
		r.step, r.began = w.Step, w.T-w.End.Sub(w.Start).Seconds()
		r.state = r.state.StartStep(w.Start)
	}
	var verdict judge.Result
	r.state, verdict = stage.Judge.Next(r.state, w.Window)
	action := stage.React(policy.Progress{Held: at(w.T).Sub(at(r.began)), Last: last, Promoted: r.promoted}, verdict)
	if action == policy.Promote && len(r.plan.stages) == 0 && !verdict.MayPromote {
		action = policy.Step // without a plan it is unknown when the last step is over
	}
	r.promoted = r.promoted || action == policy.Promote
	return &Result{
		T: w.T, Rollback: recording.Rounded(verdict.Evidence), Promote: recording.Rounded(verdict.PromotionEvidence),
		Verdict: verdict.Verdict, Action: action, Reason: sentence(verdict),
	}, nil
}
