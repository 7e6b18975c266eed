// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/bench/sim/rivals"
)

// Contestant is a rule that is measured.
type Contestant struct {
	// Name is what the report calls it.
	Name string
	// About says what it does, for the report.
	About string
	// New makes the rule for one release.
	New func() Rule
	// Latency is whether it looks at latencies.
	Latency bool
	// Change makes other traffic of that of a cell; nil changes nothing.
	Change func(Traffic) Traffic
}

// traffic is what comes in a cell, as the contestant sees it.
func (c Contestant) traffic(cell Cell) Traffic {
	if c.Change == nil {
		return cell.Traffic()
	}
	return c.Change(cell.Traffic())
}

// every is how often Serin looks, in seconds.
var every = strconv.FormatFloat(analysis.WindowLength.Seconds(), 'f', -1, 64)

// Serin's settings are the ones of users who set none.
var serin = Contestant{
	Name: "Serin", About: "the judge of this repository with the default settings and onConclusive: Promote, every " + every + " s",
	New: func() Rule { return NewSerin(judge.Defaults()) }, Latency: true,
}

// Contestants are Serin, which comes first, and the rivals.
var Contestants = []Contestant{
	serin,
	{
		Name: "Flagger", About: "success rate ≥ 99 % and p99 ≤ 500 ms of the canary alone, every 60 s, threshold 5",
		New: func() Rule { return rivals.NewFlagger(Planned) }, Latency: true,
	},
	{
		Name: "Argo", About: "the same conditions as an AnalysisRun of Argo Rollouts, every 60 s, failureLimit 3",
		New: func() Rule { return rivals.NewArgo(Planned) }, Latency: true,
	},
	{
		Name: "Argo, difference", About: "an AnalysisRun whose condition is canary − stable ≤ 0.5 pp, and p99 ≤ 500 ms",
		New: func() Rule { return rivals.NewArgoDifference(Planned) }, Latency: true,
	},
	{
		Name: "Kayenta-like", About: "Mann–Whitney over points of 5 s, 98 % interval, fence of a quarter of the shift, every 60 s over all points so far",
		New: func() Rule { return rivals.NewKayenta(Planned) },
	},
	{
		Name: "z, once", About: "two-proportion z-test of the totals at 1 %, once at the planned end",
		New: func() Rule { return rivals.NewFixedZ(Planned) },
	},
	{
		Name: "z, peeking", About: "the same every 60 s",
		New: func() Rule { return rivals.NewPeekingZ(Planned) },
	},
	{
		Name: "Lindon–Malek", About: "sequential Bayes factor for equal Bernoulli processes at 1 %, every 5 s, begun anew at each weight",
		New: func() Rule { return rivals.NewLindonMalek(Planned) },
	},
}
