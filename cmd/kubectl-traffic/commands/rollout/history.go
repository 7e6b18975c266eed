// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// maxEvents is how many of the latest events explain shows.
const maxEvents = 5

// newReader makes a command that reads one Rollout and prints.
func newReader(c *cli.Cluster, cmd *cobra.Command, forms []string, show func(*cobra.Command, client.Client, *v1alpha1.Rollout, *cli.Output) error) *cobra.Command {
	cmd.Args = cli.Usage(cobra.ExactArgs(1))
	cmd.ValidArgsFunction = cli.First(c.Rollouts)
	o := cli.AddOutput(cmd, forms...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		none := cli.DryNone
		api, ro, err := load(cmd.Context(), c, o, &none, args[0])
		if err != nil {
			return err
		}
		return show(cmd, api, ro, o)
	}
	return cmd
}

func newHistoryCommand(c *cli.Cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history ROLLOUT",
		Short: "List recent releases and the decisions of users",
		Long: `History lists the releases that ended, newest first, with their outcome and its reason. Below each of them are the
decisions of users in that release. A Rollout keeps the latest ten, or as many as its spec.historyLimit says.`,
		Example: `  kubectl traffic rollout history website`,
	}
	return newReader(c, cmd, []string{cli.AsJSON, cli.AsYAML}, func(cmd *cobra.Command, _ client.Client, ro *v1alpha1.Rollout, o *cli.Output) error {
		if o.Object() {
			return cli.PrintValue(cmd.OutOrStdout(), o.Form, append([]v1alpha1.HistoryEntry{}, ro.Status.History...))
		}
		if len(ro.Status.History) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "No release has ended yet.")
			return nil
		}
		var rows [][]string
		for _, e := range ro.Status.History {
			rows = append(rows, []string{e.Revision, e.Outcome, instant(e.StartedAt), instant(&e.EndedAt), e.Message})
			for _, i := range e.Interventions {
				rows = append(rows, []string{"", string(i.Action), "", i.Time.UTC().Format(time.RFC3339), fmt.Sprintf("by %s%s: %s", cli.OrNone(i.By), inStep(i), i.Reason)})
			}
		}
		return o.Table(cmd.OutOrStdout(), cli.Columns("REVISION", "OUTCOME", "STARTED", "ENDED", "MESSAGE"), rows)
	})
}

// inStep counts steps from 1, as all that is printed does; "" before the first step.
func inStep(i v1alpha1.Intervention) string {
	if i.StepIndex == nil {
		return ""
	}
	return fmt.Sprintf(" in step %d", *i.StepIndex+1)
}

func instant(t *metav1.Time) string {
	if t == nil {
		return cli.OrNone("")
	}
	return t.UTC().Format(time.RFC3339)
}

func newExplainCommand(c *cli.Cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ROLLOUT",
		Short: "Explain the state of a release",
		Long: `Explain says, in one sentence each, what the Rollout does or waits for, what the analysis found, when the release
continues, what users decided, and what happened last.`,
		Example: `  kubectl traffic rollout explain website`,
	}
	return newReader(c, cmd, []string{cli.AsJSON, cli.AsYAML}, func(cmd *cobra.Command, api client.Client, ro *v1alpha1.Rollout, o *cli.Output) error {
		events, err := rolloutapi.Events(cmd.Context(), api, ro)
		if err != nil {
			return err
		}
		last := events[max(0, len(events)-maxEvents):]
		said := rolloutview.Explain(ro, last)
		if o.Object() {
			return cli.PrintValue(cmd.OutOrStdout(), o.Form, said)
		}
		for _, sentence := range said {
			fmt.Fprintln(cmd.OutOrStdout(), cli.OneLine(sentence))
		}
		return nil
	})
}
