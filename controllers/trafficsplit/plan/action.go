// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/serin-dev/serin/traffic"
)

// Write is what an action is about. It fails when its object is no longer as observed.
type Write struct {
	// Object that is written, with the UID and resourceVersion that it must have.
	Object traffic.Object
	// Why the action is taken, for the log.
	Why string
}

// The actions, beside those on the finalizer (kit.AddFinalizer and kit.RemoveFinalizer).
type (
	// Apply an object of the data plane.
	Apply struct{ Write }
	// Drain keeps the pods of the root Service among its endpoints for a while.
	Drain struct{ Write }
	// AddEndpoints makes the proxies endpoints of the root Service, beside its own pods.
	AddEndpoints struct{ Write }
	// CutOver the root Service to the proxies: their key is added to its selector, which no
	// pod of its own has.
	CutOver struct{ Write }
	// PinRoot adds the keys of a backend to what the root Service selects by.
	PinRoot struct{ Write }
	// UnpinRoot removes those keys.
	UnpinRoot struct{ Write }
	// RestoreRoot removes the proxies' key from the selector of the root Service.
	RestoreRoot struct{ Write }
	// Restore a patched object to what its owner wants without the split.
	Restore struct{ Write }
	// Delete an object of the data plane.
	Delete struct{ Write }
)

func (w Write) line(format string) string {
	name := w.Object.Name
	if w.Object.Namespace != "" {
		name = w.Object.Namespace + "/" + name
	}
	return fmt.Sprintf(format, w.Object.Kind+" "+name) + " because " + w.Why
}

func (a Apply) String() string { return a.line("apply %s") }
func (a Drain) String() string { return a.line("drain the pods of %s") }
func (a AddEndpoints) String() string {
	return a.line("make the proxies endpoints of %s")
}
func (a CutOver) String() string     { return a.line("cut %s over to the proxies") }
func (a PinRoot) String() string     { return a.line("pin %s") }
func (a UnpinRoot) String() string   { return a.line("unpin %s") }
func (a RestoreRoot) String() string { return a.line("restore the selector of %s") }
func (a Restore) String() string     { return a.line("restore %s") }
func (a Delete) String() string      { return a.line("delete %s") }
