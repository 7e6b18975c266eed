// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
)

// recordedAs is a release of so many windows, interrupted before the nth by a restart that
// lost twelve of them.
func recordedAs(t *testing.T, revision string, began time.Time, windows, interrupted int) recordedRelease {
	t.Helper()
	of := recording.Release{Rollout: "shop/website", Revision: revision, Began: began}
	r := recording.New(of)
	var state judge.State
	end := began
	for i := range windows {
		if i == interrupted {
			end = end.Add(time.Minute)
			r = recording.Continue(of, r.Lines())
		}
		w := analysis.Window{Start: end, End: end.Add(5 * time.Second), Weight: 10, Canary: analysis.Variant{Requests: 10}, Stable: analysis.Variant{Requests: 90}}
		before := state
		var result judge.Result
		state, result = judge.Defaults().Next(state, w)
		end = w.End
		r.Add(recording.Entry{Window: &w, Before: before, Stage: policy.Stage{Judge: judge.Defaults()}, At: end, Result: result, Action: policy.Hold})
	}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return recordedRelease{revision, began, text}
}

// printed is what a command prints.
func printed(run func(*cobra.Command) error) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = run(cmd)
	return stdout.String(), stderr.String(), err
}

func TestARecordingIsPrintedAsAReplayReadsIt(t *testing.T) {
	began := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	releases := []recordedRelease{recordedAs(t, "v3", began.Add(time.Hour), 5, -1), recordedAs(t, "v2", began, 7, 4), {"v1", began, "oops"}}
	for revision, want := range map[string]struct {
		windows int
		notes   string
	}{
		"":   {5, ""},
		"v2": {7, "note: line 5: Serin restarted: windows of the 60 seconds before are missing\n"},
	} {
		out, errs, err := printed(func(cmd *cobra.Command) error { return printRecording(cmd, releases, revision) })
		if err != nil || errs != want.notes {
			t.Errorf("%q: error %v, notes %q", revision, err, errs)
		}
		windows, err := replay.Read(strings.NewReader(out))
		if err != nil || len(windows) != want.windows {
			t.Fatalf("%q: %d windows, %v", revision, len(windows), err)
		}
		if differ, err := replay.Write(replay.DefaultPlan(), windows, new(bytes.Buffer)); err != nil || differ != 0 {
			t.Errorf("%q: %d differ, %v", revision, differ, err)
		}
	}
	for revision, want := range map[string]string{"v1": "revision v1: the recording can't be unpacked", "v9": `no release of revision "v9" is recorded`} {
		if _, _, err := printed(func(cmd *cobra.Command) error { return printRecording(cmd, releases, revision) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", revision, err)
		}
	}
}

func TestRecordingsAreListed(t *testing.T) {
	began := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	releases := []recordedRelease{recordedAs(t, "v3", began, 900, -1), {"v1", began, "oops"}}
	out, _, err := printed(func(cmd *cobra.Command) error { return listRecordings(cmd, releases) })
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, row := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		got = append(got, strings.Fields(row))
	}
	want := [][]string{
		{"v3", "2030-01-02T12:00:00Z", "2030-01-02T13:15:00Z", "900"},
		{"v1", "2030-01-02T12:00:00Z", "<none>", "unreadable"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, out)
	}
	_, errs, err := printed(func(cmd *cobra.Command) error { return printRecording(cmd, releases, "v3") })
	if err != nil || !strings.Contains(errs, "are each the sum of several windows") {
		t.Errorf("error %v, notes %q", err, errs)
	}
}
