// SPDX-License-Identifier: Apache-2.0

// Package sourcetest holds what the tests of all sources need: a server that answers as
// they say, and the ways in which every server can fail. It is used by tests only.
package sourcetest
