// SPDX-License-Identifier: Apache-2.0

// Package debounce puts off what would be repeated at once: writes of an object that
// another controller is writing, and reports that are out of date soon. Everything is a
// value that the time is handed to; Waits keeps such values by key. Whatever it puts off is
// done a little later, so that a restart that forgets it changes nothing. It decides nothing
// but when.
package debounce
