// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"strconv"
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
		Short:   "Manage canaries of Helm releases",
		Args:    cli.Usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newListCommand(c), newAdoptCommand(c), newDeprecateCommand(c), newRightsCommand(c))
	return group
}

// canaryName takes the kind off a name, as in canary/website.
func canaryName(arg string) string {
	return cli.WithoutKind(arg, "canary", "canaryrelease", "canaryreleases", "canaryrelease.serin.dev", "canaryreleases.serin.dev")
}

func newListCommand(c *cli.Cluster) *cobra.Command {
	return cli.NewList(c, cli.Listing{
		Words: cli.NewWords("List CanaryReleases and their states",
			`List shows the Helm release and revision of each CanaryRelease, its state, and the canary's live share of the traffic
(from lowest to highest where ports differ). With -o wide, it also shows the share of each port, the failure rate of
each version in the last minute, and the message of the CanaryRelease.`,
			`  kubectl traffic canary list
  kubectl traffic canary list -A -o wide`),
		Kind: "CanaryReleases", Heads: heads,
		Empty: func() client.ObjectList { return &v1alpha1.CanaryReleaseList{} },
		Rows: func(list client.ObjectList, all bool, now time.Time) [][]string {
			return canaryRows(list.(*v1alpha1.CanaryReleaseList).Items, all, now) //nolint:forcetypeassert // as Empty makes it
		},
	})
}

var heads = append(cli.Columns("NAME", "RELEASE", "VERSION", "READY", "STATE", "CANARY", "AGE"), cli.Wide("PORTS", "FAILED", "STATUS")...)

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
