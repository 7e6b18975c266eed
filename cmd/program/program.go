// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Run runs a command with the arguments of the process until it ends or a signal asks it to,
// and returns the exit status.
func Run(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, root.Name()+":", err)
		return 1
	}
	return 0
}

// Complete makes a command the root of a program: with the flags of the log, a logger in
// the context, and the version.
func Complete(root *cobra.Command) *cobra.Command {
	var logging logOptions
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := logging.logger()
		if err != nil {
			return err
		}
		log.SetLogger(logger)
		cmd.SetContext(log.IntoContext(cmd.Context(), logger))
		return nil
	}
	logging.bind(root.PersistentFlags())
	root.AddCommand(newVersionCommand(root.Name()))
	return root
}
