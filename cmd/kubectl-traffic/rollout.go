// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// rolloutVerbs make the commands of the group, in the order of the help.
var rolloutVerbs = []func() *cobra.Command{
	newReplayCommand,
}

func newRolloutCommand() *cobra.Command {
	group := &cobra.Command{
		Use:     "rollout",
		Aliases: []string{"rollouts", "ro"},
		Short:   "Look after releases of Rollouts",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range rolloutVerbs {
		group.AddCommand(verb())
	}
	return group
}
