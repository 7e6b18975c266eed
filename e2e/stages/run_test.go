// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func newRunner(t *testing.T, out *bytes.Buffer) Runner {
	t.Helper()
	return Runner{Root: t.TempDir(), Out: out, Environment: os.Environ(), Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
}

func TestAStageThatFailsDoesNotStopTheOthers(t *testing.T) {
	var out bytes.Buffer
	results := newRunner(t, &out).Run(t.Context(), []Stage{
		{Name: "first", Steps: []Step{{Name: "break", Args: []string{"sh", "-c", "echo it broke; exit 3"}}}},
		{Name: "second", Steps: []Step{{Name: "work", Args: []string{"true"}}}},
	})
	if len(results) != 2 || len(results[0].Failed) != 1 || results[1].Passed != 1 {
		t.Fatalf("results: %+v", results)
	}
	if told := strings.Join(results[0].Failed[0].Output, ""); !strings.Contains(told, "it broke") || !strings.Contains(told, "exit status 3") {
		t.Errorf("the failure is told as %q", told)
	}
}

func TestACheckThatIsNotPossibleIsSkipped(t *testing.T) {
	var out bytes.Buffer
	results := newRunner(t, &out).Run(t.Context(), []Stage{{Name: "only", Steps: []Step{{Name: "look", Args: []string{"sh", "-c", "echo there is no npm; exit 77"}}}}})
	got := results[0]
	if got.Passed != 0 || len(got.Failed) != 0 || len(got.Skipped) != 1 || !strings.Contains(strings.Join(got.Skipped[0].Output, ""), "there is no npm") {
		t.Errorf("result: %+v", got)
	}
}

// The script finds bash and dirname, and nothing else.
func TestWithoutNpmTheChecksThatNeedItAreSkipped(t *testing.T) {
	programs := t.TempDir()
	for _, name := range []string{"bash", "dirname"} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, check := range []string{"prose", "page"} {
		var out bytes.Buffer
		r := Runner{Root: "../..", Out: &out, Environment: []string{"PATH=" + programs}, Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
		results := r.Run(t.Context(), []Stage{{Name: "only", Steps: []Step{script(check, ".ci/check.sh", check)}}})
		if got := results[0]; len(got.Skipped) != 1 || !strings.Contains(strings.Join(got.Skipped[0].Output, ""), "npm") {
			t.Errorf("%s: %+v", check, got)
		}
	}
}

// Each of the steps waits for the other one.
func TestStepsRunTogether(t *testing.T) {
	out := &locked{}
	r := newRunner(t, nil)
	r.Out = out
	meeting := filepath.Join(r.Root, "meeting")
	if err := syscall.Mkfifo(meeting, 0o600); err != nil {
		t.Fatal(err)
	}
	results := r.Run(t.Context(), []Stage{{Name: "only", Together: true, Steps: []Step{
		{Name: "hear", Args: []string{"cat", meeting}}, {Name: "speak", Args: []string{"sh", "-c", "echo hello > " + meeting}}, {Name: "break", Args: []string{"false"}},
	}}})
	if len(results) != 1 || results[0].Passed != 2 || len(results[0].Failed) != 1 || results[0].Failed[0].Name != "break" || !strings.Contains(out.String(), "hello") {
		t.Errorf("results: %+v, told: %s", results, out.String())
	}
}

// The child does a fixed amount of work and writes down its processor time; its parent does next to nothing.
func TestTheProcessorTimeOfACommandAndItsChildrenIsCounted(t *testing.T) {
	const child = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; times >took"
	for name, step := range map[string]Step{
		"a command that passes": {Args: []string{"sh", "-c", "sh -c '" + child + "'; true"}},
		"a command that fails":  {Args: []string{"sh", "-c", "sh -c '" + child + "'; exit 3"}},
		"tests":                 {GoTest: true, Args: []string{"sh", "-c", "sh -c '" + child + "'; true"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := newRunner(t, &out)
			results := r.Run(t.Context(), []Stage{{Name: "only", Steps: []Step{step}}})
			text, err := os.ReadFile(filepath.Join(r.Root, "took"))
			if err != nil {
				t.Fatal(err)
			}
			var took time.Duration
			for _, field := range strings.Fields(string(text))[:2] { // of the child itself: user and system
				d, err := time.ParseDuration(field)
				if err != nil {
					t.Fatal(err)
				}
				took += d
			}
			if got := results[0].CPU; took == 0 || got < took {
				t.Errorf("the child took %s of processor time, the stage %s", took, got)
			}
		})
	}
}

func TestAProgramThatIsMissingFails(t *testing.T) {
	var out bytes.Buffer
	for _, step := range []Step{{Name: "missing", Args: []string{"no-such-program"}}, {Name: "go test", GoTest: true, Args: []string{"no-such-program"}}} {
		results := newRunner(t, &out).Run(t.Context(), []Stage{{Name: "only", Steps: []Step{step}}})
		if len(results[0].Failed) != 1 {
			t.Errorf("results: %+v", results)
		}
	}
}

func TestNothingBeginsAfterAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if results := newRunner(t, &out).Run(ctx, []Stage{{Name: "only", Steps: []Step{{Name: "work", Args: []string{"true"}}}}}); len(results) != 0 {
		t.Errorf("results: %+v", results)
	}
}

