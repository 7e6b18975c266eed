// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		slog.Error("the app stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the host name: %w", err)
	}
	c, err := parseConfig(os.Getenv, hostname)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+c.port)
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	slog.Info("serving", "version", c.version, "address", listener.Addr().String())
	a := &app{config: c, clock: clock.RealClock{}, draw: rand.Float64}
	return a.serve(ctx, listener)
}
