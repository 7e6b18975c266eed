// SPDX-License-Identifier: Apache-2.0

// Stages runs the tests: all stages of make test, or those that are named.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/stages"
	"github.com/serin-dev/serin/e2e/tools"
)

// ciVariable is true in continuous integration, where nothing may be left out.
const ciVariable = "CI"

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	soak, passed := false, true // also where only the help is asked for
	command := &cobra.Command{
		Use: "stages [stage…]", Short: "Run the tests, all stages of make test or those that are named",
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(_ *cobra.Command, names []string) (err error) {
			passed, err = runStages(ctx, soak, names)
			return err
		},
	}
	command.Flags().BoolVar(&soak, "soak", false, "run the stages of make soak instead")
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	if !passed {
		return 1
	}
	return 0
}

func runStages(ctx context.Context, soak bool, names []string) (passed bool, err error) {
	checkout, err := tools.Locate()
	if err != nil {
		return false, err
	}
	packages, err := stages.FindPackages(os.DirFS(checkout.Root))
	if err != nil {
		return false, err
	}
	table := stages.Tests(packages)
	if soak {
		table = stages.Soak(packages)
	}
	if len(names) > 0 {
		found, unknown := stages.Find(table, names...)
		if len(unknown) > 0 {
			return false, fmt.Errorf("there is no stage %s", strings.Join(unknown, ", "))
		}
		table = found
	}
	if err := stages.SetFileTimes(ctx, checkout.Root); err != nil {
		return false, err
	}
	runner := stages.Runner{Root: checkout.Root, Out: os.Stdout, Environment: os.Environ(), Clock: clock.RealClock{}}
	began := runner.Clock.Now()
	results := runner.Run(ctx, table)
	passed = stages.Report(os.Stdout, results, runner.Clock.Since(began), os.Getenv(ciVariable) == "true")
	return passed && ctx.Err() == nil, nil
}
