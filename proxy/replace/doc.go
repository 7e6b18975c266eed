// SPDX-License-Identifier: Apache-2.0

// Package replace puts a file or a link in the place of another in one step, so that nginx
// and the next agent never find half of it. What was begun and is left over by a crash is
// written over. One process replaces a path at a time.
package replace
