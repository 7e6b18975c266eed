// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image has no files of time zones, which schedules need

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// commands make the subcommands, in the order of the help.
var commands = []func() *cobra.Command{
	newManagerCommand,
	newMetricsCommand,
	newProxyCommand,
	newVersionCommand,
}

func main() { os.Exit(run()) }

// run runs the command that the arguments name and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "serin:", err)
		return 1
	}
	return 0
}

// newRootCommand makes the command with everything below it.
func newRootCommand() *cobra.Command {
	var logging logOptions
	root := &cobra.Command{
		Use:           "serin",
		Short:         "Progressive delivery for Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logging.logger()
			if err != nil {
				return err
			}
			ctrl.SetLogger(log)
			cmd.SetContext(ctrl.LoggerInto(cmd.Context(), log))
			return nil
		},
	}
	logging.bind(root.PersistentFlags())
	for _, command := range commands {
		root.AddCommand(command())
	}
	return root
}
