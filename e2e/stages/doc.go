// SPDX-License-Identifier: Apache-2.0

// Package stages runs the tests of the repository, stage by stage, and reports how
// many tests passed, failed and were skipped, and which took longest.
//
// A stage that fails does not stop those that follow. Every command is one that a
// developer can type; nothing but the report and the caches depends on this package.
package stages
