// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"os"

	"golang.org/x/sys/unix"
)

// punchHole frees a range of a file. The size of the file stays.
func punchHole(file *os.File, offset, length int64) error {
	for {
		err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
		if err != unix.EINTR {
			return err
		}
	}
}
