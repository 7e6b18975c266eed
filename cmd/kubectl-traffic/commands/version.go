// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func newVersionCommand(*cli.Cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin",
		Args:  cli.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubectl-traffic %s %s %s/%s\n", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
