// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/judgement"
)

// mark is before each failure of a scenario, whose log is long: what runs the tests looks for
// it, and tells the failures again at its end.
const mark = "FAILED:"

// attempt is one run of a scenario. It notes what fails, since a run that says more of the
// machine than of Serin is repeated once.
type attempt struct {
	*testing.T
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	findings []judgement.Finding
	skipped  string
	cleanups []func()
}

// play runs a scenario beside others. It passes or fails.
func play(t *testing.T, scenario func(*attempt)) {
	t.Helper()
	t.Parallel()
	requireCluster(t)
	findings, inconclusive := conclude(t, scenario)
	prefix := ""
	if inconclusive {
		prefix = "inconclusive: the control failed in the same way at the same moments, twice: "
	}
	for _, f := range findings {
		t.Error(mark, prefix+f.Text)
	}
}

// conclude runs a scenario, and once more when the first run fails by what the control, which is
// without Serin, suffered in the same way at the same moments. When that happens again, it is
// inconclusive.
func conclude(t *testing.T, scenario func(*attempt)) (findings []judgement.Finding, inconclusive bool) {
	t.Helper()
	findings = runAttempt(t, scenario)
	if judgement.Inconclusive(findings) {
		t.Log("the control failed in the same way at the same moments: the scenario runs once more")
		findings = runAttempt(t, scenario)
	}
	return findings, judgement.Inconclusive(findings)
}

// runAttempt runs a scenario and returns what failed.
func runAttempt(t *testing.T, scenario func(*attempt)) []judgement.Finding {
	t.Helper()
	a := &attempt{T: t}
	a.ctx, a.cancel = context.WithCancel(t.Context())
	begun := readPressure()
	a.apart(func() { scenario(a) })
	a.cancel()
	for len(a.cleanups) > 0 {
		last := a.cleanups[len(a.cleanups)-1]
		a.cleanups = a.cleanups[:len(a.cleanups)-1]
		a.apart(last)
	}
	t.Logf("%s; findings: %d", begun.since(readPressure()), len(a.findings))
	if a.skipped != "" && len(a.findings) == 0 {
		testenv.Missing(t, a.skipped, "run it on the local cluster")
	}
	return a.findings
}

// apart runs a function in a goroutine that it may end.
func (a *attempt) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// note keeps a failure, and logs it when it happens.
func (a *attempt) note(f judgement.Finding) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.findings = append(a.findings, f)
	a.Log("failed:", f.Text)
}

// Context ends before what Cleanup was given runs.
func (a *attempt) Context() context.Context { return a.ctx }

// Cleanup has a function run at the end of the attempt, the last one first.
func (a *attempt) Cleanup(f func()) { a.cleanups = append(a.cleanups, f) }

// Failed tells whether the attempt has failed.
func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.findings) > 0
}

func (a *attempt) Error(args ...any) {
	a.Helper()
	a.note(judgement.Finding{Text: strings.TrimSuffix(fmt.Sprintln(args...), "\n")})
}

func (a *attempt) Errorf(format string, args ...any) {
	a.Helper()
	a.note(judgement.Finding{Text: fmt.Sprintf(format, args...)})
}

func (a *attempt) Fatal(args ...any) {
	a.Helper()
	a.Error(args...)
	runtime.Goexit()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
	runtime.Goexit()
}

// Skip ends the attempt, and the test with it: as failed in continuous integration.
func (a *attempt) Skip(args ...any) {
	a.Helper()
	a.skipped = strings.TrimSuffix(fmt.Sprintln(args...), "\n")
	runtime.Goexit()
}

func (a *attempt) Skipf(format string, args ...any) {
	a.Helper()
	a.Skip(fmt.Sprintf(format, args...))
}

func TestAnAttemptNotesWhatFails(t *testing.T) {
	var order []string
	findings := runAttempt(t, func(a *attempt) {
		a.Cleanup(func() { order = append(order, "first") })
		a.Cleanup(func() {
			order = append(order, "second")
			a.Errorf("at the %s", "end")
		})
		a.Error("a", "b")
		a.Fatalf("%d", 1)
		t.Error("an attempt goes on after its end")
	})
	var texts []string
	for _, f := range findings {
		texts = append(texts, f.Text)
	}
	if !slices.Equal(texts, []string{"a b", "1", "at the end"}) || !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("got %q, cleaned up in the order %q", texts, order)
	}
}
