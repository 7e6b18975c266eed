// SPDX-License-Identifier: Apache-2.0

// Package freeze reports in the status of a Freeze whether it is in force. It decides
// nothing about releases: the Rollout controller reads the specs of Freezes itself, by
// the same rules of package schedule.
package freeze
