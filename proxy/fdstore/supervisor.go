// SPDX-License-Identifier: Apache-2.0

package fdstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

const (
	// storeVariable tells an agent the descriptor by which it reaches its supervisor.
	storeVariable = "SERIN_FD_STORE"
	// storeDescriptor is that descriptor.
	storeDescriptor = 3

	// restartFirst and restartMost are how long to wait before an agent that crashed is
	// started again; an agent that ran for restartMost has the first wait again.
	restartFirst = 50 * time.Millisecond
	restartMost  = 10 * time.Second
)

// Supervised reports whether this process is an agent that a Supervisor started.
func Supervised() bool { return os.Getenv(storeVariable) != "" }

// Supervisor is the parent of an agent, and process 1 of its container. It does
// next to nothing, so that it does not crash: it keeps the agent's files open,
// starts an agent again that crashed, passes on that it is to stop, and collects
// the processes that lost their parents, such as nginx. Meanwhile nginx serves.
type Supervisor struct {
	// Executable and Args are the agent's command.
	Executable string
	Args       []string
	// Clock that restarts wait by.
	Clock clock.Clock
	// Log of the supervisor.
	Log logr.Logger

	kept map[string]int
}

// errAgent is the error of an agent that ended with a status other than 0.
var errAgent = errors.New("the agent ended")

// Run runs agents until one of them ends as it should, or the context has ended and
// with it the last agent. Nothing else in this process may start or await others.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("supervise the agent: %w", err)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	s.kept = map[string]int{}
	wait := restartFirst
	for {
		started := s.Clock.Now()
		status, err := s.runAgent(ctx, children)
		if err != nil {
			return fmt.Errorf("supervise the agent: %w", err)
		}
		if status.Exited() && status.ExitStatus() == 0 {
			return nil
		}
		err = fmt.Errorf("%w: %s", errAgent, describeStatus(status))
		if ctx.Err() != nil || status.Exited() && !s.serving() {
			return err
		}
		if s.Clock.Since(started) > restartMost {
			wait = restartFirst
		}
		s.Log.Error(err, "The agent ended; nginx serves on, and the agent is started again", "after", wait.String())
		select {
		case <-s.Clock.After(wait):
		case <-ctx.Done(): // the next one stops nginx in order
		}
		wait = min(2*wait, restartMost)
	}
}

// serving is whether clients can connect: then nginx runs, and an agent has to
// look after it.
func (s *Supervisor) serving() bool {
	for name := range s.kept {
		if strings.HasPrefix(name, SocketPrefix) {
			return true
		}
	}
	return false
}

// runAgent runs one agent, until it has ended and all that it gave away was received.
func (s *Supervisor) runAgent(ctx context.Context, children <-chan os.Signal) (unix.WaitStatus, error) {
	pid, connection, err := s.startAgent()
	if err != nil {
		return 0, err
	}
	defer Close(connection)
	received := make(chan error, 1)
	go func() { received <- s.serveStore(connection) }()
	stop := ctx.Done()
	for {
		select {
		case <-stop:
			stop = nil
			if err := unix.Kill(pid, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
				return 0, err
			}
		case <-children:
			status, ended, err := reap(pid)
			if err != nil {
				return 0, err
			}
			if ended {
				return status, <-received
			}
		}
	}
}

// startAgent starts an agent, and returns the connection to it.
func (s *Supervisor) startAgent() (pid, connection int, err error) {
	syscall.ForkLock.RLock() // a child must not inherit them before they are marked
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, 0, os.NewSyscallError("socketpair", err)
	}
	defer Close(pair[1])
	pid, err = syscall.ForkExec(s.Executable, append([]string{s.Executable}, s.Args...), &syscall.ProcAttr{
		Env:   append(os.Environ(), storeVariable+"="+strconv.Itoa(storeDescriptor)),
		Files: []uintptr{0, 1, 2, uintptr(pair[1])},
	})
	if err != nil {
		Close(pair[0])
		return 0, 0, fmt.Errorf("start %s: %w", s.Executable, err)
	}
	return pid, pair[0], nil
}

// serveStore hands over what is kept, and takes what is to be kept until the agent
// has ended.
func (s *Supervisor) serveStore(connection int) error {
	for name, fd := range s.kept {
		if err := sendMessage(connection, message{keepFile, name, fd}); err != nil && !isGone(err) {
			return err
		}
	}
	if err := sendMessage(connection, message{operation: thatIsAll, file: -1}); err != nil && !isGone(err) {
		return err
	}
	for {
		m, err := receiveMessage(connection)
		if errors.Is(err, errHungUp) || isGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if previous, ok := s.kept[m.name]; ok {
			Close(previous)
			delete(s.kept, m.name)
		}
		if m.operation == keepFile {
			s.kept[m.name] = m.file
		}
	}
}

// isGone reports whether an error is that the agent has ended.
func isGone(err error) bool { return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) }

// reap collects every process that has ended, and reports whether one of them is pid.
func reap(pid int) (status unix.WaitStatus, ended bool, err error) {
	for {
		var s unix.WaitStatus
		switch got, err := unix.Wait4(-1, &s, unix.WNOHANG, nil); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD) || err == nil && got == 0:
			return status, ended, nil
		case err != nil:
			return status, ended, os.NewSyscallError("wait4", err)
		case got == pid:
			status, ended = s, true
		}
	}
}

func describeStatus(s unix.WaitStatus) string {
	if s.Signaled() {
		return "signal " + strconv.Itoa(int(s.Signal())) + " (" + s.Signal().String() + ")"
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}
