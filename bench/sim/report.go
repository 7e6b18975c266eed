// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report writes the page of the benchmark in Markdown. Without lines of the
// variations, their table is left out.
func (e Experiment) Report(lines, variations []Line) string {
	var page strings.Builder
	page.WriteString(introduction)
	fmt.Fprintf(&page, setup, e.Seed, e.Runs, e.BadRuns, e.RivalRuns)
	writeContestants(&page, e.Contestants)
	writeGoals(&page, Goals(lines))
	page.WriteString(limits)
	e.writeFalseRollbacks(&page, lines)
	writePromotions(&page, lines)
	writeVariations(&page, variations)
	e.writeFamilies(&page, lines)
	writeLosses(&page, Losses(lines))
	return page.String()
}

const introduction = `# How well the analysis decides

<!-- Written by make bench-analysis. Do not edit. -->

A rule can be judged only on traffic whose faults are known. So releases are simulated: requests come at random, some
of them fail, and a rule sees what it would see in a cluster. ` + "`make bench-analysis`" + ` plays all of them and writes this
page, the same byte for byte on the same kind of processor.

`

const setup = `| | |
|---|---|
| plan | weights 5, 10, 20 and 50 %%, a minute each; then the rest of ten minutes; then all traffic |
| windows | 5 s, independent Poisson numbers of requests for both versions. A change of weight takes effect between two windows, for all rules |
| Serin | the judge of this repository, and the rules of the release engine for its verdicts (package analysis/policy, which both run). Pods, routers and schedules take no time here: a step needs a pass, and 50 requests of each version; an early promotion leaves 5 %% on stable until the planned end; ten minutes of stable's history are known |
| rivals | their rules with their published parameters; promotion at the planned end |
| failed requests | those that the canary failed until it was rolled back or the release was over, on average |
| times | medians over all runs, from the beginning of the defect; – where fewer than half came to that |
| bounds | (≤ …) is the upper 95 %% bound of Clopper and Pearson |
| seed, runs | seed %d; Serin %d runs per cell with a good canary and %d with a bad one, rivals %d; Serin under other circumstances half as often as Serin |

Run it with other numbers and other traffic: ` + "`cd bench && go run ./cmd/bench-analysis -seed 7 -rates 30,300 -bases 0.003 -effects 0,0.02 -families independent,burst`" + `.

`

const limits = `
Why some figures are as they are:

* **Two windows at least, and the start-up phase.** One window alone never rolls back a fresh canary, so 10 s are the
  least. For 15 s from the canary's first request on, 25 pp more failures are tolerated; a canary that is worse by
  less than that is found 25 s after its first request at the earliest. A test without both, such as Lindon–Malek's,
  finds it in its first window, and takes every cold start for a defect. So no more than 14 times fewer failed
  requests are possible then than with Flagger, which keeps the first weight for 360 s, and 41 times fewer than with
  Argo, whose weights rise for 240 s.
* **Small differences at little traffic take long.** Tests that find them sooner either look again and again at a
  level that is meant for one look, or test for equality, and roll back canaries that are worse by nothing that
  matters (the edge).
* **Failures that come together** are known from stable's history only. A burst that comes less than once in the ten
  minutes before the release is not known at all, and a canary that gets the first one can be taken for bad: the worst
  cell above. Without any history the promise does not hold where failures come together; ` + "`maxCorrelatedFailures`" + `, set
  by hand, keeps it, and costs time (both in the table of other circumstances). The canary's own failures may come
  together in a way that stable's never did; a canary that is promoted before the first time that they do is promoted
  wrongly, as in the worst cell of early promotions above. And where failures do come together, Serin is slower than
  rules that ignore it and roll back good canaries for it.
* **Equality is not the question.** Serin asks whether the canary is worse by more than a fifth of the tolerance and a
  tenth of stable's rate, because smaller differences are none that a user would roll back for.
`

func writeContestants(page *strings.Builder, contestants []Contestant) {
	row(page, "rule", "what it does")
	row(page, "---", "---")
	for _, c := range contestants {
		row(page, c.Name, c.About)
	}
}

func writeVariations(page *strings.Builder, lines []Line) {
	if len(lines) == 0 {
		return
	}
	page.WriteString("\n## Serin under other circumstances\n\n")
	writeContestants(page, Variations)
	page.WriteString("\n" + legend + "\n\n")
	head(page, Variations, "family", "requests/s", "base", "canary is worse by")
	for _, cell := range VariationCells() {
		row(page, append([]string{cell.Family.Name}, cellRow(cell, Variations, lines)...)...)
	}
}

func writeGoals(page *strings.Builder, goals []Goal) {
	page.WriteString("\n## Goals\n\n")
	row(page, "goal", "measured", "")
	row(page, "---", "---", "---")
	for _, g := range goals {
		verdict := "**missed**"
		if g.Met {
			verdict = "met"
		}
		row(page, g.Statement, g.Measured, verdict)
	}
}

// writeFalseRollbacks writes one row per family and one column per contestant.
func (e Experiment) writeFalseRollbacks(page *strings.Builder, lines []Line) {
	page.WriteString("\n## Good canaries that were rolled back\n\nAll cells of a family, and after the comma the worst of them.\n" +
		"On the edge and in a cold start the canary is worse than stable, though by no more than Serin is set to tolerate:\n" +
		"a test for equality is right to find it there, and merely cannot be told that it does not matter.\n\n")
	table := index(lines)
	head(page, e.Contestants, "family")
	for _, f := range e.Families {
		cells := []string{f.Name}
		some := false
		for _, c := range e.Contestants {
			text := ""
			for _, r := range falseRollbacks(table[c.Name]) {
				if r.Family == f {
					text, some = r.All.String()+", "+percent(r.Worst.Rate()), true
				}
			}
			cells = append(cells, text)
		}
		if some {
			row(page, cells...)
		}
	}
}

