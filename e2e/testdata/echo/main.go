// SPDX-License-Identifier: Apache-2.0

// Echo answers each datagram with its own version, a blank, and what it was sent. It
// ends when it is asked to, after a time in which it goes on to answer.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drain is how long datagrams may still arrive after the pod has left its Services.
const drain = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Getenv("VERSION")); err != nil {
		slog.Error("the server stopped", "error", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, version string) error {
	connection, err := new(net.ListenConfig).ListenPacket(ctx, "udp", ":8053")
	if err != nil {
		return err
	}
	if err := beReady(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		time.AfterFunc(drain, func() { _ = connection.Close() })
	})
	slog.Info("answering", "version", version)
	buffer := make([]byte, 64<<10)
	for {
		n, from, err := connection.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := connection.WriteTo(append([]byte(version+" "), buffer[:n]...), from); err != nil {
			slog.Warn("a datagram was not answered", "error", err)
		}
	}
}

// beReady takes the connections by which a kubelet finds out that datagrams are answered: it can't
// ask a port of UDP, and a pod that it takes for ready too early loses what it is sent.
func beReady(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":8053")
	if err != nil {
		return err
	}
	go func() {
		defer listener.Close() // no probe succeeds any more
		for {
			connection, err := listener.Accept()
			if err != nil {
				slog.Error("no connection is taken any more", "error", err)
				return
			}
			_ = connection.Close() // nothing was sent
		}
	}()
	return nil
}
