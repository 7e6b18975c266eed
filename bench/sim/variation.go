// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Variations are Serin under other circumstances: what the report assumes, and
// what else one might set.
var Variations = []Contestant{
	{Name: "as above", About: "what the other tables show", New: serin.New},
	{
		Name: "weights mid-window", About: "each change of weight takes effect within a window, which is dropped",
		New: func() Rule { return &dropper{Serin: NewSerin(judge.Defaults())} },
	},
	{
		Name: "latency too", About: "latencies are measured and equal, so a part of the stake is bet on them in vain",
		New: serin.New, Change: withUsualLatency,
	},
	{
		Name: "windows of 1 s", About: "the counters are read five times as often",
		New: serin.New, Change: func(t Traffic) Traffic { t.Window = time.Second; return t },
	},
	{
		Name: "no start-up", About: "nothing is forgiven in the first 15 s",
		New: configured(func(c *judge.Config) { c.Startup = judge.Startup{} }),
	},
	{
		Name: "no history", About: "stable was not measured before",
		New: func() Rule { return ignorant{NewSerin(judge.Defaults())} },
	},
	{
		Name: "maxCorrelatedFailures 20", About: "the user says that up to 20 requests may fail together",
		New: configured(func(c *judge.Config) { c.MaxCorrelatedFailures = 20 }),
	},
}

// VariationCells are the cells that the variations are played in.
func VariationCells() []Cell {
	var cells []Cell
	add := func(family string, rate, base float64, effects ...float64) {
		for i := range Families {
			for _, effect := range effects {
				if Families[i].Name == family {
					cells = append(cells, Cell{Family: &Families[i], Rate: rate, Base: base, Effect: effect})
				}
			}
		}
	}
	add("independent", 100, .001, 0, .01, .05, .5)
	add("independent", 1000, .001, 0, .01, .05, .5)
	add("burst", 10, .01, 0, .05)
	add("burst", 1000, .01, 0, .05)
	return cells
}

// RunVariations plays the variations, cell by cell, half as often as Serin in the
// cells of the experiment.
func (e Experiment) RunVariations() []Line {
	var jobs []job
	for _, cell := range VariationCells() {
		for _, v := range Variations {
			jobs = append(jobs, job{cell, v, max(1, e.runs(cell, 0)/2)})
		}
	}
	return e.play(jobs)
}

func configured(change func(*judge.Config)) func() Rule {
	config := judge.Defaults()
	change(&config)
	return func() Rule { return NewSerin(config) }
}

func withUsualLatency(t Traffic) Traffic {
	t.StableLatency, t.CanaryLatency = takes(usual), takes(usual)
	return t
}

// dropper is Serin where each change of weight takes effect within a window.
type dropper struct {
	*Serin
	weight int32
}

// Next leaves out the window in which the weight changed.
func (d *dropper) Next(w analysis.Window) policy.Action {
	if w.Weight != d.weight {
		d.weight = w.Weight
		return policy.Hold
	}
	return d.Serin.Next(w)
}

// ignorant is Serin without what it could remember.
type ignorant struct{ rule *Serin }

// Next judges one more window.
func (i ignorant) Next(w analysis.Window) policy.Action { return i.rule.Next(w) }
