// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// stopPoll is how often the end of a process is looked for.
const stopPoll = 20 * time.Millisecond

// killGrace is how long the kernel may take to end a process that was killed.
const killGrace = 15 * time.Second

// Start runs the program in a session of its own, so that it goes on when this
// process and its terminal end.
func Start(spec Spec) (Identity, error) {
	command, log, err := spec.command()
	if err != nil {
		return Identity{}, err
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = command.Start()
	_ = log.Close() // the program has its own descriptor
	if err != nil {
		return Identity{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// As long as nobody waits for it the number stays taken, so this is it.
	identity, err := Identify(command.Process.Pid)
	go func() { _ = command.Wait() }() // how it ended is in its log
	return identity, err
}

// Identify finds out the identity of the process that has the number now.
func Identify(pid int) (Identity, error) {
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	status, err := readStatus(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Started: status.started, Boot: boot}, nil
}

// BootID is the identity of the present boot of the machine.
func BootID() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the identity of the boot: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Alive tells whether the process still runs. One that has ended and that its
// parent has not yet waited for does not.
func (i Identity) Alive() bool {
	if i.PID == 0 {
		return false
	}
	boot, err := BootID()
	if err != nil || boot != i.Boot {
		return false
	}
	status, err := readStatus(i.PID)
	return err == nil && status.started == i.Started && !status.ended
}

// Stop asks the process to end, kills it when it has not after grace (at once
// when grace is 0), and returns when it has ended. One that has ended is fine.
func (i Identity) Stop(ctx context.Context, grace time.Duration) error {
	if !i.Alive() {
		return nil
	}
	descriptor, err := unix.PidfdOpen(i.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", i.PID, err)
	}
	defer func() { _ = unix.Close(descriptor) }()
	if !i.Alive() { // the number was used again before it was opened
		return nil
	}
	if grace > 0 && i.end(ctx, descriptor, unix.SIGTERM, grace) == nil {
		return nil
	}
	return i.end(ctx, descriptor, unix.SIGKILL, killGrace)
}

// end sends the signal and waits for the end of the process.
func (i Identity) end(ctx context.Context, descriptor int, signal unix.Signal, limit time.Duration) error {
	if err := unix.PidfdSendSignal(descriptor, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", i.PID, err)
	}
	ended := func(context.Context) (bool, error) { return !i.Alive(), nil }
	if err := wait.PollUntilContextTimeout(ctx, stopPoll, limit, true, ended); err != nil {
		return fmt.Errorf("process %d goes on %s after signal %s: %w", i.PID, limit, signal, err)
	}
	return nil
}
