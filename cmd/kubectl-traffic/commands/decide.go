// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// decision has the flags of a command that decides about a release.
type decision struct {
	cluster *cluster
	output  *output
	dryRun  *string
	wish    rolloutview.Wish
}

// decideWords are what a command says of itself.
type decideWords struct{ short, long, example string }

// boundTo is told in the help of each decision.
const boundTo = `

The decision names the revision that is being released when the command runs, or the one of --revision, and is never carried out for another
one. It needs the verb "promote" on the Rollout, beside the right to patch it. When another user decides something else at the same moment, the
later of the two is not written and the exit status is 1.`

func newDecision(c *cluster, verb string, action v1alpha1.ControlAction, words decideWords) (*cobra.Command, *decision) {
	d := &decision{cluster: c, wish: rolloutview.Wish{Action: action}}
	cmd := &cobra.Command{
		Use: verb + " ROLLOUT", Short: words.short, Long: words.long + boundTo, Example: words.example,
		Args: usage(cobra.ExactArgs(1)), ValidArgsFunction: first(c.rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.wish.Revision, "revision", "", "the revision that you have looked at; refused when another one is released by now")
	flags.StringVar(&d.wish.Reason, "reason", "", "why; kept in the history")
	complete(cmd, "revision", cobra.NoFileCompletions)
	complete(cmd, "reason", cobra.NoFileCompletions)
	d.output = addOutput(cmd, asName, asJSON, asYAML)
	d.dryRun = addDryRun(cmd)
	return cmd, d
}

func newPromoteCommand(c *cluster) *cobra.Command {
	cmd, d := newDecision(c, "promote", v1alpha1.ControlPromote, decideWords{
		"End the gate and the hold of a step",
		`Promote ends the gate (until: Manual) and the hold of the present step. Evidence is still needed: the step ends when it has passed.

With --full all steps that are left are skipped: the version gets all traffic and becomes stable, whatever the evidence.`,
		`  kubectl traffic rollout promote website --reason "looks good on the dashboard"
  kubectl traffic rollout promote website --full --reason "fixes the outage"`,
	})
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
	cmd.Flags().Int32Var(&d.wish.Step, "step", 0, "the step to end, counted from 1; the present one when unset")
	complete(cmd, "step", cobra.NoFileCompletions)
}

func newAbortCommand(c *cluster) *cobra.Command {
	cmd, _ := newDecision(c, "abort", v1alpha1.ControlAbort, decideWords{
		"Roll back",
		`Abort rolls the release back: all traffic goes back to the stable version, then the pods of the new one go. Windows, freezes and
spec.paused do not hold it up.`,
		`  kubectl traffic rollout abort website --reason "wrong prices"`,
	})
	return cmd
}

func newRetryCommand(c *cluster) *cobra.Command {
	cmd, _ := newDecision(c, "retry", v1alpha1.ControlRetry, decideWords{
		"Release a version again that was rolled back",
		`Retry releases a version from the first step again that was rolled back for a reason outside of it. Evidence is collected anew.`,
		`  kubectl traffic rollout retry website --reason "the database is back"`,
	})
	return cmd
}

func newSkipCommand(c *cluster) *cobra.Command {
	cmd, d := newDecision(c, "skip", v1alpha1.ControlSkip, decideWords{
		"End a step without evidence",
		`Skip ends the present step, whether or not there is evidence.`,
		`  kubectl traffic rollout skip website --reason "no traffic at night"`,
	})
	d.addStep(cmd)
	return cmd
}

func (d *decision) run(cmd *cobra.Command, name string) error {
	api, ro, err := d.cluster.rollout(cmd.Context(), d.output, d.dryRun, name)
	if err != nil {
		return err
	}
	control, err := d.decide(cmd.Context(), api, ro)
	if err != nil {
		return err
	}
	step := ""
	if control.Step != nil {
		step = fmt.Sprintf(" in step %d", *control.Step)
	}
	return d.output.done(cmd, api, ro, fmt.Sprintf("asked for: %s of revision %s%s", control.Action, control.Revision, step), *d.dryRun)
}

// decide writes the decision, and reads the Rollout again when it was changed since:
// mostly that is Serin, which writes how the release goes, and once in a while another user
// else who has decided.
func (d *decision) decide(ctx context.Context, api client.Client, ro *v1alpha1.Rollout) (v1alpha1.Control, error) {
	control, err := rolloutview.Decide(ro, d.wish)
	if err != nil {
		return control, err
	}
	before := ro.DeepCopy()
	stale := false
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if stale {
			decided, err := d.again(ctx, api, ro, rolloutview.Race{Before: before, Mine: control})
			if decided || err != nil {
				return err
			}
		}
		stale = true
		patch, err := controlPatch(control, ro.ResourceVersion)
		if err != nil {
			return err
		}
		return patchRollout(ctx, api, ro, patch, *d.dryRun)
	})
	if *d.dryRun == dryClient {
		ro.Spec.Control = &control
	}
	return control, err
}

// again reads the Rollout once more. It returns whether another user has decided the same by
// now, so that there is nothing left to write.
func (d *decision) again(ctx context.Context, api client.Client, ro *v1alpha1.Rollout, r rolloutview.Race) (bool, error) {
	key := client.ObjectKeyFromObject(ro)
	*ro = v1alpha1.Rollout{}
	if err := api.Get(ctx, key, ro); err != nil {
		return false, err
	}
	if decided, err := r.Decided(ro); decided || err != nil {
		return decided, err
	}
	// What is released, and how far it is, may be another thing by now.
	control, err := rolloutview.Decide(ro, d.wish)
	if err != nil {
		return false, err
	}
	return false, r.Still(control)
}

// controlPatch replaces spec.control of one version of the Rollout. A "test" of the
// version would be answered like an object that is not valid; writing it is answered
// with a conflict when it is another one.
func controlPatch(control v1alpha1.Control, version string) (client.Patch, error) {
	text, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
		{"op": "add", "path": "/spec/control", "value": control},
	})
	return client.RawPatch(types.JSONPatchType, text), err
}

// rollout reads the Rollout that a command changes.
func (c *cluster) rollout(ctx context.Context, o *output, dry *string, name string) (client.Client, *v1alpha1.Rollout, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	if err := checkDryRun(*dry); err != nil {
		return nil, nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, nil, err
	}
	api, err := c.client()
	if err != nil {
		return nil, nil, err
	}
	ro := &v1alpha1.Rollout{}
	return api, ro, api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rolloutName(name)}, ro)
}

// patchRollout writes, as far as --dry-run allows.
func patchRollout(ctx context.Context, api client.Client, o client.Object, p client.Patch, dry string) error {
	switch dry {
	case dryClient:
		return nil
	case dryServer:
		return api.Patch(ctx, o, p, client.DryRunAll)
	}
	return api.Patch(ctx, o, p)
}

// done prints what was done to an object.
func (o *output) done(cmd *cobra.Command, api client.Client, object client.Object, did, dry string) error {
	if o.object() {
		return o.print(cmd.OutOrStdout(), api.Scheme(), object)
	}
	switch dry {
	case dryClient:
		did += " (dry run)"
	case dryServer:
		did += " (server dry run)"
	}
	gvk, err := api.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/%s %s\n", lowerGroupKind(gvk.GroupKind()), object.GetName(), did)
	return err
}
