// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// mostRefusals is how many looks a status may be older than what was repaired.
const mostRefusals = 10

// statusWait has the flags of status, and what it has seen.
type statusWait struct {
	wanted  rolloutview.Wanted
	timeout time.Duration
	arrival rolloutview.Arrival
	// refusals counts the looks, one after the other, at a release that can't begin.
	refusals int
}

func newStatusCommand(c *cli.Cluster) *cobra.Command {
	w := &statusWait{}
	cmd := &cobra.Command{
		Use:   "status ROLLOUT",
		Short: "Wait until a version is stable, for pipelines",
		Long: `Status waits for one version: the Deployment's current template when the command starts, the revision of --revision,
or the first template with the image of --image. It writes a line for each change.

The exit status is 0 when the version is stable, at once if nothing had to change. It is 3 at once if the version is
rolled back or superseded, after ten seconds in which the Rollout reports that its release can't begin, and after the
time-out. Unlike kubectl wait, the command does not take the success of the previous version for that of the new one.`,
		Example: `  kubectl apply -f website.yaml && kubectl traffic rollout status website --timeout=30m
  kubectl traffic rollout status website --image=example.org/website:1.7.0`,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.wanted.Revision != "" && w.wanted.Image != "" {
				return cli.UsageErrorf("--revision, --image: name a version by one of them; remove the other")
			}
			none := cli.DryNone
			api, ro, err := load(cmd.Context(), c, &cli.Output{}, &none, args[0])
			if err != nil {
				return err
			}
			if w.wanted.Revision == "" && deploymentOf(ro) == "" {
				return cli.UsageErrorf("--revision is missing: the Rollout %s does not release a Deployment, so name the revision to wait for", ro.Name)
			}
			return cli.Wait(cmd.Context(), w.timeout, w.watch(api, client.ObjectKeyFromObject(ro), cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&w.wanted.Revision, "revision", "", "revision to wait for: the pod-template-hash of its pods")
	cmd.Flags().StringVar(&w.wanted.Image, "image", "", "container image of the version to wait for")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait, such as 15m; no limit if 0")
	for _, name := range []string{"revision", "image", "timeout"} {
		cli.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// watch waits for the version. Which one it is, is decided once: what is applied later is
// another version.
func (w *statusWait) watch(api client.Client, key client.ObjectKey, out io.Writer) cli.Watch {
	said := ""
	return cli.Watch{
		Look: func(ctx context.Context) error {
			arrival, err := arrivalOf(ctx, api, key, w.wanted)
			if err == nil {
				w.arrival, w.wanted.Revision = arrival, arrival.Revision
				if w.refusals++; !arrival.Refused {
					w.refusals = 0
				}
			}
			return err
		},
		Show: func(failed error) (bool, error) {
			line := w.arrival.Message
			if failed != nil {
				line = "It can't be read at present, and is tried again: " + failed.Error()
			}
			if line = cli.OneLine(line); line != said {
				fmt.Fprintln(out, line)
				said = line
			}
			if failed == nil && (w.arrival.Missed || w.refusals >= mostRefusals) {
				return true, cli.Missed(errors.New(w.arrival.Message))
			}
			return failed == nil && w.arrival.Stable, nil
		},
		End: func(end, last error) error {
			why := cli.Ended(end, w.timeout)
			if last != nil {
				return cli.Missed(fmt.Errorf("whether the version is stable is not known, and %s; it could not be read: %w", why, last))
			}
			return cli.Missed(fmt.Errorf("the version is not stable yet, and %s: %s", why, w.arrival.Message))
		},
	}
}

// arrivalOf reads the workload first: a Rollout that was read before it could be that of the
// version before.
func arrivalOf(ctx context.Context, api client.Client, key client.ObjectKey, wanted rolloutview.Wanted) (rolloutview.Arrival, error) {
	ro := &v1alpha1.Rollout{}
	if err := api.Get(ctx, key, ro); err != nil {
		return rolloutview.Arrival{}, err
	}
	var w rolloutview.Workload
	if name := deploymentOf(ro); name != "" {
		w.Deployment = &appsv1.Deployment{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, w.Deployment); err != nil {
			return rolloutview.Arrival{}, err
		}
		selector, err := metav1.LabelSelectorAsSelector(w.Deployment.Spec.Selector)
		if err != nil {
			return rolloutview.Arrival{}, fmt.Errorf("the Deployment %s: spec.selector: %w", name, err)
		}
		var sets appsv1.ReplicaSetList
		if err := api.List(ctx, &sets, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return rolloutview.Arrival{}, err
		}
		w.ReplicaSets = sets.Items
		if err := api.Get(ctx, key, ro); err != nil {
			return rolloutview.Arrival{}, err
		}
	}
	return rolloutview.Arrived(ro, w, wanted), nil
}

// deploymentOf is the name of the Deployment that a Rollout releases; "" when it releases
// anything else.
func deploymentOf(ro *v1alpha1.Rollout) string {
	if ro.Spec.Services == nil && ro.Spec.WorkloadRef.Kind == "Deployment" {
		return ro.Spec.WorkloadRef.Name
	}
	return ""
}
