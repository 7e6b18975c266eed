// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/serin-dev/serin/bench/sim"
	"github.com/serin-dev/serin/bench/sim/picture"
)

// Exit statuses.
const (
	exitError = 1
	exitUsage = 2
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(exitUsage)
	}
	if err := run(o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench-analysis:", err)
		os.Exit(exitError)
	}
}

// run draws the picture, or runs the experiment, writes the page and says which
// goals were met and how long it took.
func run(o options, out, progress io.Writer) error {
	if o.plot != "" {
		var drawn bytes.Buffer
		if err := picture.Detectable(sim.Detectables(), &drawn); err != nil {
			return err
		}
		return os.WriteFile(o.plot, drawn.Bytes(), 0o644)
	}
	began := time.Now()
	lines := o.experiment.Run()
	var variations []sim.Line
	if o.variations {
		variations = o.experiment.RunVariations()
	}
	for _, g := range sim.Goals(lines) {
		fmt.Fprintln(progress, g)
	}
	fmt.Fprintf(progress, "%d cells in %v\n", len(o.experiment.Cells()), time.Since(began).Round(time.Millisecond))
	page := o.experiment.Report(lines, variations)
	if o.output == "" {
		_, err := fmt.Fprint(out, page)
		return err
	}
	return os.WriteFile(o.output, []byte(page), 0o644)
}
