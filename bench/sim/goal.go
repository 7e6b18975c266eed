// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
)

// Goal is one statement about Serin that the lines either hold up or do not.
type Goal struct {
	// Statement is what is to be shown, Measured what was found.
	Statement, Measured string
	// Met is whether the lines hold it up.
	Met bool
}

// String is the goal in one line.
func (g Goal) String() string {
	verdict := "missed"
	if g.Met {
		verdict = "met   "
	}
	return verdict + "  " + g.Statement + ": " + g.Measured
}

// Goals checks the statements that the lines are able to decide. Those about
// cells that were not played are left out.
func Goals(lines []Line) []Goal {
	table := index(lines)
	var goals []Goal
	for _, check := range []func(results) []Goal{falseRollbackGoals, failedRequestGoals, promotionGoals} {
		goals = append(goals, check(table)...)
	}
	return goals
}

// results finds lines by contestant.
type results map[string][]Line

func index(lines []Line) results {
	r := results{}
	for _, l := range lines {
		r[l.Contestant] = append(r[l.Contestant], l)
	}
	return r
}

// FalseRollbacks are the false rollbacks of all good canaries of a family, and
// those of the cell with the most of them.
type FalseRollbacks struct {
	Family     *Family
	All, Worst Share
}

// falseRollbacks counts for each family with good canaries.
func falseRollbacks(lines []Line) []FalseRollbacks {
	var all []FalseRollbacks
	for _, l := range lines {
		if !l.Cell.Good() {
			continue
		}
		if n := len(all); n == 0 || all[n-1].Family != l.Cell.Family {
			all = append(all, FalseRollbacks{Family: l.Cell.Family})
		}
		last, share := &all[len(all)-1], Share{l.False, l.Runs}
		last.All = last.All.Plus(share)
		if share.Rate() > last.Worst.Rate() || last.Worst.N == 0 {
			last.Worst = share
		}
	}
	return all
}

func falseRollbackGoals(r results) []Goal {
	const limit = .01
	var goals []Goal
	for _, f := range falseRollbacks(r[serin.Name]) {
		goals = append(goals, Goal{
			Statement: fmt.Sprintf("false rollbacks, %s: at most 1 %% by the upper 95 %% bound", f.Family.Name),
			Measured:  fmt.Sprintf("%s; worst cell %s", f.All, f.Worst),
			Met:       f.All.UpperBound() <= limit,
		})
	}
	return append(goals, worstCellGoal(r[serin.Name], limit)...)
}

// worstCellGoal is about the one cell with the most false rollbacks. Its bound is
// wide, and it was chosen because it is the worst: so it is taken as it was seen.
func worstCellGoal(lines []Line, limit float64) []Goal {
	var w worst
	for _, l := range lines {
		if l.Cell.Good() {
			w.add(l.Cell, Share{l.False, l.Runs})
		}
	}
	return w.goal("false rollbacks", limit)
}

// worst is the cell with the highest share.
type worst struct {
	cell  Cell
	share Share
}

func (w *worst) add(c Cell, s Share) {
	if w.share.N == 0 || s.Rate() > w.share.Rate() {
		*w = worst{c, s}
	}
}

func (w *worst) goal(what string, limit float64) []Goal {
	if w.share.N == 0 {
		return nil
	}
	return []Goal{{
		Statement: what + ", the worst of all cells: at most 1 % as seen",
		Measured:  fmt.Sprintf("%s (%v)", w.share, w.cell), Met: w.share.Rate() <= limit,
	}}
}

// failedRequestGoals compare the failed requests of independent traffic with
// those of the two tools that decide by thresholds.
func failedRequestGoals(r results) []Goal {
	var goals []Goal
	for _, rival := range []struct {
		name       string
		mean, fast float64
	}{{"Flagger", 10, 25}, {"Argo", 10, 70}} {
		usual := r.against(rival.name, func(c Cell) bool { return c.Base <= .001 && c.Effect >= .01 })
		goals = append(goals, usual.goal("base 0.1 %, +1 pp and more, geometric mean", rival.name, rival.mean, ratios.geometricMean)...)
		large := r.against(rival.name, func(c Cell) bool { return c.Rate >= 100 && c.Effect >= .05 })
		goals = append(goals, large.goal("100 requests/s and more, +5 pp and more, in total", rival.name, rival.fast, ratios.total)...)
		goals = append(goals, large.goal("the same, geometric mean", rival.name, rival.fast, ratios.geometricMean)...)
	}
	return goals
}

// ratios are the failed requests of Serin and of a rival, cell by cell.
type ratios []struct{ serin, rival float64 }

// against collects those of independent traffic in some cells.
func (r results) against(rival string, in func(Cell) bool) ratios {
	var out ratios
	for _, s := range r[serin.Name] {
		if s.Cell.Family.Name != "independent" || !s.Cell.Bad() || !in(s.Cell) {
			continue
		}
		for _, l := range r[rival] {
			if l.Cell == s.Cell {
				out = append(out, struct{ serin, rival float64 }{s.Failed, l.Failed})
			}
		}
	}
	return out
}

func (r ratios) geometricMean() float64 {
	var sum float64
	for _, pair := range r {
		sum += math.Log(pair.rival / pair.serin)
	}
	return math.Exp(sum / float64(len(r)))
}

func (r ratios) total() float64 {
	var serin, rival float64
	for _, pair := range r {
		serin, rival = serin+pair.serin, rival+pair.rival
	}
	return rival / serin
}

func (r ratios) goal(where, rival string, want float64, measure func(ratios) float64) []Goal {
	if len(r) == 0 {
		return nil
	}
	got := measure(r)
	return []Goal{{
		Statement: fmt.Sprintf("failed requests: %g times fewer than %s (%s)", want, rival, where),
		Measured:  fmt.Sprintf("%.1f times fewer", got), Met: got >= want,
	}}
}

// promotionGoals ask how soon good canaries are promoted, and how often bad ones
// are by mistake.
func promotionGoals(r results) []Goal {
	const sooner, wrong = 2.5, .01
	var goals []Goal
	var bad Share
	var w worst
	for _, l := range r[serin.Name] {
		switch {
		case l.Cell.Family.Name == "independent" && l.Cell.Good() && l.Cell.Rate >= 1000:
			goals = append(goals, Goal{
				Statement: fmt.Sprintf("promotion of good canaries: %g times sooner than planned (%g requests/s, base %g %%)", sooner, l.Cell.Rate, 100*l.Cell.Base),
				Measured:  fmt.Sprintf("%s instead of %s", seconds(l.PromotionTime), seconds(Planned)),
				Met:       l.PromotionTime != never && float64(Planned) >= sooner*float64(l.PromotionTime),
			})
		case l.Cell.Bad() && !l.Cell.Family.Latency && l.Cell.Family.onset == 0:
			early := Share{l.Early, l.Runs}
			bad = bad.Plus(early)
			w.add(l.Cell, early)
		}
	}
	if bad.N > 0 {
		goals = append(goals, Goal{
			Statement: "early promotions of canaries that are worse by the tolerance or more: at most 1 % by the upper 95 % bound",
			Measured:  bad.String(), Met: bad.UpperBound() <= wrong,
		})
	}
	return append(goals, w.goal("early promotions of such canaries", wrong)...)
}
