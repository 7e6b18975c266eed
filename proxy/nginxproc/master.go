// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// Master is one nginx: a master process and its workers, in a group of their own.
type Master struct {
	folder conf.Instance
	// PID of the master process and of the group.
	PID int
	// ended is closed when the master process has ended.
	ended chan struct{}
}

// firstDescriptor is the number that the first socket has in nginx: those before
// are its input, output and error log.
const firstDescriptor = 3

// spawn starts an nginx with the sockets that it is lent. errorLog takes what it
// has to say.
//
// It does so by system calls because an exec.Cmd would make the sockets block, for
// every nginx that has them.
func spawn(binary string, launch Launch, errorLog int) (*Master, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // only read
	// nginx takes the list of the sockets that it is lent from here; it is made for an
	// nginx that replaces itself.
	var inherited strings.Builder
	files := []uintptr{null.Fd(), uintptr(errorLog), uintptr(errorLog)}
	for i, fd := range launch.Sockets {
		fmt.Fprintf(&inherited, "%d;", firstDescriptor+i)
		files = append(files, uintptr(fd))
	}
	environment := os.Environ()
	if inherited.Len() > 0 {
		environment = append(environment, "NGINX="+inherited.String())
	}
	folder := string(launch.Folder)
	argv := []string{binary, "-p", folder + "/", "-c", filepath.Base(launch.Folder.Config())}
	pid, err := syscall.ForkExec(binary, argv, &syscall.ProcAttr{
		Dir: folder, Env: environment, Files: files,
		// A group of its own: it outlives the master, and Ctrl-C in a terminal reaches the agent only.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, err
	}
	m := &Master{folder: launch.Folder, PID: pid, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		for {
			if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	if err := note(launch.Folder, pid); err != nil {
		return nil, errors.Join(err, kill(m))
	}
	return m, nil
}

// kill ends an nginx that was just started, at once.
func kill(m *Master) error {
	if err := sendSignal(-m.PID, unix.SIGKILL); err != nil {
		return err
	}
	<-m.ended
	return nil
}

// masterFile is where the id of the master process is noted, in the folder of an
// nginx. nginx's own file is there later and goes with its master.
const masterFile = "master"

// note writes down who is the master of a folder, in one step: an agent that is killed meanwhile
// leaves no half of it, by which the next agent would not know which nginx to end.
func note(folder conf.Instance, pid int) error {
	return replace.File(filepath.Join(string(folder), masterFile), []byte(strconv.Itoa(pid)+"\n"))
}

// FindMaster reads who is the master of a folder; nil when there was none.
func FindMaster(folder conf.Instance) (*Master, error) {
	text, err := os.ReadFile(filepath.Join(string(folder), masterFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || pid <= 1 {
		return nil, fmt.Errorf("%s: %.20q is not the id of a process", folder, text)
	}
	return &Master{folder: folder, PID: pid, ended: make(chan struct{})}, nil
}

// Members are the master process and its workers that have not ended.
func (m *Master) Members() ([]Member, error) { return groupMembers(procDir, m.PID) }

// runs reports whether the master process runs.
func (m *Master) runs() (bool, error) {
	members, err := m.Members()
	return slices.ContainsFunc(members, func(o Member) bool { return o.PID == m.PID }), err
}

// quit has it finish its requests and end. When the master process is gone, the
// workers are signalled one by one.
func (m *Master) quit() error {
	runs, err := m.runs()
	if err != nil {
		return err
	}
	if runs {
		return sendSignal(m.PID, unix.SIGQUIT)
	}
	return m.signalAll(unix.SIGQUIT)
}

// signalAll sends a signal to every process.
func (m *Master) signalAll(s unix.Signal) error {
	members, err := m.Members()
	if err != nil {
		return err
	}
	for _, o := range members {
		if err := sendSignal(o.PID, s); err != nil {
			return err
		}
	}
	return nil
}

// sendSignal sends a signal to a process. One that has ended by itself is as it should be.
func sendSignal(pid int, s unix.Signal) error {
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("stop nginx: %w", err)
	}
	return nil
}
