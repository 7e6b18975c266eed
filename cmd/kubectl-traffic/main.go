// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/terminal"
)

func main() {
	// Libraries log their troubles past the commands.
	klog.LogToStderr(false)
	klog.SetOutput(terminal.NewClean(os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := commands.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
