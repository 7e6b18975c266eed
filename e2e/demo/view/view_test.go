// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/story"
)

// atStart is a frame before anything is there.
func atStart() story.Frame {
	account := &story.Account{}
	account.Add(story.Snapshot{Time: time.Unix(0, 0)})
	return story.Frame{
		Scenes:  []story.SceneState{{Title: "Install Serin", State: story.Running}, {Title: "Deploy v1"}},
		Account: account,
	}
}

// inStep is a frame in the first step of v2.
func inStep() story.Frame {
	account, start := &story.Account{}, time.Unix(0, 0)
	account.Add(story.Snapshot{Time: start})
	account.Begin(story.First, start)
	account.Begin(story.Good, start)
	ten := int32(10)
	rollout := &serinv1alpha1.Rollout{Status: serinv1alpha1.RolloutStatus{
		Conditions: []metav1.Condition{{
			Type: serinv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: serinv1alpha1.ReasonHolding,
			Message: "step 1 of 2 holds 10 % until 15:04:05",
		}},
		Stable:   &serinv1alpha1.VersionStatus{Revision: "hash1"},
		Canary:   &serinv1alpha1.VersionStatus{Revision: "hash2"},
		Step:     &serinv1alpha1.StepStatus{Of: 2, Summary: "1/2"},
		Weight:   &serinv1alpha1.WeightStatus{Requested: 50, Observed: &ten},
		Analysis: &serinv1alpha1.AnalysisStatus{Verdict: "Inconclusive", Evidence: "10", Threshold: "100", CanaryRequests: 1234, CanaryFailures: 5},
	}}
	account.Add(story.Snapshot{
		Time: start.Add(83 * time.Second), Rollout: rollout, Split: &splitv1alpha4.TrafficSplit{},
		Pods: []story.Pod{
			{Name: "a", UID: "a", Version: story.First, Revision: "hash1", Ready: true},
			{Name: "b", UID: "b", Version: story.First, Revision: "hash1", Ready: true, Going: true},
			{Name: "c", UID: "c", Version: story.Good, Revision: "hash2", Ready: true},
		},
		Load: &generator.Report{Rate: 200, Unanswered: 1, Versions: []generator.VersionReport{
			{Version: story.First, Requests: 1234567, Latency: generator.Quantiles{P50: 0.81, P99: 12}},
			{Version: story.Good, Requests: 1234, Failed: 5, Latency: generator.Quantiles{P50: 1, P99: 2}},
		}},
	})
	return story.Frame{
		Scenes: []story.SceneState{
			{Title: "Deploy v1", State: story.Done, Took: 5 * time.Second},
			{Title: "Apply v2, a good version", State: story.Running, Took: 78 * time.Second},
			{Title: "Apply v3, which fails"},
		},
		Account: account,
	}
}

