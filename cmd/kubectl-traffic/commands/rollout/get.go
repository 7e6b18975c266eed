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
		Words: cli.NewWords("List Rollouts with what they do", "", `  kubectl traffic rollout list
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
		Short: "Show a release as a tree, and follow it",
		Long: `Get shows a Rollout with its versions, their ReplicaSets and pods, the traffic that each version gets, and what is waited for.

--watch follows it: on a terminal the tree is drawn again in its place, elsewhere a line is written for each change. It ends with --timeout, or with
--until=ready when the Rollout is ready. Then the exit status is 0; it is 3 when the Rollout can't become ready without a user's help,
as after a rollback, or when the time is over. While the API server does not answer, or has too much to do, the last picture stays with the
error below it. When the Rollout is gone or may not be read any more, following ends and the exit status is 1.

The Rollout stays ready after a change of its Deployment until Serin has seen that change.`,
		Example: `  kubectl traffic rollout get website --watch
  kubectl traffic rollout get website --until=ready --timeout=15m`,
		Args: cli.Usage(cobra.ExactArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return g.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "follow the release")
	cmd.Flags().StringVar(&g.until, "until", "", "follow the release until it is: "+untilReady)
	cmd.Flags().DurationVar(&g.timeout, "timeout", 0, "how long to follow it, such as 15m; without end when 0")
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
