// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/config/golden"
)

// small is an experiment that takes a moment and has every kind of line.
func small() Experiment {
	e := Published()
	e.Runs, e.BadRuns, e.RivalRuns = 12, 6, 3
	e.Rates, e.Bases = []float64{100}, []float64{.01}
	return e
}

// The report of a small grid is the same byte for byte: on one core or many, and
// each time.
func TestTheReportIsReproducible(t *testing.T) {
	e := small()
	lines := e.Run()
	got := e.Report(lines, nil)
	const name = "testdata/small.md"
	golden.Check(t, name, got)
	if diff := cmp.Diff(lines, e.Run(), cmp.Comparer(func(a, b *Family) bool { return a == b })); diff != "" {
		t.Errorf("a second run differs: %s", diff)
	}
	e.Seed = 2
	if other := e.Report(e.Run(), nil); other == got {
		t.Error("another seed makes the same report")
	}
}

// The published page is written by a command that takes a minute. Cells that take
// a moment are played again as they were for the page, and must stand in it.
func TestThePublishedPageIsCurrent(t *testing.T) {
	const published = "../../docs/benchmarks/analysis.md"
	page, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	e := Published()
	cells := []Cell{
		{Family: familyOf(t, "independent"), Rate: 1000, Base: .01, Effect: 0},
		{Family: familyOf(t, "independent"), Rate: 1000, Base: .01, Effect: .5},
	}
	lines := e.play(e.jobs(cells))
	for _, cell := range cells {
		var want strings.Builder
		row(&want, cellRow(cell, e.Contestants, lines)...)
		if !strings.Contains(string(page), want.String()) {
			t.Errorf("%s does not have what is found now; write it anew with make bench-analysis:\n%s", published, want.String())
		}
	}
}

func TestCellsAreAllCombinations(t *testing.T) {
	e := Published()
	if got := len(e.Cells()); got != len(names(e.Cells())) {
		t.Errorf("%d cells, and some have the same name", got)
	}
	e.Families, e.Effects = []*Family{&Families[0], familyOf(t, "slower")}, []float64{0, .3}
	e.Rates, e.Bases = []float64{7, 8}, []float64{.1, .2}
	if got := len(e.Cells()); got != 2*2*2+2*1*2 {
		t.Errorf("%d cells, want 12: families of latency have one base", got)
	}
}

func names(cells []Cell) map[string]bool {
	all := map[string]bool{}
	for _, c := range cells {
		all[c.String()] = true
	}
	return all
}

func familyOf(t *testing.T, name string) *Family {
	t.Helper()
	for i := range Families {
		if Families[i].Name == name {
			return &Families[i]
		}
	}
	t.Fatalf("no family %s", name)
	return nil
}

func TestGoodAndBad(t *testing.T) {
	for _, tt := range []struct {
		family    string
		effect    float64
		good, bad bool
		name      string
	}{
		{"independent", 0, true, false, "none"},
		{"independent", .004, false, false, "+0.4 pp"},
		{"independent", .005, false, true, "+0.5 pp"},
		{"edge", 0, true, false, "none"},
		{"slower", 1, true, false, "none"},
		{"slower", 1.25, false, true, "× 1.25"},
		{"late answers", .02, false, true, "2 % + 1 s"},
		{"both slower", 2, true, false, "× 2"},
		{"cold and slow", 3, true, false, "× 3"},
	} {
		c := Cell{Family: familyOf(t, tt.family), Rate: 1, Base: .001, Effect: tt.effect}
		if c.Good() != tt.good || c.Bad() != tt.bad || c.EffectName() != tt.name {
			t.Errorf("%v: good %v, bad %v", c, c.Good(), c.Bad())
		}
	}
}

func TestAnExperimentThatCannotBeRunIsRefused(t *testing.T) {
	if err := Published().Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*Experiment){
		"runs": func(e *Experiment) { e.Runs = 0 }, "families": func(e *Experiment) { e.Families = nil },
		"rates: -1": func(e *Experiment) { e.Rates = []float64{-1} }, "rates: NaN": func(e *Experiment) { e.Rates = []float64{math.NaN()} },
		"bases: 0.6": func(e *Experiment) { e.Bases = []float64{.6} }, "effects: -0.1": func(e *Experiment) { e.Effects = []float64{-.1} },
	} {
		e := Published()
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// Known values of the bound of Clopper and Pearson: with no event in n it is
// 1 − 0.05^(1/n).
func TestUpperBound(t *testing.T) {
	for _, tt := range []struct {
		share Share
		want  float64
	}{
		{Share{0, 300}, 1 - math.Pow(.05, 1./300)},
		{Share{0, 1}, .95},
		{Share{10, 10}, 1},
		{Share{0, 0}, 1},
		{Share{1, 2}, math.Sqrt(.95)}, // P(at most 1 of 2) = 1 − p²
	} {
		if got := tt.share.UpperBound(); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%d of %d: %v, want %v", tt.share.K, tt.share.N, got, tt.want)
		}
	}
}

func TestSummarise(t *testing.T) {
	late := Cell{Family: familyOf(t, "late defect"), Effect: .05}
	got := summarise(late, "x", []Outcome{
		{RolledBack: 100 * time.Second, Promoted: never, Failed: 1},
		{RolledBack: 400 * time.Second, Promoted: 200 * time.Second, Failed: 2},
		{RolledBack: 500 * time.Second, Promoted: never, Failed: 3},
		{RolledBack: never, Promoted: Planned, Failed: 6},
	})
	want := Line{
		Cell: late, Contestant: "x", Runs: 4, False: 1, Found: 2, Promoted: 2, Early: 1, Failed: 3,
		RollbackTime: 100 * time.Second, PromotionTime: Planned,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *Family) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	good := Cell{Family: familyOf(t, "independent")}
	if got := summarise(good, "x", []Outcome{{RolledBack: 500 * time.Second, Promoted: never}}); got.False != 1 || got.Found != 0 || got.PromotionTime != never {
		t.Errorf("a rollback of a good canary: %+v", got)
	}
}