// text is a picture without its colours and trailing spaces.
func text(picture string) string {
	lines := strings.Split(ansi.Strip(picture), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestRender(t *testing.T) {
	failed := inStep()
	failed.Scenes[1].State = story.Failed
	failed.Account.Last.Problem = "the load generator\x1b[2J does not answer"
	tests := []struct {
		name  string
		frame story.Frame
		width int
	}{
		{name: "start.txt", frame: atStart(), width: 80},
		{name: "step.txt", frame: inStep(), width: 90},
		{name: "failed-narrow.txt", frame: failed, width: 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			golden.Check(t, filepath.Join("testdata", test.name), text(describe(test.frame).render(test.width)))
		})
	}
}

func TestThePictureIsNeverWiderThanTheTerminal(t *testing.T) {
	for _, width := range []int{minWidth, 80, maxWidth, 500} {
		for line := range strings.Lines(describe(inStep()).render(width)) {
			if got := ansi.StringWidth(strings.TrimRight(line, "\n")); got > width+2 {
				t.Errorf("at %d columns a line has %d: %s", width, got, ansi.Strip(line))
			}
		}
	}
}

func TestPlainWritesOneLinePerChange(t *testing.T) {
	var out bytes.Buffer
	p := NewPlain(&out)
	p.Show(atStart())
	p.Show(atStart())
	p.Say("$ kubectl apply -f website-v2.yaml")
	frame := inStep()
	p.Show(frame)
	p.Show(frame)
	last := frame.Account.Last
	last.Time = last.Time.Add(silence - time.Second)
	frame.Account.Add(last)
	p.Show(frame) // nothing new, not long enough
	last.Time = last.Time.Add(time.Second)
	frame.Account.Add(last)
	p.Show(frame) // nothing new, long enough
	frame.Scenes[1].State, frame.Scenes[1].Took = story.Failed, 90*time.Second
	p.Show(frame)
	golden.Check(t, filepath.Join("testdata", "plain.txt"), out.String())
}

func TestSummary(t *testing.T) {
	summary := story.Summary{
		Took: 93 * time.Second, Promoted: 41 * time.Second, OutOfTraffic: 12 * time.Second, RolledBack: 20 * time.Second, BadWeight: 10,
		Sent: 18600, Rate: 200, BadAnswers: 160, FailedByBad: 9, Retried: 3, PodsKept: 4, PodsCreated: 4,
	}
	broken := story.Summary{ProxyKilled: true, Broken: []string{"v2 was not promoted.", "3 requests failed that v3 did not cause."}, Unexplained: []generator.Failure{
		{Time: time.Unix(0, 0), Kind: generator.KindReset, Detail: "read: connection reset by peer", Seconds: 0.5},
		{Time: time.Unix(1, 0), Kind: generator.KindAppError, Status: 500, Version: "v2", Detail: "oops\n", Seconds: 0.25},
	}}
	for name, s := range map[string]story.Summary{"summary.txt": summary, "summary-broken.txt": broken} {
		var out bytes.Buffer
		if err := WriteSummary(&out, s, []string{"kubectl get rollouts.serin.dev", "make demo-down"}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name), out.String())
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestARolledBackVersionIsCalledSo(t *testing.T) {
	last := story.Snapshot{Rollout: &serinv1alpha1.Rollout{Status: serinv1alpha1.RolloutStatus{Canary: &serinv1alpha1.VersionStatus{Revision: "hash3"}}}}
	release := &story.Release{Version: story.Bad, Revision: "hash3"}
	if got := describeVersion(last, release).role; got != serinv1alpha1.RoleCanary {
		t.Errorf("got %q before the outcome", got)
	}
	release.Outcome = &serinv1alpha1.HistoryEntry{Outcome: serinv1alpha1.OutcomeRolledBack}
	if got := describeVersion(last, release).role; got != "rolled back" {
		t.Errorf("got %q", got)
	}
}

func TestEvidenceIsOnlyShownWhenItIsANumber(t *testing.T) {
	for _, a := range []serinv1alpha1.AnalysisStatus{{}, {Evidence: "x", Threshold: "100"}, {Evidence: "1", Threshold: ""}, {Evidence: "1", Threshold: "1"}} {
		if e := describeEvidence(&a); e.known || e.share() != 0 {
			t.Errorf("%+v is shown as %+v", a, e)
		}
	}
	if share := (evidence{known: true, value: 10, needed: 100}).share(); share < 0.499 || share > 0.501 {
		t.Errorf("got %v, want one half", share)
	}
}

// terminal takes writes from several goroutines, as a terminal's file does:
// Bubble Tea prints lines from its event loop and pictures from its renderer.
type terminal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.String()
}

func TestSayingSomethingAfterTheEndDoesNotBlock(t *testing.T) {
	l := start(model{interrupt: func() {}, width: 80}, tea.WithContext(t.Context()), tea.WithoutSignalHandler(),
		tea.WithInput(strings.NewReader("")), tea.WithOutput(&terminal{}), tea.WithWindowSize(100, 40))
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	l.Say("too late")
	l.Show(inStep())
}

func TestLiveShowsFramesAndGivesTheTerminalBack(t *testing.T) {
	var out terminal
	l := start(model{interrupt: func() {}, width: 80}, tea.WithContext(t.Context()), tea.WithoutSignalHandler(),
		tea.WithInput(strings.NewReader("")), tea.WithOutput(&out), tea.WithWindowSize(100, 40))
	l.Show(atStart())
	l.Say("$ kubectl apply")
	l.Show(inStep())
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"$ kubectl apply", "Apply v2, a good version"} {
		if got := ansi.Strip(out.String()); !strings.Contains(got, want) {
			t.Errorf("%q is not shown: %q", want, got)
		}
	}
}

func TestCtrlCInterrupts(t *testing.T) {
	interrupted := 0
	m := model{interrupt: func() { interrupted++ }}
	m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	m.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	if interrupted != 2 {
		t.Errorf("interrupted %d times, want 2", interrupted)
	}
}
