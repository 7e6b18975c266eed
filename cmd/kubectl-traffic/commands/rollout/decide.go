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

The decision names the revision that is being released when the command runs, or the one of --revision, and is never carried out for another
one. It needs the verb "promote" on the Rollout, and the right to patch it. When another user decides something else at the same time, the
later of the two is not written and the exit status is 1.`

func newDecision(c *cli.Cluster, verb string, action v1alpha1.ControlAction, words cli.Words) (*cobra.Command, *decision) {
	d := &decision{cluster: c, wish: rolloutview.Wish{Action: action}}
	cmd := &cobra.Command{
		Use: verb + " ROLLOUT", Short: words.Short, Long: words.Long + boundTo, Example: words.Example,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.wish.Revision, "revision", "", "the revision that you have looked at; refused when another one is released by now")
	flags.StringVar(&d.wish.Reason, "reason", "", "why; kept in the history")
	cli.Complete(cmd, "revision", cobra.NoFileCompletions)
	cli.Complete(cmd, "reason", cobra.NoFileCompletions)
	d.output = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	d.dryRun = cli.AddDryRun(cmd)
	return cmd, d
}

func newPromoteCommand(c *cli.Cluster) *cobra.Command {
	cmd, d := newDecision(c, "promote", v1alpha1.ControlPromote, cli.NewWords(
		"End the gate and the hold of a step",
		`Promote ends the gate (until: Manual) and the hold of the present step. Evidence is still needed: the step ends when it has passed.

With --full all steps that are left are skipped: the version gets all traffic and becomes stable, whatever the evidence.`,
		`  kubectl traffic rollout promote website --reason "looks good on the dashboard"
  kubectl traffic rollout promote website --full --reason "fixes the outage"`,
	))
	full := cmd.Flags().Bool("full", false, "skip all steps that are left")
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
	cmd.Flags().Int32Var(&d.wish.Step, "step", 0, "the step to end, counted from 1 as in \"step 1/2\"; the present one when unset")
	cli.Complete(cmd, "step", cobra.NoFileCompletions)
}

func newAbortCommand(c *cli.Cluster) *cobra.Command {
	cmd, _ := newDecision(c, "abort", v1alpha1.ControlAbort, cli.NewWords(
		"Roll back",
		`Abort rolls the release back: all traffic goes to the stable version, then the pods of the new one go. Windows, freezes and
spec.paused do not hold it up.`,
		`  kubectl traffic rollout abort website --reason "wrong prices"`,
	))
	return cmd
}

func newRetryCommand(c *cli.Cluster) *cobra.Command {
	cmd, _ := newDecision(c, "retry", v1alpha1.ControlRetry, cli.NewWords(
		"Release a version again that was rolled back",
		`Retry releases a version from the first step again that was rolled back for a reason outside it. Evidence is collected anew.`,
		`  kubectl traffic rollout retry website --reason "the database is back"`,
	))
	return cmd
}

func newSkipCommand(c *cli.Cluster) *cobra.Command {
	cmd, d := newDecision(c, "skip", v1alpha1.ControlSkip, cli.NewWords(
		"End a step without evidence",
		`Skip ends the present step, with evidence or without.`,
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
