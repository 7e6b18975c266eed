// SPDX-License-Identifier: Apache-2.0

// Package build tells of which version a command is.
package build
