// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func newVersionCommand(c *cli.Cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin and of Serin in the cluster",
		Long: `Print the version of the plugin and, where it can be reached, of Serin in the cluster.

The two may be one minor version apart. Beyond that, promote, skip and retry are refused.`,
		Args: cli.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubectl-traffic %s %s %s/%s\n", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if kinds, unknown := c.KindsVersion(); err == nil && unknown == nil && kinds != "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "serin %s (CustomResourceDefinitions of the cluster)\n", kinds)
			}
			return err
		},
	}
}
