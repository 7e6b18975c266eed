// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/config/golden"
)

// Each folder below testdata is a replay: windows.jsonl, perhaps rollout.yaml,
// and what comes out of it.
func TestReplays(t *testing.T) {
	recordings, err := filepath.Glob("testdata/*/windows.jsonl")
	if err != nil || len(recordings) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, recording := range recordings {
		folder := filepath.Dir(recording)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			plan := replay.DefaultPlan()
			if text, err := os.ReadFile(filepath.Join(folder, "rollout.yaml")); err == nil {
				if plan, err = replay.ReadPlan(bytes.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			if _, err := replay.Write(plan, windows(t, recording), &out); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join(folder, "out.jsonl"), out.String())
		})
	}
}

func windows(t *testing.T, name string) []replay.Window {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := replay.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const okLine = `{"t": 5, "seconds": 5, "weight": 20, "step": 0, "canary": {"requests": 10, "failures": 1}, "stable": {"requests": 40, "failures": 2}}`

func TestAMalformedLineIsAnErrorWithItsNumber(t *testing.T) {
	for name, tt := range map[string]struct{ line, want string }{
		"not JSON":         {`oops`, "line 2: invalid character"},
		"an empty line":    {``, "line 2: unexpected end"},
		"something behind": {okLine + ` {}`, "line 2: invalid character"},
		"an unknown field": {strings.Replace(okLine, `"step"`, `"stpe"`, 1), `line 2: unknown field "stpe"`},
		"an unknown field of an variant": {
			strings.Replace(okLine, `"failures": 1`, `"failures": 1, "errors": 1`, 1), `line 2: unknown field "canary.errors"`,
		},
		"a field twice":              {strings.Replace(okLine, `"t": 5`, `"t": 4, "t": 5`, 1), `line 2: duplicate field "t"`},
		"another case":               {strings.Replace(okLine, `"t"`, `"T"`, 1), `line 2: unknown field "T"`},
		"no time":                    {strings.Replace(okLine, `"t": 5, `, ``, 1), "line 2: t: missing"},
		"a time out of range":        {strings.Replace(okLine, `"t": 5`, `"t": 1e99`, 1), "line 2: t: missing or more than"},
		"no length":                  {strings.Replace(okLine, `"seconds": 5, `, ``, 1), "line 2: seconds: missing"},
		"a length of zero":           {strings.Replace(okLine, `"seconds": 5`, `"seconds": 0`, 1), "line 2: seconds: missing, not above 0"},
		"a length below nanoseconds": {strings.Replace(okLine, `"seconds": 5`, `"seconds": 1e-12`, 1), "line 2: end: not after start"},
		"no weight":                  {strings.Replace(okLine, `"weight": 20, `, ``, 1), "line 2: weight: missing"},
		"a weight above 100":         {strings.Replace(okLine, `"weight": 20`, `"weight": 101`, 1), "line 2: weight: 101"},
		"a broken weight":            {strings.Replace(okLine, `"weight": 20`, `"weight": 2.5`, 1), "line 2: json: cannot unmarshal"},
		"a negative step":            {strings.Replace(okLine, `"step": 0`, `"step": -1`, 1), "line 2: step: -1"},
		"no canary":                  {`{"t": 5, "seconds": 5, "weight": 20, "stable": {"requests": 1, "failures": 0}}`, "line 2: canary: missing"},
		"no requests":                {strings.Replace(okLine, `"requests": 40, `, ``, 1), "line 2: stable.requests: missing"},
		"no failures":                {strings.Replace(okLine, `, "failures": 2`, ``, 1), "line 2: stable.failures: missing"},
		"more failures than requests": {
			strings.Replace(okLine, `"failures": 1`, `"failures": 11`, 1), "line 2: canary.failures: 11 is more than the 10 requests",
		},
		"a negative count": {strings.Replace(okLine, `"requests": 10`, `"requests": -10`, 1), "line 2: canary.requests: -10"},
		"a count that descends": {
			strings.Replace(okLine, `"failures": 1`, `"failures": 1, "latency": {"le": [1, 2], "counts": [9, 8]}`, 1), "line 2: canary.latency.counts[1]",
		},
		"null": {`null`, "line 2: t: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replay.Read(strings.NewReader(okLine + "\n" + tt.line + "\n" + okLine + "\n"))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestNoWindowIsAnError(t *testing.T) {
	if _, err := replay.Read(strings.NewReader("")); err == nil {
		t.Error("no error")
	}
	if _, err := replay.Read(strings.NewReader(strings.Repeat("x", replay.MaxLine+1))); err == nil || !strings.HasPrefix(err.Error(), "line 1: longer than") {
		t.Errorf("error %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := replay.Read(brokenReader{broken}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestAStepThatIsLeftOutIsToldByTheWeight(t *testing.T) {
	line := func(weight string) string {
		return strings.Replace(strings.Replace(okLine, `"step": 0, `, "", 1), `"weight": 20`, `"weight": `+weight, 1) + "\n"
	}
	got, err := replay.Read(strings.NewReader(line("5") + line("5") + line("10") + line("50") + line("50")))
	if err != nil {
		t.Fatal(err)
	}
	var steps []int
	for _, w := range got {
		steps = append(steps, w.Step)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 2}, steps); diff != "" {
		t.Error(diff)
	}
}

func TestTheTimesOfAWindowAreExact(t *testing.T) {
	var text strings.Builder
	for _, end := range []string{"0.1", "0.2", "0.3", "0.4", "1000000.1"} {
		text.WriteString(strings.NewReplacer(`"t": 5`, `"t": `+end, `"seconds": 5`, `"seconds": 0.1`).Replace(okLine) + "\n")
	}
	got, err := replay.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if !got[i].End.Equal(got[i+1].Start) {
			t.Errorf("window %d ends at %v and the next begins at %v", i, got[i].End, got[i+1].Start)
		}
	}
}

// The replay is the judge: the same windows give the same figures.
func TestTheFiguresAreThoseOfTheJudge(t *testing.T) {
	recorded := windows(t, "testdata/bad-canary/windows.jsonl")
	var state judge.State
	step := -1
	i := 0
	err := replay.Run(replay.DefaultPlan(), recorded, func(got replay.Result) error {
		if recorded[i].Step != step {
			step = recorded[i].Step
			state = state.StartStep(recorded[i].Start)
		}
		var want judge.Result
		state, want = judge.Defaults().Next(state, recorded[i].Window)
		if differ(got.Rollback, want.Evidence) || differ(got.Promote, want.PromotionEvidence) || got.Verdict != want.Verdict || got.T != recorded[i].T {
			t.Errorf("window %d: %+v, want %+v", i, got, want)
		}
		i++
		return nil
	})
	if err != nil || i != len(recorded) {
		t.Errorf("%d of %d windows: %v", i, len(recorded), err)
	}
}

func differ(got, want float64) bool { return math.Abs(got-want) > 1e-8*math.Abs(want) }

func TestAWindowThatOverlapsIsReportedAndNotUsed(t *testing.T) {
	w, err := replay.Read(strings.NewReader(okLine + "\n" + okLine + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []replay.Result
	err = replay.Run(replay.DefaultPlan(), w, func(r replay.Result) error {
		got = append(got, r)
		return nil
	})
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[1].Reason, string(judge.ReasonOutOfOrder)) || got[1].Verdict != judge.Inconclusive {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnErrorOfTheOutputStopsTheReplay(t *testing.T) {
	full := errors.New("the disk is full")
	w := windows(t, "testdata/bad-canary/windows.jsonl")
	calls := 0
	err := replay.Run(replay.DefaultPlan(), w, func(replay.Result) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(okLine))
	f.Add([]byte(okLine + "\n" + strings.Replace(okLine, `"t": 5`, `"t": 10`, 1)))
	f.Add([]byte(`{"t": 5, "seconds": 1e-9, "weight": 100, "canary": {"requests": 9007199254740992, "failures": 0}, "stable": {"requests": 0, "failures": 0}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		recorded, err := replay.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := replay.Write(replay.DefaultPlan(), recorded, &out); err != nil {
			t.Fatalf("what can be read can't be judged: %v", err)
		}
		lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
		written := 0
		for _, w := range recorded {
			if !w.Line.OnlyValues() || recorded[0].Line.Settings != nil {
				written++
			}
		}
		if len(bytes.TrimSpace(out.Bytes())) == 0 && written == 0 {
			return
		}
		if len(lines) != written {
			t.Fatalf("%d lines for %d windows", len(lines), len(recorded))
		}
		for _, l := range lines {
			var r replay.Result
			if err := json.Unmarshal(l, &r); err != nil {
				t.Fatalf("%v: %s", err, l)
			}
			if math.IsNaN(r.Rollback) || r.Rollback < 0 || r.Promote < 0 || r.Verdict == judge.Fail && recorded[0].Line.Settings == nil && r.Action != policy.RollBack {
				t.Fatalf("impossible: %s", l)
			}
		}
	})
}
