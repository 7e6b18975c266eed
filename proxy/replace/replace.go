// SPDX-License-Identifier: Apache-2.0

package replace

import (
	"errors"
	"io/fs"
	"os"
)

// File writes a file so that a reader finds the content of before or this one.
func File(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// Link makes path a link to target in one step.
func Link(target, path string) error {
	next := path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, path)
}
