// SPDX-License-Identifier: Apache-2.0

// Package registry serves a registry of images with a password from this process, for tests
// of what is pushed and pulled. Its content is in memory.
package registry
