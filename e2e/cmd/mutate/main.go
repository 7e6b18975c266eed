// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/mutate"
)

func main() {
	only := flag.String("only", "", "try only the packages that match this expression")
	limit := flag.Duration("limit", 5*time.Minute, "longest time of one run of a mutant's tests")
	flag.Parse()
	if err := run(*only, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(only string, limit time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	lists, err := mutate.Load("mutate/lists")
	if err != nil {
		return err
	}
	lists = slices.DeleteFunc(lists, func(l mutate.List) bool { return !chosen.MatchString(l.Package) })
	if len(lists) == 0 {
		return fmt.Errorf("no package matches %q", only)
	}
	return mutate.Run(ctx, os.Stdout, mutate.Options{Root: root, Limit: limit, Clock: clock.RealClock{}}, lists)
}
