// SPDX-License-Identifier: Apache-2.0

package fdstore

import "golang.org/x/sys/unix"

// Store holds files open for an agent that crashes, and for the one that comes
// after it. A file is a descriptor: an os.File would make it block, for all
// processes that share it.
type Store interface {
	// Kept are the files that a previous agent left, by name.
	Kept() map[string]int
	// Keep holds a file open under a name that is not in use.
	Keep(name string, fd int) error
	// Drop closes what is kept under a name.
	Drop(name string) error
}

// None is the Store of an agent without a supervisor: when it ends, its files
// are gone.
type None struct{}

// Kept is nothing.
func (None) Kept() map[string]int { return nil }

// Keep does nothing.
func (None) Keep(string, int) error { return nil }

// Drop does nothing.
func (None) Drop(string) error { return nil }

// SocketPrefix begins the names of the sockets that clients connect to. While one is
// kept, nginx serves.
const SocketPrefix = "listen "

// Close closes a descriptor. There is nothing to be done about an error: the
// descriptor is gone all the same.
func Close(fd int) { _ = unix.Close(fd) }
