// SPDX-License-Identifier: Apache-2.0

// Package replay runs the judge over recorded windows, so that users can tune
// settings on yesterday's traffic, and anyone can check the rule.
//
// It reads windows in JSON, one a line, optionally a Rollout in YAML for the
// settings and the steps, and writes one line of JSON for each window. What is
// malformed is an error that names the line: nothing is skipped, and nothing is
// made up. The judge and the reaction are those of the operator.
package replay
