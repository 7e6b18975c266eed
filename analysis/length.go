// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"time"
)

const (
	// WindowLength is how long a window is: the time between two readings of the
	// counters. The flag --window of the manager changes it.
	WindowLength = 5 * time.Second
	// StaleAfter is how old the newest window may be for a verdict to count.
	StaleAfter = 4 * WindowLength
	// MaxGap is the longest stretch of time that one window may cover. Beyond it,
	// drift inside the window would no longer be shared by both variants.
	MaxGap = time.Minute

	minWindowLength = time.Second
	// A reading that failed makes the next window twice as long, and that must not be stale.
	maxWindowLength = StaleAfter / 2
)

// ValidateWindowLength refuses windows that are too short to count in, or too long for a
// verdict to last until the next one.
func ValidateWindowLength(length time.Duration) error {
	if length < minWindowLength || length > maxWindowLength {
		return fmt.Errorf("%s is outside %s to %s; give a duration such as %s", length, minWindowLength, maxWindowLength, WindowLength)
	}
	return nil
}
