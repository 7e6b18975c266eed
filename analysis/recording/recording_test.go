// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
)

var began = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

var release = recording.Release{Rollout: "shop/website", Revision: "6d5f7c9b8d", Began: began}

// operator judges windows as the engine does, and records them.
type operator struct {
	*recording.Recorder
	random *rand.Rand
	now    time.Time
	state  judge.State
	stage  policy.Stage
	step   int
	live   time.Time
}

func newOperator() *operator {
	return &operator{
		Recorder: recording.New(release), random: rand.New(rand.NewPCG(1, 2)), now: began, live: began,
		stage: policy.Stage{Hold: time.Hour, Judge: judge.Defaults()}, state: judge.State{}.StartStep(began),
	}
}

// enter begins another step, which is live at once.
func (o *operator) enter() {
	o.step, o.live = (o.step+1)%100, o.now
	o.state = o.state.StartStep(o.now)
}

// judge measures so many windows of five seconds, and judges them.
func (o *operator) judge(windows int) {
	for range windows {
		w := o.window()
		before := o.state
		o.state, _ = o.stage.Judge.Next(o.state, w)
		at := o.now.Add(3_141_592 * time.Nanosecond)
		r := o.stage.Judge.Assess(o.state, at)
		o.Add(recording.Entry{
			Window: &w, Before: before, Stage: o.stage, Step: o.step, Live: o.live, At: at, Result: r,
			Action: o.stage.React(policy.Progress{Held: at.Sub(o.live)}, r),
		})
	}
}

func (o *operator) window() analysis.Window {
	start := o.now
	o.now = o.now.Add(5*time.Second + time.Duration(o.random.IntN(9000))*time.Microsecond)
	w := analysis.Window{Start: start, End: o.now, Weight: int32(10 + o.step%90), Canary: o.variant(50), Stable: o.variant(450)}
	w.Proxies = analysis.Variant{Requests: w.Canary.Requests + w.Stable.Requests}
	if o.now.UnixMicro()%5 == 0 { // too many, and not for long
		w.Proxies.Requests, w.Proxies.Failures = w.Proxies.Requests+20, 20
	}
	return w
}

// variant is what a version answers that fails one request in a hundred.
func (o *operator) variant(usual int) analysis.Variant {
	a := analysis.Variant{Requests: int64(usual + o.random.IntN(usual/3)), Spread: analysis.Spread{Proxies: 2}}
	h := &analysis.Histogram{LE: []float64{
		.001, .002, .003, .005, .0075, .01, .015, .025, .05, .075, .1, .15, .25, .5, .75, 1, 2.5, 5, 10, 30, 60,
	}}
	h.Counts = make([]int64, len(h.LE)+1)
	var within int64
	for i := range h.LE {
		usually := math.Erfc(-(math.Log(h.LE[i])+3)/.8/math.Sqrt2) / 2
		within = min(a.Requests, max(within, int64(usually*float64(a.Requests)+2*o.random.NormFloat64())))
		h.Counts[i] = within
	}
	h.Counts[len(h.LE)] = a.Requests
	for range a.Requests {
		a.Failures += int64(o.random.IntN(100) / 99)
	}
	a.Latency, a.Spread.Squares = h, float64(a.Failures*a.Failures)/float64(a.Requests)
	return a
}

