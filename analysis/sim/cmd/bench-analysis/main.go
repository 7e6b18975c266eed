// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/analysis/sim"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-analysis:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	experiment := sim.Published()
	var output string
	var families []string
	var variations bool
	cmd := &cobra.Command{
		Use:           "bench-analysis",
		Short:         "Measure by simulation how well the analysis decides",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := choose(&experiment, families, cmd.Flags().Changed("effects")); err != nil {
				return err
			}
			return measure(cmd, experiment, variations, output)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "", "file for the page; standard output when unset")
	flags.Uint64Var(&experiment.Seed, "seed", experiment.Seed, "where the random numbers begin")
	flags.IntVar(&experiment.Runs, "runs", experiment.Runs, "how often Serin is played in a cell with a good canary")
	flags.IntVar(&experiment.BadRuns, "bad-runs", experiment.BadRuns, "how often Serin is played in a cell with a bad canary")
	flags.IntVar(&experiment.RivalRuns, "rival-runs", experiment.RivalRuns, "how often each rival is played in a cell; 0 leaves them out")
	flags.Float64SliceVar(&experiment.Rates, "rates", experiment.Rates, "requests per second of both versions together")
	flags.Float64SliceVar(&experiment.Bases, "bases", experiment.Bases, "failure rates of stable, as fractions")
	flags.Float64SliceVar(&experiment.Effects, "effects", nil, "by how much more often the canary fails, as fractions; for families of latency a factor or a share. When unset, those of each family")
	flags.StringSliceVar(&families, "families", nil, "kinds of traffic: "+strings.Join(familyNames(), ", ")+". When unset, all")
	flags.BoolVar(&variations, "variations", true, "also play Serin under other circumstances")
	cmd.AddCommand(newPlotCommand())
	return cmd
}

// choose narrows the experiment to what the flags ask for.
func choose(e *sim.Experiment, families []string, effects bool) error {
	if len(families) > 0 {
		e.Families = nil
	}
	for _, name := range families {
		i := slices.Index(familyNames(), name)
		if i < 0 {
			return fmt.Errorf("--families: %q is none of %s", name, strings.Join(familyNames(), ", "))
		}
		e.Families = append(e.Families, &sim.Families[i])
	}
	if !effects {
		e.Effects = nil
	}
	if e.RivalRuns == 0 {
		e.Contestants = e.Contestants[:1]
	}
	return e.Validate()
}

func familyNames() []string {
	var names []string
	for _, f := range sim.Families {
		names = append(names, f.Name)
	}
	return names
}

// measure runs the experiment, writes the page and says how long it took.
func measure(cmd *cobra.Command, e sim.Experiment, variations bool, output string) error {
	began := time.Now()
	lines := e.Run()
	var others []sim.Line
	if variations {
		others = e.RunVariations()
	}
	page := e.Report(lines, others)
	for _, g := range sim.Goals(lines) {
		fmt.Fprintln(cmd.ErrOrStderr(), g)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d cells in %v\n", len(e.Cells()), time.Since(began).Round(time.Millisecond))
	if output == "" {
		_, err := fmt.Fprint(cmd.OutOrStdout(), page)
		return err
	}
	return os.WriteFile(output, []byte(page), 0o644)
}
