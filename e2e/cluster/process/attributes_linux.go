// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// childAttributes tie a program to this process and keep the terminal's
// interrupts from it: its parent decides in which order things stop.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
