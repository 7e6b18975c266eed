// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestCountsOfTheirWeightAreNoMismatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		count  Count
		weight int32
	}{
		{"nothing", Count{}, 10},
		{"exactly the weight", Count{100, 900}, 10},
		{"exactly the weight of a million requests", Count{100_000, 900_000}, 10},
		{"exactly the weight of as many as counters get", Count{1 << 49, 9 << 49}, 10},
		{"at the edge of the tolerance", Count{120_000, 880_000}, 10},
		{"one percentage point of a small weight", Count{20_000, 980_000}, 1},
		{"nothing at a small weight of few requests", Count{0, 60}, 10},
		{"a weight of 0 is no share", Count{500, 500}, 0},
		{"a weight of 100 is no share", Count{500, 500}, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := (State{}).Add(tt.count, tt.weight).Result(); r.Mismatch() || math.IsNaN(r.Evidence) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestCountsOfAnotherWeightAreAMismatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		count  Count
		weight int32
		want   string
	}{
		{"the route is not bound", Count{0, 150}, 10, "canary answered 0.0 % of 150 requests, and its weight is 10 %: look for routes that are not bound"},
		{"everything reaches the canary", Count{12, 0}, 10, "canary answered 100.0 % of 12 requests, and its weight is 10 %: look for sessions that stay with the canary"},
		{"callers past the router", Count{300, 5700}, 10, "canary answered 5.0 % of 6000 requests, and its weight is 10 %: look for clients that bypass the router"},
		{"sessions that stay", Count{2600, 7400}, 50, "look for clients that bypass the router, sessions that stay with stable"},
		{"half of stable's requests are missing", Count{9500, 500}, 90, "look for sessions that stay with the canary"},
		{"a weight that was never taken", Count{10_000, 90_000}, 20, "look for clients that bypass"},
		{"numbers as large as counters get", Count{1 << 52, 1 << 52}, 10, "look for sessions that stay with the canary, retries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := State{}.Add(tt.count, tt.weight).Result()
			if !r.Mismatch() || !strings.Contains(r.Explain(), tt.want) {
				t.Errorf("%+v\n%s", r, r.Explain())
			}
		})
	}
}

// draw is how many of some requests go to the canary at a share.
func draw(random *rand.Rand, requests int64, share float64) Count {
	c := Count{Stable: requests}
	for range requests {
		if random.Float64() < share {
			c.Canary, c.Stable = c.Canary+1, c.Stable-1
		}
	}
	return c
}

// alarmed plays a release of three steps and reports whether any of its windows was a
// mismatch. The canary's true share is at an edge of what counts as the weight.
func alarmed(random *rand.Rand, edge func(Result) float64) bool {
	var s State
	for _, weight := range []int32{5, 20, 50} {
		s = s.Begin()
		p := edge(s.Add(Count{}, weight).Result())
		for range 60 {
			if s = s.Add(draw(random, 50, p), weight); s.Result().Mismatch() {
				return true
			}
		}
	}
	return false
}

func TestARouterThatKeepsItsWeightsIsHardlyEverAccused(t *testing.T) {
	const releases = 1000
	for name, edge := range map[string]func(Result) float64{
		"at the lower edge": func(r Result) float64 { return r.Low },
		"at the upper edge": func(r Result) float64 { return r.High },
		"in the middle":     func(r Result) float64 { return (r.Low + r.High) / 2 },
	} {
		t.Run(name, func(t *testing.T) {
			random, alarms := rand.New(rand.NewPCG(7, 1)), 0
			for range releases {
				if alarmed(random, edge) {
					alarms++
				}
			}
			t.Logf("%d of %d releases have a false alarm", alarms, releases)
			// Ten are the mean that the bound allows; more than 22 come with a probability
			// below 0.0005.
			if alarms > 22 {
				t.Errorf("%d of %d releases have a false alarm, the bound is %v", alarms, releases, MaxFalseAlarm)
			}
		})
	}
}

func TestAllTestsOfAReleaseTogetherKeepTheBound(t *testing.T) {
	var s State
	sum := 0.0
	for range 100_000 {
		s = s.Begin().Add(Count{1, 1}, 50)
		sum += 1 / s.Result().Threshold
	}
	if s.Earlier != 99_999 || sum > MaxFalseAlarm {
		t.Errorf("%d tests before the last, which may be wrong in %v of all releases", s.Earlier, sum)
	}
}