func text(t *testing.T, r *recording.Recorder) string {
	t.Helper()
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t *testing.T, text string) []recording.Line {
	t.Helper()
	lines, err := recording.ReadText(text)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// again judges lines again. It returns how many are exact, of which none may differ, and the
// state at the end.
func again(t *testing.T, lines []recording.Line) (exact int, end judge.State) {
	t.Helper()
	var p recording.Position
	for i := range lines {
		got, _, err := p.Next(&lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if p.Inexact {
			continue
		}
		exact++
		if diff := cmp.Diff(*lines[i].Judged, got); diff != "" {
			t.Fatalf("line %d (-recorded +again):\n%s", i+1, diff)
		}
	}
	return exact, p.State
}

func TestARecordingIsJudgedAgainAsItWas(t *testing.T) {
	o := newOperator()
	o.judge(30)
	o.enter()
	o.stage.Judge.MinRequests, o.stage.Early = 77, true
	o.judge(30)
	stored := text(t, o.Recorder)
	lines := read(t, stored)
	if exact, end := again(t, lines); exact != 60 || end != o.state {
		t.Errorf("%d of 60 lines are exact, the state is the same: %v", exact, end == o.state)
	}
	if each := len(stored) / 60; each > 170 {
		t.Errorf("a window takes %d bytes of text, which is %d compressed", each, each*3/4)
	}
	settings := 0
	for _, l := range lines {
		if l.Settings != nil {
			settings++
		}
		if l.Resume != "" || l.Begun != nil {
			t.Error("a state is stored that follows from the lines")
		}
	}
	if settings != 2 {
		t.Errorf("the settings are there %d times; they changed once", settings)
	}
}

func TestALongReleaseIsThinnedFromItsBeginning(t *testing.T) {
	o := newOperator()
	o.judge(2000)
	stored := text(t, o.Recorder)
	lines := read(t, stored)
	exact, end := again(t, lines)
	if len(stored) > recording.MaxText || exact < 150 || end != o.state {
		t.Errorf("%d bytes, %d lines, %d of them exact, the state is the same: %v", len(stored), len(lines), exact, end == o.state)
	}
	windows, last := 0, 1<<30
	for i, l := range lines {
		n := max(l.Merged, 1)
		if windows += n; n > last {
			t.Errorf("line %d is the sum of %d windows, and the older one before it of %d", i+1, n, last)
		}
		last = n
	}
	if windows != 2000 {
		t.Errorf("the lines have %d of 2000 windows", windows)
	}
	o.judge(10)
	if exact, end = again(t, read(t, text(t, o.Recorder))); end != o.state {
		t.Errorf("after ten windows more the state is another one (%d exact)", exact)
	}
}

func TestWindowsOfDifferentStepsAreNotMerged(t *testing.T) {
	o := newOperator()
	for i := range 900 {
		o.judge(1)
		step := o.step
		if o.enter(); i%2 == 0 {
			o.step = step // the weight of the same step is live again
		}
	}
	lines := read(t, text(t, o.Recorder))
	exact, end := again(t, lines)
	if len(lines) > 768 || exact < 100 || end != o.state {
		t.Errorf("%d lines, %d of them exact, the state is the same: %v", len(lines), exact, end == o.state)
	}
	for i, l := range lines {
		if l.Merged > 0 || (l.Gap == recording.GapLeftOut) != (i == 0) {
			t.Fatalf("line %d: the sum of %d, gap %q", i+1, l.Merged, l.Gap)
		}
	}
}

func TestWhatFollowsARestartSaysSo(t *testing.T) {
	for _, lost := range []int{7, 0} {
		checkRestart(t, lost)
	}
}

func checkRestart(t *testing.T, lost int) {
	t.Helper()
	o := newOperator()
	o.judge(20)
	stored := text(t, o.Recorder)
	o.judge(lost)
	o.Recorder = recording.Continue(release, read(t, stored))
	o.judge(20)
	lines := read(t, text(t, o.Recorder))
	if exact, end := again(t, lines); exact != 40 || end != o.state {
		t.Fatalf("%d of 40 lines are exact, the state is the same: %v", exact, end == o.state)
	}
	for i, l := range lines {
		if (l.Gap == recording.GapRestarted) != (i == 20) || (l.Resume != "") != (i == 20) {
			t.Errorf("line %d: gap %q, resume %q", i+1, l.Gap, l.Resume)
		}
	}
}

// The first line after a restart may be judged anew before it is on record: the gap before it
// stays.
func TestALineThatIsWrittenAnewKeepsItsGap(t *testing.T) {
	o := newOperator()
	o.judge(3)
	o.Recorder = recording.Continue(release, nil)
	w := o.window()
	entry := recording.Entry{Window: &w, Before: o.state, Stage: o.stage, Live: o.live, At: o.now}
	o.Add(entry)
	entry.Stage.Judge.MinRequests = 7
	if !o.Add(entry) {
		t.Fatal("it is not written anew")
	}
	if l := o.Lines()[0]; l.Gap != recording.GapRestarted || l.Resume == "" {
		t.Errorf("gap %q, resume %q", l.Gap, l.Resume)
	}
}

func TestWhatIsOfAnotherReleaseIsNotContinued(t *testing.T) {
	o := newOperator()
	o.judge(20)
	other := release
	other.Began = began.Add(time.Second)
	o.Recorder = recording.Continue(other, read(t, text(t, o.Recorder)))
	o.judge(1)
	if lines := o.Lines(); len(lines) != 1 || lines[0].Gap != recording.GapRestarted || *lines[0].Release != other {
		t.Errorf("%d lines, the first %+v", len(lines), lines[0])
	}
}

func TestAWindowThatIsJudgedAgainIsThereOnce(t *testing.T) {
	o := newOperator()
	o.judge(3)
	before, now := o.state, o.now
	w := o.window()
	entry := recording.Entry{Window: &w, Before: before, Stage: o.stage, Live: o.live, At: o.now, Result: judge.Result{Reason: "First"}}
	if !o.Add(entry) || o.Add(entry) {
		t.Error("it is not recorded once")
	}
	// A user changes the settings before it is on record: what it is judged by then counts.
	o.stage.Judge.MinRequests = 7
	entry.Stage, entry.Result.Reason = o.stage, "Second"
	if !o.Add(entry) {
		t.Error("it is not recorded as it was judged in the end")
	}
	lines := o.Lines()
	if got := lines[len(lines)-1].Judged.Reason; len(lines) != 4 || got != "Second" {
		t.Errorf("%d lines, the last is judged %s", len(lines), got)
	}
	o.state, o.now = before, now
	if _, end := again(t, lines[:3]); end != before {
		t.Error("the lines before it lead to another state")
	}
}

func TestMetricsOfUsersAreRecorded(t *testing.T) {
	o := newOperator()
	o.stage.Judge.Limits = []judge.Limit{
		{Metric: judge.Value, Name: "queue", Low: math.Inf(-1), High: 5, StaleAfter: time.Minute, MinSamples: 1, ConsecutiveFailureLimit: 2},
		judge.MinSuccessRate(.9), judge.MaxLatency(.99, time.Second),
	}
	o.stage.Judge.Comparisons = []judge.Comparison{{Name: "orders", Weight: 1, Tolerance: .01}}
	w := o.window()
	queue := 3.0
	w.Values = []analysis.Value{{Name: "queue", Value: &queue}, {Name: "none"}, {Name: "nan", Value: new(math.NaN())}}
	w.Samples = []analysis.Sample{{Name: "orders", Start: began, Canary: o.variant(20), Stable: o.variant(20)}}
	before := o.state
	o.state, _ = o.stage.Judge.Next(o.state, w)
	o.Add(recording.Entry{Window: &w, Before: before, Stage: o.stage, Live: o.live, Result: o.stage.Judge.Assess(o.state, w.End), Action: policy.Hold})
	high := 7.5
	for i := range 2 {
		at := o.now.Add(time.Duration(i+1) * time.Minute)
		values := []analysis.Value{{Name: "queue", Value: &high}}
		before = o.state
		o.state = o.stage.Judge.Values(o.state, at, values)
		r := o.stage.Judge.Assess(o.state, at)
		o.Add(recording.Entry{Known: at, Values: values, Before: before, Stage: o.stage, Live: o.live, At: at, Result: r, Action: o.stage.React(policy.Progress{}, r)})
	}
	lines := read(t, text(t, o.Recorder))
	if exact, end := again(t, lines); exact != 3 || end != o.state {
		t.Errorf("%d of 3 lines are exact, the state is the same: %v", exact, end == o.state)
	}
	if got := lines[2].Judged; got.Verdict != judge.Fail || got.Action != policy.RollBack {
		t.Errorf("the limit is missed twice: %+v", *got)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	const line = `{"release":{"rollout":"a/b","revision":"c","began":"2026-11-24T12:00:00Z"},"settings":{"hold":0,"judge":` +
		`{"maxFalseRollback":0.01,"tolerance":0.005,"usualFailureRate":0.001,"minRequests":50,"staleAfter":20,"startup":{"for":15,"tolerate":0.25}}},` +
		`"t":5,"seconds":5,"weight":1,"step":0,"canary":{"requests":1,"failures":0},"stable":{"requests":1,"failures":0}}` + "\n"
	if got := read(t, pack(line)); len(got) != 1 {
		t.Fatalf("%d lines", len(got))
	}
	for name, tt := range map[string]struct{ text, want string }{
		"too long":                 {strings.Repeat("A", recording.MaxText+1), "at most 65536 are possible"},
		"no base64":                {"*", "not base64"},
		"not compressed":           {base64.StdEncoding.EncodeToString([]byte(line)), "can't be unpacked"},
		"cut off":                  {pack(line)[:40], "can't be unpacked"},
		"a bomb":                   {pack(strings.Repeat(" ", 5<<20)), "unpacks to more than"},
		"no line":                  {pack(""), "does not begin with its release"},
		"too many lines":           {pack(line + strings.Repeat(`{"t":6,"step":0,"values":[{"name":"a","value":1}]}`+"\n", 4096)), "more than 4096 lines"},
		"no JSON":                  {pack("oops"), "line 1 of the recording"},
		"no release":               {pack(strings.Replace(line, `"release":{"rollout":"a/b","revision":"c","began":"2026-11-24T12:00:00Z"},`, "", 1)), "does not begin with its release"},
		"another release":          {pack(line + line), "line 2 of the recording"},
		"not in order":             {pack(line + `{"t":4,"step":0,"values":[{"name":"a","value":1}]}`), "line 2 of the recording is not after"},
		"no step":                  {pack(strings.Replace(line, `"step":0,`, "", 1)), "has no step"},
		"a release of no time":     {pack(strings.Replace(line, "2026-11-24", "0001-01-01", 1)), "release.began"},
		"settings that can't be":   {pack(strings.Replace(line, `"tolerance":0.005`, `"tolerance":5`, 1)), "settings.judge.tolerance"},
		"a hold that can't be":     {pack(strings.Replace(line, `"hold":0`, `"hold":-1`, 1)), "settings.hold"},
		"a state that can't be":    {pack(strings.Replace(line, `"t":5`, `"t":5,"resume":"x"`, 1)), "resume: analysis state"},
		"a time out of range":      {pack(strings.Replace(line, `"t":5`, `"t":5,"live":1e99`, 1)), "live: more than"},
		"a look out of range":      {pack(strings.Replace(line, `"t":5`, `"t":5,"judged":{"at":1e99,"verdict":"Pass","reason":"x","action":"Hold","rollback":1,"promote":1}`, 1)), "judged.at"},
		"merged from a negative":   {pack(strings.Replace(line, `"t":5`, `"t":5,"merged":-1`, 1)), "merged: -1"},
		"proxies of nothing":       {pack(strings.Replace(line, `"t":5`, `"t":5,"proxies":{"requests":1}`, 1)), "proxies.failures: missing"},
		"a sample of nothing":      {pack(strings.Replace(line, `"t":5`, `"t":5,"samples":[{"name":"a"}]`, 1)), "samples[0].canary: missing"},
		"a sample of another time": {pack(strings.Replace(line, `"t":5`, `"t":5,"samples":[{"name":"a","start":1e99}]`, 1)), "samples[0].start"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := recording.ReadText(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func pack(plain string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	fmt.Fprint(w, plain)
	_ = w.Close() // a buffer takes all
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestAKeyNamesTheRelease(t *testing.T) {
	key := recording.Key("6d5f.7c", began)
	revision, at, ok := recording.ParseKey(key)
	if key != "6d5f.7c.1795521600" || revision != "6d5f.7c" || !at.Equal(began) || !ok {
		t.Errorf("%s is %s at %s, %v", key, revision, at, ok)
	}
	for _, key := range []string{"", ".5", "abc", "abc.", "abc.x"} {
		if _, _, ok := recording.ParseKey(key); ok {
			t.Errorf("%q is a key", key)
		}
	}
}

// Who may write AnalysisResults may write anything: it is refused, or it can be judged,
// gone on with and stored again.
func FuzzReadText(f *testing.F) {
	o := newOperator()
	o.judge(3)
	stored, err := o.Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored)
	f.Add(pack(`{"t":4,"step":0,"values":[{"name":"a","value":1}]}`))
	f.Fuzz(func(t *testing.T, stored string) {
		lines, err := recording.ReadText(stored)
		if err != nil {
			return
		}
		checkReadable(t, lines)
	})
}

// FuzzLines is FuzzReadText without what would have to be guessed: the compression.
func FuzzLines(f *testing.F) {
	o := newOperator()
	o.judge(3)
	var plain bytes.Buffer
	if err := recording.Write(o.Lines(), &plain); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.String())
	f.Fuzz(func(t *testing.T, plain string) {
		lines, err := recording.ReadText(pack(plain))
		if err != nil {
			return
		}
		checkReadable(t, lines)
	})
}

func checkReadable(t *testing.T, lines []recording.Line) {
	var p recording.Position
	for i := range lines {
		if _, _, err := p.Next(&lines[i]); err != nil {
			t.Fatalf("what can be read can't be judged: %v", err)
		}
	}
	o := newOperator()
	o.Recorder = recording.Continue(*lines[0].Release, lines)
	o.judge(1)
	if stored, err := o.Text(); err == nil {
		read(t, stored)
	}
}
