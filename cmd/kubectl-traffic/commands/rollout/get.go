// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

func newListCommand(c *cli.Cluster) *cobra.Command {
	return cli.NewList(c, cli.Listing{
		Words: cli.NewWords("List Rollouts and their states",
			`List shows whether each Rollout is ready, its state (the reason of the condition Ready), the step of its release, and
the canary's live share of the traffic. With -o wide, it also shows the stable revision, the revision that is being
released or was rolled back last, and the message of the Rollout.`, `  kubectl traffic rollout list
  kubectl traffic rollout list -A -o wide`),
		Kind: "Rollouts", Heads: append(cli.Columns("NAME", "READY", "STATE", "STEP", "CANARY", "AGE"), cli.Wide("STABLE", "RELEASING", "STATUS")...),
		Empty: func() client.ObjectList { return &v1alpha1.RolloutList{} },
		Rows: func(list client.ObjectList, all bool, now time.Time) [][]string {
			return listRows(list.(*v1alpha1.RolloutList).Items, all, now) //nolint:forcetypeassert // as Empty makes it
		},
	})
}

func listRows(items []v1alpha1.Rollout, all bool, now time.Time) [][]string {
	var rows [][]string
	for i := range items {
		ro := &items[i]
		_, weight := rolloutview.Weights(ro)
		row := []string{ro.Name, rolloutview.Ready(ro), rolloutview.State(ro), rolloutview.Step(ro), weight, duration.HumanDuration(now.Sub(ro.CreationTimestamp.Time))}
		if all {
			row = append([]string{ro.Namespace}, row...)
		}
		rows = append(rows, append(row, revisionOf(ro.Status.Stable), revisionOf(ro.Status.Canary), rolloutview.Sentence(ro)))
	}
	return rows
}

func revisionOf(v *v1alpha1.VersionStatus) string {
	if v == nil {
		return cli.OrNone("")
	}
	return v.Revision
}

// getter has the flags of get.
type getter struct {
	cluster *cli.Cluster
	output  *cli.Output
	watch   bool
	until   string
	timeout time.Duration
}

// untilReady is the only state that can be waited for.
const untilReady = "ready"

func newGetCommand(c *cli.Cluster) *cobra.Command {
	g := &getter{cluster: c}
	cmd := &cobra.Command{
		Use:   "get ROLLOUT",
		Short: "Show a release as a tree, or watch it",
		Long: `Get shows a Rollout with its versions, their ReplicaSets and pods, the traffic of each version, and what the release
waits for.

--watch updates the tree in place on a terminal, and elsewhere writes a line for each change. It ends after --timeout,
or with --until=ready when the Rollout is ready. The exit status is then 0. It is 3 if the Rollout can't become ready
without a user's help, as after a rollback, or after the time-out. While the API server is unavailable or overloaded,
the last tree stays, with the error below it. If the Rollout is deleted or you lose the permission to read it, the
command ends with exit status 1.

After a change of its Deployment, the Rollout remains ready until Serin has seen the change.`,
		Example: `  kubectl traffic rollout get website --watch
  kubectl traffic rollout get website --until=ready --timeout=15m`,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "watch the release")
	cmd.Flags().StringVar(&g.until, "until", "", "watch the release until it is: "+untilReady)
	cmd.Flags().DurationVar(&g.timeout, "timeout", 0, "how long to watch, such as 15m; no limit if 0")
	cli.Complete(cmd, "until", cli.Fixed(untilReady))
	cli.Complete(cmd, "timeout", cobra.NoFileCompletions)
	g.output = cli.AddOutput(cmd, cli.AsName, cli.AsJSON, cli.AsYAML)
	return cmd
}

func (g *getter) check() error {
	switch {
	case g.until != "" && g.until != untilReady:
		return cli.UsageErrorf("--until: %q is not %s", g.until, untilReady)
	case g.until != "":
		g.watch = true
	case g.timeout != 0 && !g.watch:
		return cli.UsageErrorf("--timeout: ends --watch or --until; give one of them")
	}
	if g.watch && g.output.Form != "" {
		return cli.UsageErrorf("--output: can't be followed; leave --watch and --until out")
	}
	return nil
}

func (g *getter) run(cmd *cobra.Command, name string) error {
	if err := g.check(); err != nil {
		return err
	}
	none := cli.DryNone
	api, ro, err := load(cmd.Context(), g.cluster, g.output, &none, name)
	if err != nil {
		return err
	}
	if g.output.Object() {
		return g.output.Print(cmd.OutOrStdout(), api.Scheme(), ro)
	}
	look := func(ctx context.Context) (rolloutview.Snapshot, error) {
		return rolloutapi.Snapshot(ctx, api, client.ObjectKeyFromObject(ro))
	}
	if !g.watch {
		snapshot, err := look(cmd.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), rolloutview.Tree(snapshot))
		return err
	}
	return cli.Wait(cmd.Context(), g.timeout, g.watcher(look))
}
