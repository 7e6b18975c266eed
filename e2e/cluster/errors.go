// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
)

// NotPossibleError says that a cluster cannot run on this machine, or not for
// this user, whatever is tried: tests skip, where another error fails them.
type NotPossibleError struct {
	// Reason is what is in the way.
	Reason string
	// Remedy is what a person can do about it.
	Remedy string
}

// ErrNotPossible is what [errors.Is] finds in every [NotPossibleError].
var ErrNotPossible = errors.New("a local cluster is not possible here")

// Error says what is in the way and what to do.
func (e *NotPossibleError) Error() string {
	return fmt.Sprintf("%v: %s; %s", ErrNotPossible, e.Reason, e.Remedy)
}

// Is makes the error match [ErrNotPossible].
func (e *NotPossibleError) Is(target error) bool { return target == ErrNotPossible }
