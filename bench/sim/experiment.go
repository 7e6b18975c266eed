// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Experiment says what is measured. The zero value measures nothing; begin with
// Published.
type Experiment struct {
	// Seed is where the random numbers begin.
	Seed uint64
	// Runs is how often Serin is played in a cell with a good canary, where rare
	// events have to be seen, and BadRuns in the others. RivalRuns is how often
	// each rival is played in a cell.
	Runs, BadRuns, RivalRuns int
	// Families are played with each of Rates, requests per second, and Bases,
	// failure rates of stable. Families of latency are played with the first base.
	Families     []*Family
	Rates, Bases []float64
	// Effects replace the effects of the families whose canary can be bad; nil
	// keeps them.
	Effects []float64
	// Contestants are the rules, Serin first.
	Contestants []Contestant
}

// Published is the experiment of docs/benchmarks/analysis.md.
func Published() Experiment {
	e := Experiment{
		Seed: 1, Runs: 400, BadRuns: 150, RivalRuns: 100,
		Rates: []float64{10, 100, 1000}, Bases: []float64{.001, .01},
		Contestants: Contestants,
	}
	for i := range Families {
		e.Families = append(e.Families, &Families[i])
	}
	return e
}

// Validate returns an error that names the field and the fix when the experiment
// cannot be run.
func (e Experiment) Validate() error {
	switch {
	case e.Runs < 1 || e.BadRuns < 1 || e.RivalRuns < 0:
		return errors.New("runs, badRuns, rivalRuns: give at least 1, 1 and 0")
	case len(e.Families) == 0 || len(e.Rates) == 0 || len(e.Bases) == 0 || len(e.Contestants) == 0:
		return errors.New("families, rates, bases, contestants: give at least one of each")
	}
	return errors.Join(
		within("rates", e.Rates, 1e-3, 1e6, "requests per second"),
		within("bases", e.Bases, 0, .5, "a fraction"),
		within("effects", e.Effects, 0, 100, "a fraction, or a factor for families of latency"),
	)
}

// within returns an error when a figure is out of range; NaN always is.
func within(field string, figures []float64, least, most float64, meaning string) error {
	for _, x := range figures {
		if !(x >= least && x <= most) {
			return fmt.Errorf("%s: %v; give %s, from %g to %g", field, x, meaning, least, most)
		}
	}
	return nil
}

// Cells are all combinations that are played, in the order of the report.
func (e Experiment) Cells() []Cell {
	var cells []Cell
	for _, f := range e.Families {
		bases, effects := e.Bases, f.Effects
		if f.Latency {
			bases = bases[:1]
		}
		if e.Effects != nil && !f.Good {
			effects = e.Effects
		}
		for _, rate := range e.Rates {
			for _, base := range bases {
				for _, effect := range effects {
					cells = append(cells, Cell{Family: f, Rate: rate, Base: base, Effect: effect})
				}
			}
		}
	}
	return cells
}

// Run plays everything, on as many cores as there are, and returns a line for
// each cell and each contestant that can judge it, in order.
func (e Experiment) Run() []Line {
	return e.play(e.jobs(e.Cells()))
}

// jobs are what is to be played in some cells.
func (e Experiment) jobs(cells []Cell) []job {
	var jobs []job
	for _, cell := range cells {
		for i, c := range e.Contestants {
			if c.Latency || !cell.Family.Latency {
				jobs = append(jobs, job{cell, c, e.runs(cell, i)})
			}
		}
	}
	return jobs
}

// job is all runs of a contestant in a cell.
type job struct {
	cell       Cell
	contestant Contestant
	runs       int
}

// play plays jobs and returns their lines, in order.
func (e Experiment) play(jobs []job) []Line {
	lines := make([]Line, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				lines[i] = e.playCell(jobs[i].cell, jobs[i].contestant, jobs[i].runs)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()
	return lines
}

// runs is how often a contestant is played in a cell.
func (e Experiment) runs(c Cell, contestant int) int {
	switch {
	case contestant > 0:
		return e.RivalRuns
	case c.Good():
		return e.Runs
	default:
		return e.BadRuns
	}
}

// playCell plays all runs of a contestant in a cell.
func (e Experiment) playCell(c Cell, contestant Contestant, runs int) Line {
	traffic := contestant.traffic(c)
	outcomes := make([]Outcome, runs)
	for run := range outcomes {
		outcomes[run] = play(contestant.New(), traffic, newRandom(e.Seed, c.String(), run))
	}
	return summarise(c, contestant.Name, outcomes)
}
