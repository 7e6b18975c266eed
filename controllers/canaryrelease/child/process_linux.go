// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/poll/fair"
)

const (
	// openFiles are enough for a process that opens none.
	openFiles = 64
	// lowPriority lets the manager compute first.
	lowPriority = 10
	// firstVictim is what the kernel kills first when memory is used up.
	firstVictim = "1000"
)

// program is an executable that answers one call and ends.
type program struct {
	path   string
	limits Limits
}

var errLate = errors.New("the time is over")

// run starts the program, limits it before it gets the call, and returns its answer. When it
// returns, the process is gone.
func (p program) run(ctx context.Context, call []byte, api http.Handler) ([]byte, error) {
	timed, cancel := context.WithTimeoutCause(ctx, p.limits.Time, errLate)
	defer cancel()
	connection, theirs, err := connect()
	if err != nil {
		return nil, fmt.Errorf("make a connection for Helm: %w", err)
	}
	defer serve(connection, api)()
	command, said := p.command(timed, theirs)
	in, out, err := pipes(command)
	if err == nil {
		err = command.Start()
	}
	err = errors.Join(err, theirs.Close())
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, verdict(ending{stopped: true, recalled: errors.Is(context.Cause(ctx), fair.ErrRecalled)}, p.limits)
	case err != nil:
		return nil, releases.FailureError("the program that runs Helm can't be started: use an image of the manager that contains it")
	}
	err = p.limit(command.Process.Pid)
	if err != nil {
		cancel()
	}
	go func() {
		_, _ = in.Write(call) // a process that does not read it ends with an error of its own
		_ = in.Close()
	}()
	answer, readErr := releases.ReadAtMost(out, releases.MaxAnswer)
	if readErr != nil {
		cancel()
	}
	waitErr := command.Wait()
	if err != nil {
		return nil, fmt.Errorf("limit the process that runs Helm: %w", err)
	}
	return answer, verdict(ending{
		late: errors.Is(context.Cause(timed), errLate), stopped: ctx.Err() != nil, recalled: errors.Is(context.Cause(ctx), fair.ErrRecalled), tooMuch: errors.Is(readErr, releases.ErrTooMuch),
		killed: signaled(command.ProcessState), ok: waitErr == nil && readErr == nil,
		overTime: command.ProcessState.ExitCode() == releases.ExitOverTime, exhausted: said.exhausted,
	}, p.limits)
}

// command has none of the manager's environment, and a group of its own, which is killed as a
// whole.
func (p program) command(ctx context.Context, api *os.File) (*exec.Cmd, *complaints) {
	command, said := exec.CommandContext(ctx, p.path), &complaints{}
	command.Dir = "/"
	command.Env = []string{"GOMEMLIMIT=" + strconv.FormatInt(p.limits.Memory/4*3, 10), "GOMAXPROCS=2", "GOTRACEBACK=none"}
	command.ExtraFiles = []*os.File{api}
	command.Stderr = said
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	return command, said
}

func pipes(command *exec.Cmd) (io.WriteCloser, io.Reader, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := command.StdoutPipe()
	return in, out, err
}

// limit is what the kernel holds the process to. The data of a process is what Go's heap is
// made of; its address space is much larger.
func (p program) limit(pid int) error {
	seconds := uint64(max(p.limits.CPU/time.Second, 1))
	for resource, most := range map[int]unix.Rlimit{
		unix.RLIMIT_DATA: same(uint64(p.limits.Memory)), //nolint:gosec // positive
		// At the first limit the process is told to end, at the second one it is killed.
		unix.RLIMIT_CPU:   {Cur: seconds, Max: seconds + 1},
		unix.RLIMIT_FSIZE: same(0), unix.RLIMIT_CORE: same(0), unix.RLIMIT_NOFILE: same(openFiles),
	} {
		if err := unix.Prlimit(pid, resource, &most, nil); err != nil {
			return err
		}
	}
	// Kernels and sandboxes that refuse these hold the process to the limits all the same.
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, lowPriority)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(firstVictim), 0)
	return nil
}

// same is a limit that can't be raised.
func same(most uint64) unix.Rlimit { return unix.Rlimit{Cur: most, Max: most} }

func signaled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// connect makes the two ends of a connection that has no name: no other process can join it.
func connect() (net.Conn, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "api"), os.NewFile(uintptr(ends[1]), "api")
	connection, err := net.FileConn(ours)
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return connection, theirs, nil
}
