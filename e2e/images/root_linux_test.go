// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/serin-dev/serin/config/testenv"
)

// runInRoot runs a program that sees nothing but the folder, as the user that images run as.
func runInRoot(t *testing.T, root string, name string, args ...string) (string, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root may change the root folder of a program", "run the test as root")
	}
	command := exec.Command(name, args...)
	command.Err = nil // the program is looked for in the new root
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: Unprivileged, Gid: Unprivileged}}
	output, err := command.CombinedOutput()
	return string(output), err
}