// TestAnInterruptEndsWhatACommandStarted: go test, when it alone is told to end, waits for the
// test that it has started.
func TestAnInterruptEndsWhatACommandStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer cancel()
		if _, err := os.ReadFile(started); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	begin := "sh -c 'echo > " + started + "; exec sleep 3600'; echo the command went on"
	results := newRunner(t, &out).Run(ctx, []Stage{{Name: "only", Steps: []Step{{Name: "wait", Args: []string{"sh", "-c", begin}}}}})
	if len(results) != 1 || len(results[0].Failed) != 1 || !strings.Contains(strings.Join(results[0].Failed[0].Output, ""), "signal: interrupt") {
		t.Errorf("results: %+v", results)
	}
}

func TestTestsOfARealModuleAreRunAndCounted(t *testing.T) {
	var out bytes.Buffer
	r := newRunner(t, &out)
	for name, text := range map[string]string{
		"go.mod":      "module example.invalid/mixed\n",
		"mix_test.go": "package mixed\nimport \"testing\"\nfunc TestPasses(t *testing.T) {}\nfunc TestFails(t *testing.T) { t.Error(\"got 1, want 2\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(r.Root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	results := r.Run(t.Context(), []Stage{{Name: "unit", Steps: []Step{goTest(".", "./...")}}})
	if got := results[0]; got.Passed != 1 || len(got.Failed) != 1 || got.Failed[0].Name != "TestFails" {
		t.Errorf("result: %+v\n%s", got, out.String())
	}
}

func TestStagesAreFoundByTheirNames(t *testing.T) {
	table := Tests(Packages{})
	found, unknown := Find(table, "e2e", "unit", "nonsense")
	if len(found) != 2 || found[0].Name != "unit" || found[1].Name != "e2e" || len(unknown) != 1 {
		t.Errorf("found %v, unknown %v", found, unknown)
	}
}

// Go would keep the result of a test in another module when the chart or a page that it reads changes.
func TestResultsOfTestsThatReadAnotherModuleAreNotKept(t *testing.T) {
	fresh := map[string]bool{}
	for _, stage := range slices.Concat(Tests(Packages{}), Soak(Packages{})) {
		for _, step := range stage.Steps {
			if name := stage.Name + " " + step.Folder; step.GoTest {
				others, has := fresh[name]
				fresh[name] = slices.Contains(step.Args, "-count=1") && (others || !has)
			}
		}
	}
	want := map[string]bool{
		"check .": false, "unit .": false, "unit bench": true, "race .": false, "race bench": true, "integration e2e": true, "e2e e2e": true,
		"soak-unit .": false, "soak-race .": false, "soak-race bench": true, "soak-race e2e": true, "soak-integration e2e": true, "soak-e2e e2e": true, "soak-bench .": false,
	}
	if diff := cmp.Diff(want, fresh); diff != "" {
		t.Errorf("fresh (-want +got):\n%s", diff)
	}
}

func TestAStageWaitsForTheOnesInTheBackgroundThatItNeeds(t *testing.T) {
	out := &locked{}
	r := newRunner(t, nil)
	r.Out = out
	pipe := filepath.Join(r.Root, "pipe")
	results := r.Run(t.Context(), []Stage{
		{Name: "build", Background: true, Steps: []Step{{Name: "wait", Args: []string{"sh", "-c", "mkfifo pipe.new && mv pipe.new pipe && cat pipe && touch built"}}}},
		{Name: "beside", Steps: []Step{{Name: "let it end", Args: []string{"sh", "-c", "until [ -p pipe ]; do :; done; echo go >" + pipe}}}},
		{Name: "after", Needs: []string{"build"}, Steps: []Step{{Name: "use", Args: []string{"test", "-e", "built"}}}},
	})
	for i, name := range []string{"build", "beside", "after"} {
		if got := results[i]; got.Stage != name || got.Passed != 1 {
			t.Errorf("stage %d: %+v\n%s", i, got, out)
		}
	}
}

// locked is a buffer that several goroutines write to.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}
