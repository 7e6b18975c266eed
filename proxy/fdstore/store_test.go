// SPDX-License-Identifier: Apache-2.0

package fdstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

// journalVariable makes this test binary a supervisor, or its agent: its value is the file
// in which each agent notes what it found.
const journalVariable = "SERIN_TEST_JOURNAL"

func TestMain(m *testing.M) {
	journal := os.Getenv(journalVariable)
	if journal == "" {
		os.Exit(m.Run())
	}
	run := supervise
	if Supervised() {
		run = func() error { return agent(journal) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func supervise() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return (&Supervisor{Executable: os.Args[0], Clock: clock.RealClock{}, Log: logr.Discard()}).Run(ctx)
}

// agent notes what the one before it left, leaves something itself, and crashes until the
// third.
func agent(journal string) error {
	store, err := FromSupervisor()
	if err != nil {
		return err
	}
	var found []string
	for name, fd := range store.Kept() {
		text := make([]byte, 64)
		n, err := unix.Pread(fd, text, 0)
		if err != nil {
			return err
		}
		found = append(found, name+"="+string(text[:n]))
	}
	slices.Sort(found)
	file, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, strings.Join(found, " ")); err != nil {
		return err
	}
	switch len(found) {
	case 0:
		err = errors.Join(keep(store, SocketPrefix+"a", "first"), keep(store, "b", "first"))
	case 2:
		err = errors.Join(store.Drop("b"), keep(store, "c", "second"), keep(store, SocketPrefix+"a", "second"), store.Drop("never kept"))
		if err == nil && slices.Contains(found, "c=second") {
			return file.Close()
		}
	}
	if err != nil {
		return err
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

func keep(store Store, name, text string) error {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return err
	}
	return store.Keep(name, fd)
}

func TestAnAgentThatCrashesLeavesItsFilesToTheNext(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	supervisor := exec.CommandContext(t.Context(), os.Args[0])
	supervisor.Env = append(os.Environ(), journalVariable+"="+journal)
	if out, err := supervisor.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	want := "\nb=first listen a=first\nc=second listen a=second\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("what three agents found (-want +got):\n%s", diff)
	}
}

// pair is a connection between a supervisor and an agent.
func pair(t *testing.T) (supervisor, agent int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(fds[0]) })
	return fds[0], fds[1]
}

// open counts this process's descriptors of a file.
func open(t *testing.T, name string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.Contains(to, "memfd:"+name+" ") {
			n++
		}
	}
	return n
}

func TestWhatIsKeptTwiceOrDroppedIsClosed(t *testing.T) {
	s := &Supervisor{kept: map[string]int{}}
	connection, other := pair(t)
	c := &client{connection: other}
	fd, err := unix.MemfdCreate("twice", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{c.Keep("twice", fd), c.Keep("twice", fd), c.Keep("once", fd), c.Drop("once"), c.Drop("unknown")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	Close(fd)
	Close(other)
	if err := s.serveStore(connection); err != nil {
		t.Fatal(err)
	}
	if n := open(t, "twice"); n != 1 || len(s.kept) != 1 {
		t.Errorf("%d descriptors are open and %v is kept, want one", n, s.kept)
	}
	Close(s.kept["twice"])
}

func TestMessagesThatMakeNoSenseAreErrors(t *testing.T) {
	fd, err := unix.MemfdCreate("malformed", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer Close(fd)
	for name, send := range map[string]func(to int) error{
		"a file to keep that is missing": func(to int) error { return sendMessage(to, message{keepFile, "a", -1}) },
		"a file with a drop":             func(to int) error { return sendMessage(to, message{dropFile, "a", fd}) },
		"two files": func(to int) error {
			return unix.Sendmsg(to, []byte("Ka"), unix.UnixRights(fd, fd), nil, unix.MSG_NOSIGNAL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{kept: map[string]int{}}
			connection, other := pair(t)
			if err := send(other); err != nil {
				t.Fatal(err)
			}
			Close(other)
			if err := s.serveStore(connection); err == nil || len(s.kept) > 0 {
				t.Errorf("%v, kept %v", err, s.kept)
			}
			if n := open(t, "malformed"); n != 1 {
				t.Errorf("%d descriptors are open, want only the sender's", n)
			}
		})
	}
}

func TestNamesThatAreTooLongAreNotSent(t *testing.T) {
	if err := (&client{connection: -1}).Keep(strings.Repeat("n", maxName+1), 0); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}

func TestAnAgentWithoutASupervisorKeepsNothing(t *testing.T) {
	t.Setenv(storeVariable, "")
	store, err := FromSupervisor()
	if err != nil || store.Kept() != nil || store.Keep("a", 0) != nil || store.Drop("a") != nil {
		t.Errorf("%v %v", store, err)
	}
	t.Setenv(storeVariable, "three")
	if _, err := FromSupervisor(); err == nil || !errors.Is(err, strconv.ErrSyntax) {
		t.Errorf("a descriptor that is none: %v", err)
	}
}

func TestAStatusIsToldInWords(t *testing.T) {
	for status, want := range map[unix.WaitStatus]string{9: "signal 9 (killed)", 3 << 8: "exit status 3"} {
		if got := describeStatus(status); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
