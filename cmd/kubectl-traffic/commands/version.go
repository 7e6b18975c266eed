// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/build"
)

func newVersionCommand(*cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubectl-traffic %s %s %s/%s\n", build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