func TestAMismatchIsFoundSoon(t *testing.T) {
	page, err := os.ReadFile("../../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		weight int32
		share  float64
		within int
	}{
		{5, 0, 300}, {10, 0, 150}, {10, 0.02, 400}, {10, 0.05, 2500}, {20, 0.04, 200}, {50, 0.25, 400}, {50, 0.1, 100}, {10, 0.3, 200},
	} {
		random, found, slowest := rand.New(rand.NewPCG(3, 1)), 0, 0
		const releases = 50
		for range releases {
			var s State
			n := 0
			for ; n < 20_000 && !s.Result().Mismatch(); n += 10 {
				s = s.Add(draw(random, 10, tt.share), tt.weight)
			}
			slowest = max(slowest, n)
			if n <= tt.within {
				found++
			}
		}
		t.Logf("weight %d, share %v: found after at most %d requests", tt.weight, tt.share, slowest)
		gets := map[bool]string{true: "nothing", false: fmt.Sprintf("%v %%", 100*tt.share)}[tt.share == 0]
		row, requests := fmt.Sprintf("\n| %d %% | %s | ", tt.weight, gets), strconv.Itoa(slowest)
		if n := len(requests); n > 3 {
			requests = requests[:n-3] + "," + requests[n-3:]
		}
		if _, rest, found := strings.Cut(string(page), row); found && !strings.HasPrefix(rest, requests+" |\n") {
			t.Errorf("docs/analysis.md has another number than %s in the row%s", requests, row)
		}
		if found < releases/2 {
			t.Errorf("weight %d, share %v: %d of %d found within %d requests", tt.weight, tt.share, found, releases, tt.within)
		}
	}
}

func TestEachWeightAndEachStepIsTestedByItself(t *testing.T) {
	s := State{}.Add(Count{100, 900}, 10)
	for name, next := range map[string]State{
		"another weight": s.Add(Count{50, 50}, 50), "another step": s.Begin().Add(Count{50, 50}, 50), "the same weight again": s.Begin().Add(Count{1, 9}, 10),
	} {
		if next.Counted.total() > 100 || next.Earlier != 1 || next.Result().Mismatch() {
			t.Errorf("%s: %+v", name, next)
		}
	}
	if s.Add(Count{0, 100}, 0).Counted != (Count{}) {
		t.Error("requests at weight 0 are counted")
	}
	if found := (State{}).Add(Count{0, 500}, 10).Begin(); found.Earlier != 1 {
		t.Errorf("a test that found a mismatch is none: %+v", found)
	}
	if again := s.Begin().Begin(); again.Earlier != 1 {
		t.Errorf("a step without requests is a test: %+v", again)
	}
}

func TestAMismatchIsOverOnceTheWeightIsKept(t *testing.T) {
	s := State{}.Add(Count{0, 200}, 10)
	if !s.Result().Mismatch() {
		t.Fatalf("%+v", s.Result())
	}
	for i, step := range []struct {
		add  Count
		over bool
	}{
		{Count{10, 90}, false}, // fewer than it was found by
		{Count{0, 100}, false}, // outside of the tolerance
		{Count{20, 80}, true},
	} {
		if s = s.Add(step.add, 10); s.Result().Mismatch() == step.over {
			t.Errorf("after %d counts: %+v", i+1, s)
		}
	}
	if s = s.Add(Count{0, 3000}, 10); !s.Result().Mismatch() || s.Found != (Count{30, 3270}) {
		t.Errorf("the next mismatch is not found: %+v", s)
	}
	if s = s.Add(Count{0, 500}, 10); s.Found != (Count{0, 500}) {
		t.Errorf("a mismatch that goes on is told by its first figures: %+v", s)
	}
}

func TestAStateThatWasEditedIsNotPlausible(t *testing.T) {
	if s := (State{Weight: 10, Earlier: 3, Counted: Count{1, 2}, Found: Count{3, 4}}); !s.Plausible() || !(State{}).Plausible() {
		t.Error("a state that can be is refused")
	}
	for _, s := range []State{{Weight: -1}, {Weight: 101}, {Earlier: -1}, {Counted: Count{-1, 0}}, {Found: Count{0, -1}}, {Found: Count{most + 1, 0}}, {Counted: Count{0, most + 1}}} {
		if s.Plausible() {
			t.Errorf("%+v", s)
		}
	}
	busy := State{}
	for range 4 {
		busy = busy.Add(Count{1 << 53, 1 << 53}, 50)
	}
	if !busy.Plausible() || busy.Counted.Canary != busy.Counted.Stable {
		t.Errorf("%+v", busy)
	}
}
