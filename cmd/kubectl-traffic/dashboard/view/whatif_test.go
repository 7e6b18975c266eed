// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// recorded is a release of two steps, each of fifteen windows of five seconds, in each of which the
// canary answered forty requests and failed so many. A step is held for a minute.
func recorded(t *testing.T, failures int64) string {
	t.Helper()
	r := recording.New(recording.Release{Rollout: "shop/website", Revision: "canary2", Began: begun})
	stage := policy.Stage{Hold: time.Minute, Judge: judge.Defaults(), OnInconclusive: policy.Inconclusive("Hold")}
	state := judge.State{}
	live := begun
	for i := range 30 {
		start := begun.Add(time.Duration(i) * 5 * time.Second)
		if i%15 == 0 {
			live = start
			state = state.StartStep(live)
		}
		w := analysis.Window{
			Start: start, End: start.Add(5 * time.Second), Weight: 10,
			Canary: analysis.Variant{Requests: 40, Failures: failures}, Stable: analysis.Variant{Requests: 360},
		}
		before := state
		var result judge.Result
		state, result = stage.Judge.Next(state, w)
		r.Add(recording.Entry{
			Window: &w, Before: before, Stage: stage, Step: i / 15, Live: live, At: w.End, Result: result,
			Action: stage.React(policy.Progress{Held: w.End.Sub(live)}, result),
		})
	}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func change(t *testing.T, list ...string) replay.Change {
	t.Helper()
	c, err := replay.ParseChange(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatIfSaysWhatWouldHaveGoneOtherwise(t *testing.T) {
	good, bad := recorded(t, 0), recorded(t, 1)
	for _, tt := range []struct{ name, stored, setting, want string }{
		{"the same settings", bad, "analysis.tolerance=0.5pp", "Serin would have rolled back at the same time."},
		{"less certainty", bad, "analysis.maxFalseRollback=20%", "Serin would have rolled back 10s earlier, after 5 instead of 7 failed requests of the canary."},
		{"more certainty", bad, "analysis.maxFalseRollback=0.01%", "later, after"},
		{"a wide tolerance", bad, "analysis.tolerance=50pp", "Serin would not have rolled back by the end of the recording. In the release, it did after"},
		{"a good canary as it was", good, "hold=1m", "Serin would not have rolled back either. Each step could have ended at the same time."},
		{"a shorter hold", good, "hold=30s", "Serin would not have rolled back either. Step 1 could have ended 30s earlier."},
		{"a longer hold", good, "hold=70s", "Step 1 could have ended 10s later."},
		{"a hold that is longer than the step was", good, "hold=1h", "Step 1 could not have ended by the end of its recording."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := view.Try(tt.stored, change(t, tt.setting))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.Summary, tt.want) {
				t.Errorf("summary %q, want %q", got.Summary, tt.want)
			}
			if len(got.Points) != 30 || got.Note != "" {
				t.Errorf("%d points, note %q", len(got.Points), got.Note)
			}
		})
	}
}

func TestWhatIfOfACanaryThatOnlyOtherSettingsRollBack(t *testing.T) {
	tolerant := recorded(t, 1)
	lines, err := recording.ReadText(tolerant)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		if s := lines[i].Settings; s != nil {
			s.Judge.Tolerance, s.Judge.MaxFalseRollback = .5, 1e-6
		}
	}
	var text bytes.Buffer
	for _, l := range lines {
		if err := json.NewEncoder(&text).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	got, err := view.Try(packed(t, text.String()), change(t, "analysis.tolerance=0.5pp", "analysis.maxFalseRollback=5%"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Summary, "Serin would have rolled back after ") || got.TriedThreshold != 20 {
		t.Errorf("summary %q, threshold %v", got.Summary, got.TriedThreshold)
	}
}

// tried has each setting that can be tried.
var tried = []string{
	"analysis.tolerance=5pp", "analysis.maxFalseRollback=10%", "analysis.maxBadPromotion=1%", "analysis.minEvidence=1m",
	"analysis.minRequests=500", "analysis.startup={for: 1m, tolerate: 50pp}", "analysis.onInconclusive=RollBack", "analysis.onConclusive=Promote",
	"analysis.minSuccessRate=99.9%", "analysis.maxLatency=[{quantile: p99, max: 100ms}]", "analysis.consecutiveFailureLimit=1",
	"analysis.maxCorrelatedFailures=10", "hold=10s",
}

func TestEachSettingIsTried(t *testing.T) {
	for field := range reflect.TypeFor[v1alpha1.Analysis]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		measured := name == "metrics" || name == "templateRefs" || name == "args" // a recording has what was measured by them
		if !measured && !slices.ContainsFunc(tried, func(setting string) bool { return strings.HasPrefix(setting, "analysis."+name+"=") }) {
			t.Errorf("whether the page and the command agree about analysis.%s is not tried", name)
		}
	}
}

// TestWhatIfAndReplayAgree: the page says of a recording and of each setting what the command says
// of the file that rollout record prints.
func TestWhatIfAndReplayAgree(t *testing.T) {
	for _, stored := range []string{recorded(t, 0), recorded(t, 1)} {
		lines, err := recording.ReadText(stored)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		for _, l := range lines {
			if err := json.NewEncoder(&file).Encode(l); err != nil {
				t.Fatal(err)
			}
		}
		for _, setting := range tried {
			windows, err := replay.Read(bytes.NewReader(file.Bytes()))
			if err == nil {
				windows, err = replay.Changed(windows, change(t, setting))
			}
			var command []view.Judgement
			if err == nil {
				err = replay.Run(replay.DefaultPlan(), windows, func(r replay.Result) error {
					command = append(command, view.Judgement{Evidence: r.Rollback, Verdict: string(r.Verdict), Action: string(r.Action)})
					return nil
				})
			}
			if err != nil {
				t.Fatal(setting, err)
			}
			page, err := view.Try(stored, change(t, setting))
			if err != nil {
				t.Fatal(setting, err)
			}
			if len(page.Points) == 0 || len(page.Points) != len(command) {
				t.Fatalf("%s: the page judges %d windows, the command %d", setting, len(page.Points), len(command))
			}
			for i, p := range page.Points {
				if p.Tried != command[i] {
					t.Errorf("%s, window %d: the page says %+v, the command %+v", setting, i, p.Tried, command[i])
				}
			}
		}
	}
}
