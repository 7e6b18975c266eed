// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gotest.tools/gotestsum/testjson"
	"k8s.io/utils/clock"
)

// interruptGrace is how long a command gets to end after it was interrupted.
const interruptGrace = 30 * time.Second

// skipped is the exit status of a check that is not possible on this machine, and says why. Automake has the same.
const skipped = 77

// Runner runs stages.
type Runner struct {
	// Root is the folder of the repository.
	Root string
	// Out is told what is done, by several goroutines.
	Out io.Writer
	// Environment of the commands.
	Environment []string
	Clock       clock.WithTicker
}

// Run runs the stages one after the other, and those in the background beside them. The
// results are in the order of the stages.
func (r Runner) Run(ctx context.Context, stages []Stage) []Result {
	results, ended := make([]Result, len(stages)), map[string]chan struct{}{}
	for i, stage := range stages {
		for _, name := range stage.Needs {
			if done, runs := ended[name]; runs {
				<-done
			}
		}
		if !stage.Background {
			results[i] = r.stage(ctx, stage)
			continue
		}
		done := make(chan struct{})
		ended[stage.Name] = done
		go func() {
			defer close(done)
			results[i] = r.stage(ctx, stage)
		}()
	}
	for _, done := range ended {
		<-done
	}
	return slices.DeleteFunc(results, func(r Result) bool { return r.Stage == "" })
}

// stage runs one stage. Nothing begins after an interrupt.
func (r Runner) stage(ctx context.Context, stage Stage) (result Result) {
	if ctx.Err() != nil {
		return Result{}
	}
	fmt.Fprintf(r.Out, "\n==== %s: %s\n", stage.Name, stage.About)
	result.Stage = stage.Name
	began := r.Clock.Now()
	for _, done := range r.steps(ctx, stage) {
		result.add(done)
	}
	result.Took = r.Clock.Since(began)
	fmt.Fprintf(r.Out, "==== %s: %d passed, %d failed, %d skipped after %s, with %s of processor time\n",
		stage.Name, result.Passed, len(result.Failed), len(result.Skipped), minutes(result.Took), minutes(result.CPU))
	return result
}

// steps has the results in the order of the steps.
func (r Runner) steps(ctx context.Context, stage Stage) []Result {
	results := make([]Result, len(stage.Steps))
	var running sync.WaitGroup
	for i, step := range stage.Steps {
		running.Go(func() { results[i] = r.step(ctx, step) })
		if !stage.Together {
			running.Wait()
		}
	}
	running.Wait()
	return results
}

func (r Runner) step(ctx context.Context, step Step) Result {
	if step.Race {
		if _, err := exec.LookPath("gcc"); err != nil {
			return Result{Skipped: []Test{{Name: step.Name, Output: []string{"not possible here: the race detector needs a C compiler (on Debian: apt-get install gcc libc6-dev)"}}}}
		}
	}
	if step.GoTest {
		return r.goTest(ctx, step)
	}
	return r.check(ctx, step)
}

// check runs a command that is one test.
func (r Runner) check(ctx context.Context, step Step) Result {
	began := r.Clock.Now()
	var output strings.Builder
	command := r.command(ctx, step)
	command.Stdout = io.MultiWriter(r.Out, &output)
	command.Stderr = command.Stdout
	err := command.Run()
	test, used := Test{Name: step.Name, Took: r.Clock.Since(began)}, cpu(command)
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == skipped {
		test.Output = strings.SplitAfter(output.String(), "\n")
		return Result{CPU: used, Skipped: []Test{test}}
	}
	if err != nil {
		test.Output = append(strings.SplitAfter(output.String(), "\n"), fmt.Sprintf("%s: %v", strings.Join(step.Args, " "), err))
		return Result{CPU: used, Failed: []Test{test}}
	}
	fmt.Fprintf(r.Out, "ok    %s\n", step.Name)
	return Result{CPU: used, Passed: 1, Slow: []Test{test}}
}

// goTest runs go test -json.
func (r Runner) goTest(ctx context.Context, step Step) Result {
	command := r.command(ctx, step)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return failed(step, err)
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		return failed(step, err)
	}
	if err := command.Start(); err != nil {
		return failed(step, err)
	}
	w := &watcher{out: r.Out, verbose: step.Verbose, running: map[string]bool{}}
	stop := r.beat(w)
	execution, scanErr := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: stdout, Stderr: stderr, Handler: w, IgnoreNonJSONOutputLines: true})
	stop()
	result := count(execution, w.stderr, errors.Join(scanErr, command.Wait()))
	result.CPU = cpu(command)
	return result
}

// cpu is the processor time of a command that has ended, and of every process that it waited for.
func cpu(command *exec.Cmd) time.Duration {
	if command.ProcessState == nil {
		return 0 // it did not begin
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}

// beat has the watcher say what runs until it is stopped.
func (r Runner) beat(w *watcher) (stop func()) {
	ticker, done := r.Clock.NewTicker(quiet), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C():
				w.heartbeat()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

func (r Runner) command(ctx context.Context, step Step) *exec.Cmd {
	command := exec.CommandContext(ctx, step.Args[0], step.Args[1:]...)
	command.Dir = filepath.Join(r.Root, step.Folder)
	// One configuration for each stage: what one of them compiled, the others find.
	cgo := "CGO_ENABLED=0"
	if step.Race {
		cgo = "CGO_ENABLED=1"
	}
	command.Env = slices.Concat(r.Environment, []string{"GOFLAGS=-trimpath", "GOWORK=off", cgo})
	// What a command has started is interrupted with it: go test alone waits for its tests.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = interruptGrace
	return command
}

func failed(step Step, err error) Result {
	return Result{Failed: []Test{{Name: step.Name, Output: []string{err.Error()}}}}
}
