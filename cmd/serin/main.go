// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	_ "time/tzdata" // the image has no files of time zones, which schedules need

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/program"
	"github.com/serin-dev/serin/cmd/serin/check"
	"github.com/serin-dev/serin/cmd/serin/dashboard"
	"github.com/serin-dev/serin/cmd/serin/trafficmetrics"
)

// commands make the subcommands, in the order of the help.
var commands = []func() *cobra.Command{
	newManagerCommand,
	trafficmetrics.NewCommand,
	dashboard.NewCommand,
	check.NewInstallCommand,
	check.NewUninstallCommand,
}

func main() { os.Exit(program.Run(newRootCommand())) }

// newRootCommand makes the command with everything below it.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{Use: "serin", Short: "Progressive delivery for Kubernetes"}
	for _, command := range commands {
		root.AddCommand(command())
	}
	return program.Complete(root)
}
