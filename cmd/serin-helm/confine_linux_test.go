// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/config/testenv"
)

// confined makes the test binary a process that gave up what it does not need, and tries to
// get it back.
const confined = "SERIN_TEST_CONFINED"

func TestMain(m *testing.M) {
	if os.Getenv(confined) == "" {
		os.Exit(m.Run())
	}
	before := os.Getppid()
	if err := confine(); err != nil {
		fmt.Print("confine: ", err)
		os.Exit(1)
	}
	_, file := os.ReadFile("/proc/self/status")
	_, memory := os.Open("/proc/self/mem")
	_, dial := net.Dial("tcp", os.Getenv(confined))
	for what, err := range map[string]error{"a file": file, "memory": memory, "the network": dial, "a signal": syscall.Kill(before, 0)} {
		if !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
			fmt.Print("the process got ", what, "; ")
		}
	}
	os.Exit(0)
}

func TestTheProcessCanOpenNothingAnyMore(t *testing.T) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < scopedVersion {
		testenv.Missing(t, "the kernel has no Landlock of version 6", "boot Linux 6.12 or newer with landlock among its security modules")
	}
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0); errors.Is(errno, syscall.ENOTSUP) {
		t.Skip("a program with C can't; images have none")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it accepts nothing
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = []string{confined + "=" + listener.Addr().String()}
	if said, err := process.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%v: %s", err, said)
	}
}
