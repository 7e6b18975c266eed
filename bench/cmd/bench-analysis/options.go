// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/serin-dev/serin/bench/sim"
)

// options are what the command is asked for.
type options struct {
	experiment sim.Experiment
	variations bool
	output     string
	plot       string
}

// parse reads the arguments; what is wrong with them has been printed.
func parse(args []string, errs io.Writer) (options, error) {
	o := options{experiment: sim.Published()}
	e := &o.experiment
	flags := flag.NewFlagSet("bench-analysis", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.output, "o", "", "`file` for the page; standard output when unset")
	flags.StringVar(&o.plot, "plot", "", "`file` for the picture of the smallest difference that is found; nothing else is done then")
	flags.Uint64Var(&e.Seed, "seed", e.Seed, "where the random numbers begin")
	flags.IntVar(&e.Runs, "runs", e.Runs, "how often Serin is played in a cell with a good canary")
	flags.IntVar(&e.BadRuns, "bad-runs", e.BadRuns, "how often Serin is played in a cell with a bad canary")
	flags.IntVar(&e.RivalRuns, "rival-runs", e.RivalRuns, "how often each rival is played in a cell; 0 leaves them out")
	flags.Func("rates", "requests per second of both versions together, such as 10,100", figures(&e.Rates))
	flags.Func("bases", "failure rates of stable, as fractions, such as 0.001,0.01", figures(&e.Bases))
	flags.Func("effects", "by how much more often the canary fails, as fractions; in families of latency a factor, or a share below 1 (default: those of each family)", figures(&e.Effects))
	flags.Func("families", "kinds of traffic (default all: "+strings.Join(familyNames(), ", ")+")", families(&e.Families))
	flags.BoolVar(&o.variations, "variations", true, "also play Serin under other circumstances")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if e.RivalRuns == 0 {
		e.Contestants = e.Contestants[:1]
	}
	err := e.Validate()
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errs, "bench-analysis:", err)
	}
	return o, err
}

// figures reads a list of numbers.
func figures(out *[]float64) func(string) error {
	return func(text string) error {
		*out = nil
		for part := range strings.SplitSeq(text, ",") {
			x, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return fmt.Errorf("%q is no number", part)
			}
			*out = append(*out, x)
		}
		return nil
	}
}

// families reads a list of kinds of traffic.
func families(out *[]*sim.Family) func(string) error {
	return func(text string) error {
		*out = nil
		for name := range strings.SplitSeq(text, ",") {
			i := slices.Index(familyNames(), name)
			if i < 0 {
				return fmt.Errorf("%q is none of %s", name, strings.Join(familyNames(), ", "))
			}
			*out = append(*out, &sim.Families[i])
		}
		return nil
	}
}

func familyNames() []string {
	var names []string
	for _, f := range sim.Families {
		names = append(names, f.Name)
	}
	return names
}
