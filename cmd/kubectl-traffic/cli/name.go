// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
)

// RolloutName takes the kind off a name, as in rollout/website.
func RolloutName(arg string) string {
	return WithoutKind(arg, "rollout", "rollouts", "sro", "rollout.serin.dev", "rollouts.serin.dev")
}

// WithoutKind takes the kind off a name, if it is one of these.
func WithoutKind(arg string, kinds ...string) string {
	if kind, name, found := strings.Cut(arg, "/"); found && slices.Contains(kinds, kind) {
		return name
	}
	return arg
}
