// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// New makes the command canary with those below it.
func New(c *cli.Cluster) *cobra.Command {
	group := &cobra.Command{
		Use:     "canary",
		Aliases: []string{"canaries", "canaryrelease", "canaryreleases"},
		Short:   "Look after canaries of Helm releases",
		Args:    cli.Usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newCanaryListCommand(c), newAdoptCommand(c), newDeprecateCommand(c))
	return group
}

// canaryName takes the kind off a name, as in canary/website.
func canaryName(arg string) string {
	kind, name, found := strings.Cut(arg, "/")
	switch kind {
	case "canary", "canaryrelease", "canaryreleases", "canaryrelease.serin.dev", "canaryreleases.serin.dev":
		if found {
			return name
		}
	}
	return arg
}

// canaryLister has the flags of canary list.
type canaryLister struct {
	cluster  *cli.Cluster
	output   *cli.Output
	all      bool
	selector string
}

func newCanaryListCommand(c *cli.Cluster) *cobra.Command {
	l := &canaryLister{cluster: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List CanaryReleases with what they do",
		Long: `List shows the Helm release and revision of each CanaryRelease, what it does, and the canary's live share of the traffic: from
the least to the most where ports differ. With -o wide it shows the share of each port, how many of the requests that each version answered
in the last minute failed, and what the CanaryRelease says.`,
		Example: `  kubectl traffic canary list
  kubectl traffic canary list -A -o wide`,
		Args: cli.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "list those of all namespaces")
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "labels of the CanaryReleases to list")
	cli.Complete(cmd, "selector", cobra.NoFileCompletions)
	l.output = cli.AddOutput(cmd, cli.AsWide, cli.AsName, cli.AsJSON, cli.AsYAML)
	return cmd
}

func (l *canaryLister) run(cmd *cobra.Command) error {
	if err := l.output.Check(); err != nil {
		return err
	}
	labels, err := cli.SelectorOf(l.selector)
	if err != nil {
		return err
	}
	namespace, err := l.cluster.Namespace()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	api, err := l.cluster.Client()
	if err != nil {
		return err
	}
	var list v1alpha1.CanaryReleaseList
	if err := api.List(cmd.Context(), &list, client.InNamespace(namespace), labels); err != nil {
		return err
	}
	return l.print(cmd, api, &list)
}

func (l *canaryLister) print(cmd *cobra.Command, api client.Client, list *v1alpha1.CanaryReleaseList) error {
	if l.output.Object() {
		return l.output.Print(cmd.OutOrStdout(), api.Scheme(), list)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No CanaryReleases found.")
		return nil
	}
	heads := cli.Columns("NAME", "RELEASE", "VERSION", "READY", "STATE", "CANARY", "AGE")
	if l.all {
		heads = append(cli.Columns("NAMESPACE"), heads...)
	}
	return l.output.Table(cmd.OutOrStdout(), append(heads, cli.Wide("PORTS", "FAILED", "STATUS")...), canaryRows(list.Items, l.all, time.Now()))
}

func canaryRows(items []v1alpha1.CanaryRelease, all bool, now time.Time) [][]string {
	var rows [][]string
	for i := range items {
		cr := &items[i]
		ready, state, sentence := rolloutview.CanaryState(cr)
		row := []string{
			cr.Name, cr.Spec.Release, strconv.Itoa(int(cr.Spec.Version)), ready, state, rolloutview.CanaryShare(cr),
			duration.HumanDuration(now.Sub(cr.CreationTimestamp.Time)),
		}
		if all {
			row = append([]string{cr.Namespace}, row...)
		}
		rows = append(rows, append(row, cli.OrNone(rolloutview.CanaryPorts(cr)), cli.OrNone(rolloutview.CanaryFailures(cr)), sentence))
	}
	return rows
}
