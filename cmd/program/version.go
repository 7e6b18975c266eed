// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/build"
)

func newVersionCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s %s/%s\n", name, build.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
