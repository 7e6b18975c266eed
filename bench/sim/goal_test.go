// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"
)

// lines of an imagined measurement, in which Serin is as good as wanted.
func imagined(t *testing.T) []Line {
	t.Helper()
	independent := familyOf(t, "independent")
	cell := func(effect float64) Cell { return Cell{Family: independent, Rate: 1000, Base: .001, Effect: effect} }
	return []Line{
		{Cell: cell(0), Contestant: "Serin", Runs: 1000, PromotionTime: 240 * time.Second, Promoted: 1000, Early: 1000},
		{Cell: cell(0), Contestant: "Flagger", Runs: 100, False: 40},
		{Cell: cell(0), Contestant: "Argo", Runs: 100, False: 40},
		{Cell: cell(.05), Contestant: "Serin", Runs: 1000, Found: 1000, Failed: 10},
		{Cell: cell(.05), Contestant: "Flagger", Runs: 100, Found: 100, Failed: 1000},
		{Cell: cell(.05), Contestant: "Argo", Runs: 100, Found: 100, Failed: 1000},
	}
}

func TestGoalsAreMetOrMissed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func([]Line)
		missed string // part of the only statement that is missed
	}{
		{"everything is as wanted", func([]Line) {}, ""},
		{"too many false rollbacks", func(l []Line) { l[0].False = 8 }, "false rollbacks, independent"},
		{"a bad cell among good ones", func(l []Line) {
			l[0].Runs = 10_000
			worst := l[0]
			worst.Cell.Rate, worst.Runs, worst.False = 10, 100, 2
			l[1] = worst
		}, "false rollbacks, the worst"},
		{"fewer runs bound less", func(l []Line) { l[0].Runs = 200 }, "false rollbacks, independent"},
		{"promoted too late", func(l []Line) { l[0].PromotionTime = 241 * time.Second }, "promotion of good canaries"},
		{"not promoted", func(l []Line) { l[0].PromotionTime = never }, "promotion of good canaries"},
		{"bad canaries promoted", func(l []Line) { l[3].Early = 8 }, "early promotions of canaries"},
		{"in one cell only", func(l []Line) {
			l[3].Runs = 10_000
			cell := l[3]
			cell.Cell.Rate, cell.Runs, cell.Early = 99, 100, 2
			l[2] = cell
		}, "early promotions of such canaries"},
		{"almost as many failed requests as Flagger", func(l []Line) { l[4].Failed = 99 }, "Flagger"},
		{"almost as many failed requests as Argo", func(l []Line) { l[5].Failed = 99 }, "Argo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := imagined(t)
			tt.change(lines)
			goals := Goals(lines)
			if len(goals) != 11 {
				t.Fatalf("%d goals, want 11: %v", len(goals), goals)
			}
			for _, g := range goals {
				if want := tt.missed == "" || !strings.Contains(g.Statement, tt.missed); g.Met != want {
					t.Errorf("%v", g)
				}
			}
		})
	}
}

func TestGoalsAboutCellsThatWereNotPlayedAreLeftOut(t *testing.T) {
	for _, g := range Goals(imagined(t)[:1]) {
		if !strings.HasPrefix(g.Statement, "false rollbacks") && !strings.HasPrefix(g.Statement, "promotion of") {
			t.Errorf("decided from nothing: %v", g)
		}
	}
	if got := Goals(nil); len(got) != 0 {
		t.Errorf("decided from nothing at all: %v", got)
	}
}

func TestLossesArePublishedWithWhatTheyCost(t *testing.T) {
	lines := imagined(t)
	if got := Losses(lines); len(got) != 0 {
		t.Errorf("losses where Serin is better: %+v", got)
	}
	lines[4].Failed = 4 // Flagger spares requests
	lines[3].Found = 900
	lines[5].Failed = 11
	got := Losses(lines)
	if len(got) != 2 || got[0].Rival.Contestant != "Flagger" || got[1].Rival.Contestant != "Argo" || got[0].False != (Share{40, 100}) {
		t.Errorf("%+v", got)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", .0001: "0.01 %", .0099: "0.99 %", .00996: "1.0 %", .0994: "9.9 %", .0996: "10 %", .5: "50 %", 1: "100 %"} {
		if got := percent(share); got != want {
			t.Errorf("percent(%v) = %s, want %s", share, got, want)
		}
	}
}
