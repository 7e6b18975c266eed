// SPDX-License-Identifier: Apache-2.0

// Package check has the commands that Helm runs as hooks: whether an installation works, and
// whether it may be removed. They change nothing.
package check
