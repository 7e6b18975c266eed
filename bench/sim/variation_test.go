// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
)

func TestVariationsDifferFromWhatIsPublishedAndFromEachOther(t *testing.T) {
	e := Published()
	e.Runs, e.BadRuns = 2, 4
	byName := map[string]string{}
	for _, l := range e.RunVariations() {
		byName[l.Contestant] += l.figures() + "\n"
	}
	seen := map[string]string{}
	for _, v := range Variations {
		if byName[v.Name] == "" {
			t.Errorf("%s was not played", v.Name)
		}
		if other, ok := seen[byName[v.Name]]; ok {
			t.Errorf("%s and %s have the same figures", v.Name, other)
		}
		seen[byName[v.Name]] = v.Name
	}
}

func TestAWindowThatIsDroppedCostsAWindow(t *testing.T) {
	d := &dropper{Serin: NewSerin(judge.Defaults())}
	if got := play(d, each, newRandom(1, "dead", 0)); got.RolledBack != 15*time.Second {
		t.Errorf("rolled back after %v, want 15s", got.RolledBack)
	}
}
