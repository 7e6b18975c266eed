// SPDX-License-Identifier: Apache-2.0

package proxy

import "golang.org/x/sys/unix"

// Keeper holds files open for an agent that crashes, and for the one that takes
// over from it. A file is a descriptor: an os.File would make it block, for all
// processes that share it.
type Keeper interface {
	// Kept are the files that a former agent left, by name.
	Kept() map[string]int
	// Keep holds a file open under a name that is not in use.
	Keep(name string, fd int) error
	// Drop closes what is kept under a name.
	Drop(name string) error
}

// NoKeeper is the Keeper of an agent without a supervisor: when it ends, its files
// are gone.
type NoKeeper struct{}

// Kept is nothing.
func (NoKeeper) Kept() map[string]int { return nil }

// Keep does nothing.
func (NoKeeper) Keep(string, int) error { return nil }

// Drop does nothing.
func (NoKeeper) Drop(string) error { return nil }

// closeFile closes a descriptor. There is nothing to be done about an error: the
// descriptor is gone all the same.
func closeFile(fd int) { _ = unix.Close(fd) }
