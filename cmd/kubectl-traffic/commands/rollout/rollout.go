// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

// rolloutVerbs make the commands of the group, in the order of the help.
var rolloutVerbs = []func(*cli.Cluster) *cobra.Command{
	newListCommand,
	newGetCommand,
	newExplainCommand,
	newStatusCommand,
	newHistoryCommand,
	newInitCommand,
	newPlanCommand,
	newLintCommand,
	newPromoteCommand,
	newSkipCommand,
	newAbortCommand,
	newRetryCommand,
	newPauseCommand,
	newResumeCommand,
	newUndoCommand,
	newRecordCommand,
	func(*cli.Cluster) *cobra.Command { return newReplayCommand() },
}

// New makes the command rollout with those below it.
func New(c *cli.Cluster) *cobra.Command {
	group := &cobra.Command{
		Use:     "rollout",
		Aliases: []string{"rollouts", "sro"},
		Short:   "Manage releases of Rollouts",
		Args:    cli.Usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, verb := range rolloutVerbs {
		group.AddCommand(verb(c))
	}
	return group
}
