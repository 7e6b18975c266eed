// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// endOverTime ends this process when the kernel says that it has computed for as long as it may,
// so that the manager need not guess why. A second later the kernel would kill it.
func endOverTime(ctx context.Context) {
	over, _ := signal.NotifyContext(ctx, syscall.SIGXCPU)
	context.AfterFunc(over, func() { os.Exit(releases.ExitOverTime) })
}
