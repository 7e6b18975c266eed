// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

// rolloutName takes the kind off a name, as in rollout/website.
func rolloutName(arg string) string {
	kind, name, found := strings.Cut(arg, "/")
	switch kind {
	case "rollout", "rollouts", "sro", "rollout.serin.dev", "rollouts.serin.dev":
		if found {
			return name
		}
	}
	return arg
}

func newPauseCommand(c *cli.Cluster) *cobra.Command {
	return newPausing(c, "pause", true, cli.NewWords(
		"Stop new steps", `Pause sets spec.paused: no step begins or ends, and traffic stays where it is. The new version is still watched, and rolled back if it is bad.`,
		`  kubectl traffic rollout pause website`,
	))
}

func newResumeCommand(c *cli.Cluster) *cobra.Command {
	return newPausing(c, "resume", false, cli.NewWords(
		"Let a paused release go on", `Resume takes spec.paused away again.`, `  kubectl traffic rollout resume website`,
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
			if ro.Spec.Paused == paused {
				return o.Done(cmd, api, ro, "unchanged", *dry)
			}
			patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
			if err := cli.Patch(cmd.Context(), api, ro, client.RawPatch(types.MergePatchType, []byte(patch)), *dry); err != nil {
				return err
			}
			ro.Spec.Paused = paused
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
		Short: "Put the template of a previous version back",
		Long: `Undo puts the pod template of the stable version, or of the one that --to-revision names, back into the Deployment. During a release this takes
the new version out; after a rollback it ends the hold on the rejected template. The template of an earlier version is there as long as the
Deployment keeps its ReplicaSet, and is released like any other.

Where the Deployment comes from Git, revert the commit there instead, or it will be back with the next synchronisation.`,
		Example: `  kubectl traffic rollout undo website
  kubectl traffic rollout undo website --to-revision=5d4f8c7b9`,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, ro, err := load(cmd.Context(), c, o, dry, args[0])
			if err != nil {
				return err
			}
			return undo(cmd, api, ro, undoing{o, *dry, revision})
		},
	}
	cmd.Flags().StringVar(&revision, "to-revision", "", "the revision to return to, as kubectl traffic rollout history shows it; the stable one when unset")
	cli.Complete(cmd, "to-revision", cobra.NoFileCompletions)
	o = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	dry = cli.AddDryRun(cmd)
	return cmd
}

// undoing are the flags of undo.
type undoing struct {
	output   *cli.Output
	dry      string
	revision string
}

func undo(cmd *cobra.Command, api client.Client, ro *v1alpha1.Rollout, u undoing) error {
	workload := ro.Spec.WorkloadRef.Name
	if workload == "" {
		return fmt.Errorf("the Rollout %s releases two Services, whose pods you make yourself: put them back yourself", ro.Name)
	}
	if ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease {
		return fmt.Errorf("the Rollout %s releases the CanaryRelease %s, and Helm knows its revisions: use `helm rollback`, or `kubectl traffic canary deprecate %s` while it has not ended", ro.Name, workload, workload)
	}
	if u.revision == "" {
		if ro.Status.Stable == nil {
			return fmt.Errorf("the Rollout %s knows of no stable version yet; name one with --to-revision", ro.Name)
		}
		u.revision = ro.Status.Stable.Revision
	}
	set := &appsv1.ReplicaSet{}
	key := client.ObjectKey{Namespace: ro.Namespace, Name: workload + "-" + u.revision}
	if err := api.Get(cmd.Context(), key, set); err != nil {
		return fmt.Errorf("find the template of revision %s: %w", u.revision, err)
	}
	did := "unchanged"
	d := &appsv1.Deployment{}
	// The Deployment controller writes the status of a Deployment at any time.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := api.Get(cmd.Context(), client.ObjectKey{Namespace: ro.Namespace, Name: workload}, d); err != nil {
			return err
		}
		before := d.DeepCopy()
		putBack(d, set)
		if reflect.DeepEqual(before.Spec.Template, d.Spec.Template) {
			return nil
		}
		did = "has the template of revision " + u.revision + " again"
		return cli.Patch(cmd.Context(), api, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), u.dry)
	})
	if err != nil {
		return err
	}
	return u.output.Done(cmd, api, d, did, u.dry)
}

// putBack gives a Deployment the template of one of its ReplicaSets.
func putBack(d *appsv1.Deployment, set *appsv1.ReplicaSet) {
	set.Spec.Template.DeepCopyInto(&d.Spec.Template)
	delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
}
