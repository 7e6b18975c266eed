// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/analysis/sim"
	"github.com/serin-dev/serin/analysis/sim/picture"
)

func newPlotCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plot picture.svg",
		Short: "Draw the smallest difference that is found, by the number of requests",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var out bytes.Buffer
			if err := picture.Detectable(sim.Detectables(), &out); err != nil {
				return err
			}
			return os.WriteFile(args[0], out.Bytes(), 0o644)
		},
	}
}
