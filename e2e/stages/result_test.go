// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheLastLineCountsAllTests(t *testing.T) {
	skipped := []Test{{Package: "./proxy", Name: "TestProxy", Output: []string{"=== RUN   TestProxy\n", "    not possible here: no nginx\n"}}}
	failed := []Test{{Package: "./proxy", Name: "TestAgent", Output: []string{"    agent_test.go:1: got 1, want 2\n"}}}
	for name, test := range map[string]struct {
		results  []Result
		ci, want bool
		last     string
	}{
		"all passed":               {results: []Result{{Passed: 2}, {Passed: 3}}, ci: true, want: true, last: "5 passed, 0 failed, 0 skipped"},
		"one failed":               {results: []Result{{Passed: 2, Failed: failed}}, last: "2 passed, 1 failed, 0 skipped"},
		"one was skipped":          {results: []Result{{Passed: 2, Skipped: skipped}}, want: true, last: "2 passed, 0 failed, 1 skipped"},
		"one was skipped in CI":    {results: []Result{{Passed: 2, Skipped: skipped}}, ci: true, last: "2 passed, 0 failed, 1 skipped"},
		"some of one stage failed": {results: []Result{{Passed: 9}, {Failed: failed}, {Passed: 1}}, last: "10 passed, 1 failed, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if got := Report(&out, test.results, time.Minute, test.ci); got != test.want {
				t.Errorf("the run passed: %t, want %t", got, test.want)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != test.last {
				t.Errorf("the last line is %q, want %q", got, test.last)
			}
		})
	}
}

func TestTheReportNamesTimesTheSlowestTestsSkipsAndFailures(t *testing.T) {
	var slow []Test
	for i := range 25 {
		slow = append(slow, Test{Package: "./judge", Name: fmt.Sprintf("Test%02d", i), Took: time.Duration(i) * time.Second})
	}
	var out bytes.Buffer
	Report(&out, []Result{{
		Stage: "unit", Took: 75 * time.Second, CPU: 130 * time.Second, Passed: 25, Cached: 20, Slow: slow,
		Failed:  []Test{{Package: "./judge", Name: "TestFails", Output: []string{"judge_test.go:7: wrong"}}},
		Skipped: []Test{{Package: "./proxy", Name: "TestSkips", Output: []string{"no nginx"}}},
	}}, 2*time.Minute, false)
	text := out.String()
	for _, want := range []string{"unit  1m15s  2m10s      25      20       1        1", "all  2m00s  2m10s", "24.0s  ./judge Test24", "5.0s  ./judge Test05", "./judge TestFails", "judge_test.go:7: wrong", "./proxy TestSkips", "no nginx"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Test04") {
		t.Errorf("more than the twenty slowest tests are named:\n%s", text)
	}
}

func TestOnlyTheMessagesAndTheEndOfALongFailureAreRepeated(t *testing.T) {
	long := make([]string, 500)
	for i := range long {
		long[i] = fmt.Sprintf("line %d\n", i)
	}
	for i := range 12 {
		long[100+i] = fmt.Sprintf("    play_test.go:7: message %d\n", i)
	}
	var out bytes.Buffer
	Report(&out, []Result{{Failed: []Test{{Name: "TestLong", Output: long}}}}, 0, false)
	text := out.String()
	for line, want := range map[string]bool{
		"message 1": false, "message 2": true, "message 11": true, "line 112": false, "line 459": false, "line 460": true, "line 499": true,
	} {
		if strings.Contains(text, line+"\n") != want {
			t.Errorf("%q: shown is not %t:\n%s", line, want, text)
		}
	}
	if strings.Index(text, "line 499") > strings.Index(text, "message 11") {
		t.Errorf("the messages are not at the end:\n%s", text)
	}
}

func TestOfATestThatHangsTheGoroutinesOfThisRepositoryAreShown(t *testing.T) {
	var dump []string
	for i := range 300 {
		dump = append(dump, fmt.Sprintf("goroutine %d [chan send, 17 minutes]:\n", i), "k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop(0x23)\n", "\tfilter.go:67 +0x13a\n", "\n")
	}
	hangs := []string{"goroutine 7000 [select, 17 minutes]:\n", "net/http.roundTrip(0x1)\n", "github.com/serin-dev/serin/e2e/integration.(*operator).stop(0x2)\n", "\tmanager_test.go:110 +0x7\n", "\n"}
	output := slices.Concat([]string{"before\n", "panic: test timed out after 30m0s\n", "\trunning tests:\n", "\t\tTestHangs (17m1s)\n", "\n"}, dump[:600], hangs, dump[600:])
	var out bytes.Buffer
	Report(&out, []Result{{Failed: []Test{{Name: "TestHangs", Output: output}}}}, 0, false)
	text := out.String()
	for _, want := range append([]string{"TestHangs (17m1s)\n"}, hangs[:4]...) {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown:\n%s", want, text)
		}
	}
	if strings.Contains(text, "filteredWatch") || strings.Contains(text, "before") {
		t.Errorf("more is shown:\n%s", text)
	}
}
