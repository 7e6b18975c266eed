// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/canaryrights"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

// defaultAccount is the chart's canaryReleases.serviceAccount.
const defaultAccount = "serin-canary"

func newRightsCommand(c *cli.Cluster) *cobra.Command {
	var file string
	account := canaryrights.Account{}
	cmd := &cobra.Command{
		Use:   "rights -f FILE",
		Short: "Write the Role that CanaryReleases of a chart need",
		Long: `Rights reads the manifests of a chart. It writes the ServiceAccount that Serin runs Helm as, and a Role with exactly
the permissions that an upgrade of the release needs: to read and write Secrets and ConfigMaps of the namespace, where
Helm keeps its records, and the kinds of objects in the chart. Objects of other namespaces and cluster-scoped ones get
a Role or a ClusterRole that is limited to their names and creates none. The command changes nothing in the cluster;
apply its output.

Helm lists hooks separately: for a chart with hooks, also pass the output of "helm get hooks".

From the cluster, it reads only which resources exist. "-" reads the standard input.`,
		Example: `  helm get manifest shop | kubectl traffic canary rights -f - | kubectl apply -f -
  (helm get manifest shop; helm get hooks shop) | kubectl traffic canary rights -f - | kubectl apply -f -
  helm template shop ./chart -f values.yaml | kubectl traffic canary rights -n shop -f -`,
		Args: cli.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := c.Manifests(cmd, file, "what the chart renders")
			if err != nil {
				return err
			}
			account.Namespace = m.Namespace
			rights, warnings, err := canaryrights.Compute(m.Objects, account, m.API.RESTMapper())
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "Warning: "+cli.OneLine(w))
			}
			for _, o := range rights {
				fmt.Fprintln(cmd.OutOrStdout(), "---")
				if err := cli.PrintValue(cmd.OutOrStdout(), cli.AsYAML, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the manifests that the chart renders")
	cmd.Flags().StringVar(&account.Name, "service-account", defaultAccount, "ServiceAccount that the operator runs Helm as")
	return cmd
}
