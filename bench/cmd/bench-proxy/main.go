// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	rounds, connections, workers, changes int
	duration                              time.Duration
	// also are files with configurations of nginx that are measured too.
	also []string
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 7, "how often each of the two is measured, in turns")
	flag.DurationVar(&s.duration, "duration", 3*time.Second, "how long each measurement takes")
	flag.IntVar(&s.connections, "connections", 32, "connections of the load")
	flag.IntVar(&s.workers, "workers", 2, "workers of each nginx")
	flag.IntVar(&s.changes, "changes", 50, "changes of weights to measure")
	flag.Func("also", "a template of nginx's configuration that is measured too, with .Port, .Stable, .Canary, .Dir and .Workers; can be repeated", func(file string) error {
		s.also = append(s.also, file)
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-proxy:", err)
		os.Exit(1)
	}
}

// tools are the programs that are needed, with the Debian package of each.
var tools = map[string]string{"nginx": "nginx", "wrk": "wrk"}

func (s settings) run(ctx context.Context) (err error) {
	for tool, debian := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed; on Debian: apt-get install %s", tool, debian)
		}
	}
	dir, err := os.MkdirTemp("/dev/shm", "serin-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	backends, err := startBackends(ctx, dir, s.workers)
	if err != nil {
		return err
	}
	defer backends.stop()
	if err := s.compare(ctx, dir, backends); err != nil {
		return err
	}
	return s.changeWeights(ctx, dir, backends)
}
