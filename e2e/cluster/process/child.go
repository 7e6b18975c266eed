// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// Child is a running program whose life is tied to this process.
type Child struct {
	Spec   Spec
	pid    int
	exited chan struct{}
	err    error // valid once exited is closed
}

// StartChild runs the program until [Child.Stop]. On Linux the kernel kills it when this
// process dies, however it dies.
func StartChild(spec Spec) (*Child, error) {
	child := &Child{Spec: spec, exited: make(chan struct{})}
	started := make(chan error)
	go child.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return child, nil
}

// run starts the program and waits for its end on one thread: the kernel takes
// the death of the thread that started a program for the death of its parent.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.exited)
	command, log, err := c.Spec.command()
	if err != nil {
		started <- err
		return
	}
	command.SysProcAttr = childAttributes()
	err = command.Start()
	_ = log.Close() // the program has its own descriptor
	if err != nil {
		started <- fmt.Errorf("start %s: %w", c.Spec.Name, err)
		return
	}
	c.pid = command.Process.Pid
	started <- nil
	c.err = command.Wait()
}

// PID is the number of the process.
func (c *Child) PID() int { return c.pid }

// Exited is closed when the program has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Err says how the program ended and shows the end of its log. It may only be
// called once Exited is closed.
func (c *Child) Err() error {
	how := "exit status 0"
	if c.err != nil {
		how = c.err.Error()
	}
	return fmt.Errorf("%s ended: %s; the end of its log:\n%s", c.Spec.Name, how, c.Spec.LogTail())
}

// Stop asks the program to end, kills it when it has not after grace (at once
// when grace is 0), and returns when it has ended. It may be called again.
func (c *Child) Stop(clk clock.Clock, grace time.Duration) {
	select {
	case <-c.exited:
		return
	default:
	}
	if grace > 0 {
		c.signal(syscall.SIGTERM)
		timer := clk.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
			return
		case <-timer.C():
		}
	}
	c.signal(syscall.SIGKILL)
	<-c.exited
}

// signal cannot hit another process: the number stays taken until run has
// waited for the program. A program that has just ended needs no signal.
func (c *Child) signal(signal os.Signal) {
	if process, err := os.FindProcess(c.pid); err == nil {
		_ = process.Signal(signal)
	}
}
