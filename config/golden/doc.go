// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test made with the files of what it is to make. It is used by
// tests only.
package golden
