// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
)

// WhatIf is a recording, judged by its own settings and by others.
type WhatIf struct {
	// Summary says what would have gone otherwise.
	Summary string `json:"summary"`
	// Thresholds are the evidence that rolls back, by the recorded and by the tried settings.
	RecordedThreshold float64      `json:"recordedThreshold"`
	TriedThreshold    float64      `json:"triedThreshold"`
	Points            []Comparison `json:"points"`
	// Note says why the result is not exact, or "".
	Note string `json:"note,omitempty"`
}

// Comparison is a window of a release with what the judge says after it.
type Comparison struct {
	// At is the end of the window in Unix seconds.
	At       float64   `json:"at"`
	Recorded Judgement `json:"recorded"`
	Tried    Judgement `json:"tried"`
}

// Judgement is what the judge says after a window, and what the operator would do.
type Judgement struct {
	Evidence float64 `json:"evidence"`
	Verdict  string  `json:"verdict"`
	Action   string  `json:"action"`
}

// Try judges a stored recording again, as it was and with a change.
func Try(stored string, change replay.Change) (*WhatIf, error) {
	lines, err := recording.ReadText(stored)
	if err != nil {
		return nil, err
	}
	windows := replay.Windows(lines)
	changed, err := replay.Changed(windows, change)
	if err != nil {
		return nil, err
	}
	was, err := judged(windows)
	if err != nil {
		return nil, err
	}
	tried, err := judged(changed)
	if err != nil {
		return nil, err
	}
	out := &WhatIf{
		Summary: summary(ending(windows, was), ending(windows, tried)), Points: []Comparison{},
		RecordedThreshold: 1 / lines[0].Settings.Judge.MaxFalseRollback, TriedThreshold: 1 / changed[0].Line.Settings.Judge.MaxFalseRollback,
	}
	began := lines[0].Release.Began
	for i := range was {
		at := began.Add(time.Duration(was[i].T * float64(time.Second)))
		out.Points = append(out.Points, Comparison{At: float64(at.UnixMilli()) / 1000, Recorded: judgement(was[i]), Tried: judgement(tried[i])})
		if l := &lines[i]; l.Merged > 0 || l.Gap != "" || i > 0 && l.Resume != "" {
			out.Note = "Windows of this recording are missing or were merged. Times are only as exact as the windows are long, and evidence from before a gap is that of the recorded settings."
		}
	}
	return out, nil
}

func judged(windows []replay.Window) ([]replay.Result, error) {
	var out []replay.Result
	err := replay.Run(replay.DefaultPlan(), windows, func(r replay.Result) error {
		out = append(out, r)
		return nil
	})
	return out, err
}

func judgement(r replay.Result) Judgement {
	return Judgement{Evidence: r.Rollback, Verdict: string(r.Verdict), Action: string(r.Action)}
}

// end is how a judged recording ends.
type end struct {
	rolledBack bool
	// at is when it rolls back, in seconds since the release began, and failures how many
	// requests the canary had failed by then.
	at       float64
	failures int64
	// steps are when each step could end, by the index of the step.
	steps map[int]float64
}

// ending finds the first roll back, and when steps could end before it.
func ending(windows []replay.Window, results []replay.Result) end {
	e := end{steps: map[int]float64{}}
	for i, r := range results {
		w := &windows[i]
		if !w.Line.OnlyValues() {
			e.failures += w.Canary.Failures
		}
		switch r.Action {
		case policy.RollBack:
			e.rolledBack, e.at = true, r.T
			return e
		case policy.Step, policy.Promote:
			if _, found := e.steps[w.Step]; !found {
				e.steps[w.Step] = r.T
			}
		case policy.Hold: // the next window may decide
		}
	}
	return e
}

// summary says in sentences what the tried settings change.
func summary(was, tried end) string {
	switch {
	case was.rolledBack && !tried.rolledBack:
		return fmt.Sprintf("Serin would not have rolled back by the end of the recording. In the release, it did after %s, and %s.", length(was.at), failed(was.failures))
	case !was.rolledBack && tried.rolledBack:
		return fmt.Sprintf("Serin would have rolled back after %s, and %s. In the release, it did not.", length(tried.at), failed(tried.failures))
	case was.rolledBack && was.at != tried.at:
		how, by := "earlier", was.at-tried.at
		if by < 0 {
			how, by = "later", -by
		}
		return fmt.Sprintf("Serin would have rolled back %s %s, after %d instead of %d failed requests of the canary.", length(by), how, tried.failures, was.failures)
	case was.rolledBack:
		return "Serin would have rolled back at the same time."
	}
	return "Serin would not have rolled back either. " + stepSummary(was.steps, tried.steps)
}

// stepSummary says which step could have ended at another time.
func stepSummary(was, tried map[int]float64) string {
	for step := range max(last(was), last(tried)) + 1 {
		before, ended := was[step]
		now, ends := tried[step]
		switch {
		case ended && !ends:
			return fmt.Sprintf("Step %d could not have ended by the end of its recording.", step+1)
		case !ended && ends:
			return fmt.Sprintf("Step %d could have ended after %s.", step+1, length(now))
		case now < before:
			return fmt.Sprintf("Step %d could have ended %s earlier.", step+1, length(before-now))
		case now > before:
			return fmt.Sprintf("Step %d could have ended %s later.", step+1, length(now-before))
		}
	}
	return "Each step could have ended at the same time."
}

func last(steps map[int]float64) int {
	highest := -1
	for step := range steps {
		highest = max(highest, step)
	}
	return highest
}

func length(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func failed(n int64) string {
	if n == 1 {
		return "1 failed request of the canary"
	}
	return fmt.Sprintf("%d failed requests of the canary", n)
}
