// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// decision has the flags of a command that decides about a release.
type decision struct {
	cluster *cli.Cluster
	output  *cli.Output
	dryRun  *string
	wish    rolloutview.Wish
}

// boundTo is in the help of each decision.
const boundTo = `

The decision applies to one revision only: the one that is being released when the command runs, or the one that
--revision names. You need the permissions to "promote" and to "patch" the Rollout. If another user decides at the
same time, the later decision fails with exit status 1.`

func newDecision(c *cli.Cluster, verb string, action v1alpha1.ControlAction, words cli.Words) (*cobra.Command, *decision) {
	d := &decision{cluster: c, wish: rolloutview.Wish{Action: action}}
	cmd := &cobra.Command{
		Use: verb + " ROLLOUT", Short: words.Short, Long: words.Long + boundTo, Example: words.Example,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.wish.Revision, "revision", "", "the revision that the decision is for; refused if another one is being released")
	flags.StringVar(&d.wish.Reason, "reason", "", "the reason, which the history keeps")
	cli.Complete(cmd, "revision", cobra.NoFileCompletions)
	cli.Complete(cmd, "reason", cobra.NoFileCompletions)
	d.output = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	d.dryRun = cli.AddDryRun(cmd)
	return cmd, d
}

func newPromoteCommand(c *cli.Cluster) *cobra.Command {
	cmd, d := newDecision(c, "promote", v1alpha1.ControlPromote, cli.NewWords(
		"Approve a step, or promote the release",
		`Promote approves the current step: it ends the wait for approval (until: Manual) and the hold. Evidence is still
needed: the step ends when the analysis has passed.

With --full, all remaining steps are skipped: the canary gets all traffic and becomes stable, whatever the evidence.`,
		`  kubectl traffic rollout promote website --reason "looks good on the dashboard"
  kubectl traffic rollout promote website --full --reason "fixes the outage"`,
	))
	full := cmd.Flags().Bool("full", false, "skip all remaining steps")
	d.addStep(cmd)
	cmd.PreRun = func(*cobra.Command, []string) {
		if *full {
			d.wish.Action = v1alpha1.ControlPromoteFull
		}
	}
	return cmd
}

// addStep adds the flag --step.
func (d *decision) addStep(cmd *cobra.Command) {
	cmd.Flags().Int32Var(&d.wish.Step, "step", 0, "the step to end, counted from 1 as in \"step 1/2\"; the current step if not set")
	cli.Complete(cmd, "step", cobra.NoFileCompletions)
}

func newAbortCommand(c *cli.Cluster) *cobra.Command {
	cmd, _ := newDecision(c, "abort", v1alpha1.ControlAbort, cli.NewWords(
		"Roll back",
		`Abort rolls the release back: all traffic goes to the stable version, then the canary's pods are removed. Windows,
freezes and spec.paused do not delay it.`,
		`  kubectl traffic rollout abort website --reason "wrong prices"`,
	))
	return cmd
}

func newRetryCommand(c *cli.Cluster) *cobra.Command {
	cmd, _ := newDecision(c, "retry", v1alpha1.ControlRetry, cli.NewWords(
		"Release a version again after a rollback",
		`Retry restarts, at the first step and with new evidence, the release of a version that was rolled back for a reason
outside the version.`,
		`  kubectl traffic rollout retry website --reason "the database is back"`,
	))
	return cmd
}

func newSkipCommand(c *cli.Cluster) *cobra.Command {
	cmd, d := newDecision(c, "skip", v1alpha1.ControlSkip, cli.NewWords(
		"End a step without evidence",
		`Skip ends the current step, whatever the evidence.`,
		`  kubectl traffic rollout skip website --reason "no traffic at night"`,
	))
	d.addStep(cmd)
	return cmd
}

func (d *decision) run(cmd *cobra.Command, name string) error {
	if d.wish.Action != v1alpha1.ControlAbort { // a rollback never waits for another plugin
		if err := d.cluster.CheckSkew(); err != nil {
			return err
		}
	}
	api, ro, err := load(cmd.Context(), d.cluster, d.output, d.dryRun, name)
	if err != nil {
		return err
	}
	control, err := rolloutapi.Writer{API: api, DryRun: *d.dryRun}.Decide(cmd.Context(), ro, d.wish)
	if err != nil {
		return err
	}
	step := ""
	if control.StepIndex != nil {
		step = fmt.Sprintf(" in step %d", *control.StepIndex+1)
	}
	return d.output.Done(cmd, api, ro, fmt.Sprintf("requested: %s of revision %s%s", control.Action, control.Revision, step), *d.dryRun)
}

// load reads the Rollout that a command changes.
func load(ctx context.Context, c *cli.Cluster, o *cli.Output, dry *string, name string) (client.Client, *v1alpha1.Rollout, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	if err := cli.CheckDryRun(*dry); err != nil {
		return nil, nil, err
	}
	api, namespace, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	ro := &v1alpha1.Rollout{}
	return api, ro, api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rolloutName(name)}, ro)
}

// rolloutName takes the kind off a name, as in rollout/website.
func rolloutName(arg string) string { return cli.RolloutName(arg) }
