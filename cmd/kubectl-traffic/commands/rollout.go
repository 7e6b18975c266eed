// SPDX-License-Identifier: Apache-2.0

package commands

import "github.com/spf13/cobra"

// rolloutVerbs make the commands of the group, in the order of the help.
var rolloutVerbs = []func(*cluster) *cobra.Command{
	newListCommand,
	newGetCommand,
	newExplainCommand,
	newHistoryCommand,
	newPlanCommand,
	newLintCommand,
	newPromoteCommand,
	newSkipCommand,
	newAbortCommand,
	newRetryCommand,
	newPauseCommand,
	newResumeCommand,
	newUndoCommand,
	func(*cluster) *cobra.Command { return newReplayCommand() },
}

func newRolloutCommand(c *cluster) *cobra.Command {
	group := &cobra.Command{
		Use:     "rollout",
		Aliases: []string{"rollouts", "sro"},
		Short:   "Look after releases of Rollouts",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range rolloutVerbs {
		group.AddCommand(verb(c))
	}
	return group
}
