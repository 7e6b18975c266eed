// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
)

// failing is what the operator records of a canary that fails one request in forty, when it
// would not roll back: forty windows of five seconds.
func failing(t *testing.T) []replay.Window {
	t.Helper()
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	recorder := recording.New(recording.Release{Rollout: "shop/website", Revision: "6d5f7c9b8d", Began: began})
	stage := policy.Stage{Hold: time.Hour, Judge: judge.Defaults()}
	state := judge.State{}.StartStep(began)
	for i := range 40 {
		start := began.Add(time.Duration(i) * 5 * time.Second)
		w := analysis.Window{
			Start: start, End: start.Add(5 * time.Second), Weight: 10,
			Canary: analysis.Variant{Requests: 40, Failures: 1}, Stable: analysis.Variant{Requests: 360},
		}
		before := state
		var r judge.Result
		state, r = stage.Judge.Next(state, w)
		recorder.Add(recording.Entry{
			Window: &w, Before: before, Stage: stage, Live: began, At: w.End, Result: r,
			Action: stage.React(policy.Progress{Held: w.End.Sub(began)}, r),
		})
	}
	return replay.Windows(recorder.Lines())
}

// rolledBackAt is the time of the first window after which a recording is rolled back; -1
// without one.
func rolledBackAt(t *testing.T, windows []replay.Window) float64 {
	t.Helper()
	at := -1.0
	err := replay.Run(replay.DefaultPlan(), windows, func(r replay.Result) error {
		if at < 0 && r.Action == policy.RollBack {
			at = r.T
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOtherSettingsDecideAtAnotherTime(t *testing.T) {
	recorded := failing(t)
	was := rolledBackAt(t, recorded)
	if was < 0 {
		t.Fatal("the recorded canary is not rolled back")
	}
	tried := func(list ...string) float64 {
		change, err := replay.ParseChange(list)
		if err != nil {
			t.Fatal(err)
		}
		windows, err := replay.Changed(recorded, change)
		if err != nil {
			t.Fatal(err)
		}
		return rolledBackAt(t, windows)
	}
	if at := tried("analysis.tolerance=50pp"); at >= 0 {
		t.Errorf("with a tolerance of 50 points it is rolled back after %v s", at)
	}
	if at := tried("analysis.maxFalseRollback=20%"); at < 0 || at >= was {
		t.Errorf("with more false rollbacks it is rolled back after %v s, as recorded after %v s", at, was)
	}
	if at := tried("hold=10s", "analysis.startup.for=0s"); at < 0 || at > was {
		t.Errorf("without a startup it is rolled back after %v s, as recorded after %v s", at, was)
	}
	if again := rolledBackAt(t, recorded); again != was {
		t.Errorf("a trial changed the recording: %v s, before %v s", again, was)
	}
}

func TestALimitTakesThePlaceOfTheRecordedOne(t *testing.T) {
	recorded := failing(t)
	for _, list := range [][]string{{"analysis.minSuccessRate=90%"}, {"analysis.minSuccessRate=90%"}, {"analysis.minSuccessRate=99%"}} {
		change, err := replay.ParseChange(list)
		if err == nil {
			recorded, err = replay.Changed(recorded, change)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	limits := recorded[0].Line.Settings.Judge.Limits
	if len(limits) != 1 || limits[0].Min != .99 {
		t.Errorf("limits %+v, want the last one", limits)
	}
}

func TestASettingThatCanNotBeTriedIsNamed(t *testing.T) {
	for setting, want := range map[string]string{
		"tolerance":                           `"tolerance" is not a setting`,
		"analysis.tolerance=":                 `is not a setting`,
		"analysis.tolerance=much":             "spec.analysis.tolerance",
		"analysis.tolerances=1pp":             `unknown field "analysis.tolerances"`,
		"analysis.startup=1m":                 "analysis.startup",
		"hold=long":                           "hold",
		"weight=5":                            `unknown field "weight"`,
		"analysis.metrics=[{name: p99}]":      "analysis.metrics",
		"analysis.args=[{name: a, value: b}]": "analysis.args",
		"analysis.minRequests=0":              "spec.analysis.minRequests",
		"analysis.maxLatency=[{max: a lot}]":  "spec.analysis.maxLatency[0].max",
	} {
		change, err := replay.ParseChange([]string{setting})
		if err == nil {
			_, err = replay.Changed(failing(t), change)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %s", setting, err, want)
		}
	}
	for _, list := range [][]string{{"hold=1m", "hold=2m"}, {"analysis.startup=1m", "analysis.startup.for=1m"}} {
		if _, err := replay.ParseChange(list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
}

func TestOnlyARecordingOfTheOperatorHasSettingsToChange(t *testing.T) {
	if _, err := replay.Changed(quiet(t, "0", "0"), replay.Change{Hold: "1m"}); err == nil {
		t.Error("windows without settings are changed")
	}
}
