// SPDX-License-Identifier: Apache-2.0

package cli

import "strings"

// RolloutName takes the kind off a name, as in rollout/website.
func RolloutName(arg string) string {
	kind, name, found := strings.Cut(arg, "/")
	switch kind {
	case "rollout", "rollouts", "sro", "rollout.serin.dev", "rollouts.serin.dev":
		if found {
			return name
		}
	}
	return arg
}