// head writes the head of a table with a column for each contestant.
func head(page *strings.Builder, contestants []Contestant, first ...string) {
	cells := first
	for _, c := range contestants {
		cells = append(cells, c.Name)
	}
	row(page, cells...)
	row(page, slices.Repeat([]string{"---"}, len(cells))...)
}

func writePromotions(page *strings.Builder, lines []Line) {
	page.WriteString("\n## Promotions by Serin\n\nA bad canary is worse by the tolerance (0.5 pp) or more. Early means before the planned end, by evidence.\n\n")
	row(page, "family", "requests/s", "base", "canary is worse by", "promoted early", "promoted at all", "time")
	row(page, slices.Repeat([]string{"---"}, 7)...)
	for _, l := range index(lines)[serin.Name] {
		if l.Cell.Family.Latency || l.Cell.Family.onset > 0 || !l.Cell.Good() && l.Cell.Effect > .01 {
			continue
		}
		early, all := Share{l.Early, l.Runs}, Share{l.Promoted, l.Runs}
		text := percent(early.Rate())
		if l.Cell.Bad() {
			text = early.String()
		}
		row(page, l.Cell.Family.Name, fmt.Sprintf("%g", l.Cell.Rate), percent(l.Cell.Base), l.Cell.EffectName(), text, percent(all.Rate()), seconds(l.PromotionTime))
	}
}

const legend = "Good canary: how many were rolled back. Bad canary: how many were found · median time · failed requests · how many good ones\n" +
	"the rule rolls back in the same traffic. Failed requests are left out where the trouble is one of latency."

// writeFamilies writes every cell: one row each, one column per contestant.
func (e Experiment) writeFamilies(page *strings.Builder, lines []Line) {
	page.WriteString("\n## Every cell\n\n" + legend + "\n")
	for _, f := range e.Families {
		fmt.Fprintf(page, "\n### %s\n\n%s.\n\n", capital(f.Name), capital(f.About))
		head(page, e.Contestants, "requests/s", "base", "canary is worse by")
		for _, cell := range e.Cells() {
			if cell.Family == f {
				row(page, cellRow(cell, e.Contestants, lines)...)
			}
		}
	}
}

func cellRow(cell Cell, contestants []Contestant, lines []Line) []string {
	cells := []string{fmt.Sprintf("%g", cell.Rate), percent(cell.Base), cell.EffectName()}
	for _, c := range contestants {
		i := slices.IndexFunc(lines, func(l Line) bool { return l.Cell == cell && l.Contestant == c.Name })
		text := ""
		if i >= 0 {
			text = lines[i].figures() + falseBeside(lines[i], index(lines)[c.Name])
		}
		cells = append(cells, text)
	}
	return cells
}

// falseBeside is how often a rule that finds bad canaries rolls back good ones in
// the same traffic: its speed means nothing without that.
func falseBeside(l Line, all []Line) string {
	if same := twin(all, l.Cell); !l.Cell.Good() && same.N > 0 {
		return " · " + percent(same.Rate())
	}
	return ""
}

// figures are those of one cell and one contestant.
func (l Line) figures() string {
	if l.Cell.Good() {
		return Share{l.False, l.Runs}.String()
	}
	text := percent(Share{l.Found, l.Runs}.Rate()) + " · " + seconds(l.RollbackTime)
	if !l.Cell.Family.Latency {
		text += " · " + requests(l.Failed)
	}
	if l.False > 0 {
		text += ", " + percent(Share{l.False, l.Runs}.Rate()) + " before the defect"
	}
	return text
}

func writeLosses(page *strings.Builder, losses []Loss) {
	page.WriteString("\n## Where a rival does better\n\n" +
		"Cells in which a rival finds the bad canary more often by five points or more, or in which a tenth fewer requests, and at least five, fail.\n" +
		"The last column is what that costs: how many good canaries the rival rolls back in the same traffic.\n\n")
	row(page, "family", "requests/s", "base", "canary is worse by", "Serin", "rival", "its figures", "its false rollbacks")
	row(page, slices.Repeat([]string{"---"}, 8)...)
	for _, l := range losses {
		cost := "–"
		if l.False.N > 0 {
			cost = percent(l.False.Rate())
		}
		c := l.Serin.Cell
		row(page, c.Family.Name, fmt.Sprintf("%g", c.Rate), percent(c.Base), c.EffectName(), l.Serin.figures(), l.Rival.Contestant, l.Rival.figures(), cost)
	}
}

// String is the rate with its bound.
func (s Share) String() string {
	return percent(s.Rate()) + " (≤ " + percent(s.UpperBound()) + ")"
}

// percent writes a share with the digits that its size deserves.
func percent(share float64) string {
	digits := 0
	if share < .0995 && share > 0 {
		digits = 1
	}
	if share < .00995 && share > 0 {
		digits = 2
	}
	return strconv.FormatFloat(100*share, 'f', digits, 64) + " %"
}

func seconds(d time.Duration) string {
	if d == never {
		return "–"
	}
	return strconv.Itoa(int(d.Seconds())) + " s"
}

func row(page *strings.Builder, cells ...string) {
	page.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func requests(n float64) string {
	if n < 9.95 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
