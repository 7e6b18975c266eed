// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
)

func newPauseCommand(c *cli.Cluster) *cobra.Command {
	return newPausing(c, "pause", true, cli.NewWords(
		"Pause a release", `Pause sets spec.paused: no step begins or ends, and the weights stay as they are. The canary is still analysed, and
rolled back if it is bad.`,
		`  kubectl traffic rollout pause website`,
	))
}

func newResumeCommand(c *cli.Cluster) *cobra.Command {
	return newPausing(c, "resume", false, cli.NewWords(
		"Let a paused release go on", `Resume removes spec.paused.`, `  kubectl traffic rollout resume website`,
	))
}

func newPausing(c *cli.Cluster, verb string, paused bool, words cli.Words) *cobra.Command {
	var o *cli.Output
	var dry *string
	cmd := &cobra.Command{
		Use: verb + " ROLLOUT", Short: words.Short, Long: words.Long, Example: words.Example,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, ro, err := load(cmd.Context(), c, o, dry, args[0])
			if err != nil {
				return err
			}
			changed, err := rolloutapi.Writer{API: api, DryRun: *dry}.SetPaused(cmd.Context(), ro, paused)
			if err != nil {
				return err
			}
			if !changed {
				return o.Done(cmd, api, ro, "unchanged", *dry)
			}
			return o.Done(cmd, api, ro, verb+"d", *dry)
		},
	}
	o = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	dry = cli.AddDryRun(cmd)
	return cmd
}

func newUndoCommand(c *cli.Cluster) *cobra.Command {
	var o *cli.Output
	var dry *string
	var revision string
	cmd := &cobra.Command{
		Use:   "undo ROLLOUT",
		Short: "Restore the template of a previous version",
		Long: `Undo restores the Deployment's pod template to that of the stable version, or of the revision that --to-revision
names. During a release, this removes the canary; after a rollback, it replaces the rejected template. An earlier
version can be restored as long as the Deployment keeps its ReplicaSet, and is released like any other change.

If the Deployment comes from Git, revert the commit there instead: the next synchronisation would bring the change
back.`,
		Example: `  kubectl traffic rollout undo website
  kubectl traffic rollout undo website --to-revision=5d4f8c7b9`,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, ro, err := load(cmd.Context(), c, o, dry, args[0])
			if err != nil {
				return err
			}
			undone, err := rolloutapi.Writer{API: api, DryRun: *dry}.Undo(cmd.Context(), ro, revision)
			if err != nil {
				return err
			}
			did := "unchanged"
			if undone.Changed {
				did = "has the template of revision " + undone.Revision + " again"
			}
			return o.Done(cmd, api, undone.Deployment, did, *dry)
		},
	}
	cmd.Flags().StringVar(&revision, "to-revision", "", "the revision to restore, as kubectl traffic rollout history shows it; the stable one if not set")
	cli.Complete(cmd, "to-revision", cobra.NoFileCompletions)
	o = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	dry = cli.AddDryRun(cmd)
	return cmd
}
