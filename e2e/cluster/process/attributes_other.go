// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "syscall"

// childAttributes keep the terminal's interrupts from a program. Only Linux can
// tie its life to its parent's.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
