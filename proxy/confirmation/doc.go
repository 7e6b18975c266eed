// SPDX-License-Identifier: Apache-2.0

// Package confirmation is what a proxy says that it serves: the one format, for the agent
// that says it and for the operator that reads it. It decides nothing.
package confirmation
