// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"gotest.tools/gotestsum/testjson"
)

// watch has a watcher read a recorded go test -json, and returns what it printed.
func watch(t *testing.T, file string, verbose bool) (*testjson.Execution, string) {
	t.Helper()
	recorded, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close() //nolint:errcheck // only read
	var out bytes.Buffer
	w := &watcher{out: &out, verbose: verbose, running: map[string]bool{}}
	execution, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: recorded, Handler: w, IgnoreNonJSONOutputLines: true})
	if err != nil {
		t.Fatal(err)
	}
	return execution, out.String()
}

func TestTestsAreCountedAsTheyEnded(t *testing.T) {
	execution, _ := watch(t, "testdata/mixed.json", false)
	got := count(execution, nil, os.ErrProcessDone)
	if got.Passed != 4 || got.Cached != 2 || len(got.Failed) != 1 || len(got.Skipped) != 1 {
		t.Errorf("passed %d, cached %d, failed %v, skipped %v", got.Passed, got.Cached, got.Failed, got.Skipped)
	}
	if text := got.Failed[0].String() + strings.Join(got.Failed[0].Output, ""); !strings.Contains(text, "./mixed TestFails/inside") || !strings.Contains(text, "got 1, want 2") {
		t.Errorf("the failure is told as %q", text)
	}
	if text := strings.Join(got.Skipped[0].Output, ""); !strings.Contains(text, "not possible here: no nginx") {
		t.Errorf("the skip is told as %q", text)
	}
}

func TestAPackageThatDoesNotCompileFails(t *testing.T) {
	execution, _ := watch(t, "testdata/broken.json", false)
	got := count(execution, nil, os.ErrProcessDone)
	var text strings.Builder
	for _, f := range got.Failed {
		text.WriteString(f.String() + strings.Join(f.Output, ""))
	}
	if len(got.Failed) == 0 || !strings.Contains(text.String(), "undefined: missing") {
		t.Errorf("told as %q", text.String())
	}
}

func TestAPackageWhoseProcessEndsFails(t *testing.T) {
	execution, _ := watch(t, "testdata/exit.json", false)
	if got := count(execution, nil, os.ErrProcessDone); len(got.Failed) == 0 {
		t.Errorf("nothing failed: %+v", got)
	}
}

func TestACommandThatFailsWithoutATestFails(t *testing.T) {
	got := count(&testjson.Execution{}, []string{"go: no such module"}, os.ErrInvalid)
	if len(got.Failed) != 1 || got.Failed[0].Output[0] != "go: no such module" {
		t.Errorf("failed: %+v", got.Failed)
	}
}

func TestAFailureIsPrintedAtOnceAndWhatPassesIsNot(t *testing.T) {
	_, printed := watch(t, "testdata/mixed.json", false)
	for text, want := range map[string]bool{"got 1, want 2": true, "FAIL  mixed": false, "all is well": false} {
		if strings.Contains(printed, text) != want {
			t.Errorf("%q is printed: %t, want %t, in\n%s", text, !want, want, printed)
		}
	}
	if _, printed := watch(t, "testdata/mixed.json", true); !strings.Contains(printed, "all is well") {
		t.Errorf("a verbose step does not print what its tests do:\n%s", printed)
	}
}

func TestWhatRunsIsSaidAfterAQuietWhile(t *testing.T) {
	var out bytes.Buffer
	w := &watcher{out: &out, running: map[string]bool{"TestSlow": true}, ended: 7, printed: true}
	w.heartbeat()
	if out.Len() > 0 {
		t.Errorf("something was printed already, and it says %q", out.String())
	}
	w.heartbeat()
	if got := out.String(); got != "… 7 tests ended; now: TestSlow\n" {
		t.Errorf("it says %q", got)
	}
}
