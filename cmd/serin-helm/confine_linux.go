// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What later versions of Landlock can refuse, beside files.
const (
	networkVersion = 4
	scopedVersion  = 6
	// files are the accesses to files that the first version knows.
	files = 1<<13 - 1
)

// confine takes from the process the right to open files and connections, for ever. What is
// open stays so. Kernels without Landlock, or with an older version, refuse less.
func confine() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return nil // not offered by this kernel
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: files}
	size := unsafe.Sizeof(rules.Handled_access_fs)
	if version >= networkVersion {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(rules.Handled_access_net)
	}
	if version >= scopedVersion {
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(rules.Scoped)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0) //nolint:gosec // as the system call takes it
	if errno != 0 {
		return fmt.Errorf("make rules of Landlock: %w", errno)
	}
	defer unix.Close(int(ruleset)) //nolint:errcheck // nothing was written to it
	if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0); err != nil {
		return fmt.Errorf("apply rules of Landlock: %w", err)
	}
	return nil
}

// everyThread makes a system call in each thread of the process, which programs without C can.
func everyThread(call, first, second uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(call, first, second, 0, 0, 0, 0)
	if errno != 0 && !errors.Is(errno, syscall.ENOTSUP) {
		return errno
	}
	return nil
}
