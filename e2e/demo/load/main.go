// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

const (
	// shutdownLimit bounds how long the report's server may take to stop.
	shutdownLimit = 5 * time.Second
	// headerLimit bounds how long a reader of the report may take to send its headers.
	headerLimit = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv)
	stop()
	if err != nil {
		slog.Error("the load generator stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string) error {
	config, port, err := parse(getenv)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // it mixes connections, it guards nothing
	g, err := generator.New(config, clock.RealClock{}, random)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":" + port, Handler: g.Handler(), ReadHeaderTimeout: headerLimit}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	slog.Info("calling", "target", config.Target, "rate", config.Rate)
	var calls sync.WaitGroup
	calls.Go(func() { g.Run(ctx) })
	select {
	case err := <-failed:
		return fmt.Errorf("PORT: serve the report: %w", err)
	case <-ctx.Done():
	}
	calls.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	return server.Shutdown(stopping)
}

// parse reads the environment. Each error names the variable.
func parse(getenv func(string) string) (config generator.Config, port string, err error) {
	config = generator.DefaultConfig(valueOr(getenv("TARGET"), "http://website"))
	config.Control = getenv("CONTROL")
	port = valueOr(getenv("PORT"), "8080")
	err = errors.Join(
		parseInt(getenv, "RATE", &config.Rate),
		parseInt(getenv, "FRESH", &config.FreshPercent),
		parseInt(getenv, "LIFE", &config.MaxLife),
		parseDuration(getenv, "DURATION", &config.Duration),
		parseDuration(getenv, "TIMEOUT", &config.Timeout),
		parseDuration(getenv, "PROBE", &config.ProbeEvery),
		parseDuration(getenv, "STREAM", &config.StreamFor),
		parseDuration(getenv, "HOLD", &config.HoldEvery),
	)
	config.MinLife = min(config.MinLife, config.MaxLife)
	return config, port, err
}

func parseInt(getenv func(string) string, name string, into *int) error {
	value := getenv(name)
	if value == "" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%s: %q is not a whole number", name, value)
	}
	*into = n
	return nil
}

func parseDuration(getenv func(string) string, name string, into *time.Duration) error {
	value := getenv(name)
	if value == "" {
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return fmt.Errorf("%s: %q is not a duration such as 10s", name, value)
	}
	*into = d
	return nil
}

func valueOr(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
