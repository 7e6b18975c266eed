// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// Outcome is what became of a mutant.
type Outcome string

// The outcomes. Only Killed is a success.
const (
	Killed          Outcome = "killed"
	Survived        Outcome = "survived"
	TimedOut        Outcome = "timed out"
	DoesNotApply    Outcome = "no longer applies"
	DoesNotCompile  Outcome = "does not compile"
	CouldNotBeTried Outcome = "could not be tried"
)

// Result is the outcome of one mutant.
type Result struct {
	Package string
	Mutant  Mutant
	Outcome Outcome
	// Detail is the test that noticed the mutant, or what went wrong.
	Detail string
	Took   time.Duration
}

// failure matches what a test binary prints when a test fails or panics.
var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*|fatal error: .*)`)

// Options say where and how long mutants are tried.
type Options struct {
	// Root is the folder of the repository's module.
	Root string
	// Limit is the longest that one run of the tests of a mutant may take.
	Limit time.Duration
	// Clock tells how long a run took.
	Clock clock.PassiveClock
}

// try runs the tests of a list with the mutant of a number, until a run fails.
func (o Options) try(ctx context.Context, list List, binary string, number int) Result {
	began := o.Clock.Now()
	runs := list.Tests
	if len(runs) == 0 {
		runs = [][]string{nil}
	}
	result := Result{Outcome: Survived}
	for _, run := range runs {
		if result = o.test(ctx, filepath.Join(o.Root, list.Package), binary, number, run); result.Outcome != Survived {
			break
		}
	}
	result.Took = o.Clock.Since(began)
	return result
}

// test runs a test binary once, in the folder of its package as go test does.
func (o Options) test(whole context.Context, folder, binary string, number int, arguments []string) Result {
	ctx, cancel := context.WithTimeout(whole, o.Limit)
	defer cancel()
	temporary, err := os.MkdirTemp(filepath.Dir(binary), "run-")
	if err != nil {
		return Result{Outcome: CouldNotBeTried, Detail: err.Error()}
	}
	command := exec.CommandContext(ctx, binary, append([]string{"-test.failfast"}, arguments...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number), "TMPDIR="+temporary)
	// What the tests started ends with them.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	noticed := failure.FindSubmatch(output)
	switch {
	case err == nil:
		return Result{Outcome: Survived}
	case whole.Err() != nil:
		return Result{Outcome: CouldNotBeTried, Detail: "interrupted"}
	case ctx.Err() != nil:
		return Result{Outcome: TimedOut, Detail: fmt.Sprintf("after %v", o.Limit)}
	case noticed == nil:
		return Result{Outcome: CouldNotBeTried, Detail: fmt.Sprintf("%v\n%s", err, output)}
	}
	return Result{Outcome: Killed, Detail: "by " + strings.TrimSpace(string(noticed[1])+string(noticed[2]))}
}
