// SPDX-License-Identifier: Apache-2.0

// Package testenv says what happens to a test that needs what this machine lacks, and finds
// ports that are free. It is used by tests only.
package testenv
