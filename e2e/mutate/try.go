// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
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
}

// try runs the tests of a list with one mutant, or unchanged when there is none.
func (o Options) try(ctx context.Context, list List, m *Mutant) Result {
	began := time.Now()
	result := Result{Package: list.Package}
	if m != nil {
		result.Mutant = *m
	}
	result.Outcome, result.Detail = o.outcome(ctx, list, m)
	result.Took = time.Since(began)
	return result
}

func (o Options) outcome(ctx context.Context, list List, m *Mutant) (Outcome, string) {
	folder := filepath.Join(o.Root, list.Package)
	temporary, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return CouldNotBeTried, err.Error()
	}
	defer func() { _ = os.RemoveAll(temporary) }() // only files of ours
	binary := filepath.Join(temporary, "package.test")
	// Without what only debuggers read, the linker takes half as long.
	arguments := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if m != nil {
		overlay, err := m.overlay(folder, temporary)
		if err != nil {
			return DoesNotApply, err.Error()
		}
		arguments = append(arguments, "-overlay", overlay)
	}
	compile := exec.CommandContext(ctx, "go", append(arguments, "./"+list.Package)...)
	compile.Dir = o.Root
	if output, err := compile.CombinedOutput(); err != nil {
		return DoesNotCompile, fmt.Sprintf("%v\n%s", err, output)
	}
	runs := list.Tests
	if len(runs) == 0 {
		runs = [][]string{nil}
	}
	for _, run := range runs {
		if outcome, detail := o.test(ctx, folder, temporary, binary, run); outcome != Survived {
			return outcome, detail
		}
	}
	return Survived, ""
}

// overlay writes the changed file and the overlay that names it.
func (m Mutant) overlay(folder, temporary string) (string, error) {
	file, content, err := m.apply(folder)
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(temporary, filepath.Base(file))
	encoded, err := json.Marshal(map[string]any{"Replace": map[string]string{file: replacement}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(temporary, "overlay.json")
	return overlay, errors.Join(os.WriteFile(replacement, []byte(content), 0o600), os.WriteFile(overlay, encoded, 0o600))
}

// test runs a test binary once, in the folder of its package as go test does.
func (o Options) test(ctx context.Context, folder, temporary, binary string, arguments []string) (Outcome, string) {
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	command := exec.CommandContext(ctx, binary, append([]string{"-test.failfast"}, arguments...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	// What the tests started ends with them.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	noticed := failure.FindSubmatch(output)
	switch {
	case err == nil:
		return Survived, ""
	case ctx.Err() != nil:
		return TimedOut, fmt.Sprintf("after %v", o.Limit)
	case noticed == nil:
		return CouldNotBeTried, fmt.Sprintf("%v\n%s", err, output)
	}
	return Killed, "by " + strings.TrimSpace(string(noticed[1])+string(noticed[2]))
}
