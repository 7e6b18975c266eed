// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

func TestEveryWindowIsOneThatTheJudgeAccepts(t *testing.T) {
	for i := range Families {
		f := &Families[i]
		for _, effect := range f.Effects {
			c := Cell{Family: f, Rate: 200, Base: .01, Effect: effect}
			r := newRandom(1, c.String(), 0)
			for since := -time.Minute; since < Planned; since += 20 * time.Second {
				w := c.Traffic().window(r, since, 20)
				if err := w.Validate(); err != nil {
					t.Fatalf("%v at %v: %v", c, since, err)
				}
				if w.End.Sub(w.Start) != analysis.WindowLength || !w.Start.Equal(epoch.Add(since)) {
					t.Fatalf("%v at %v: from %v to %v", c, since, w.Start, w.End)
				}
			}
		}
	}
}

func TestTheWeightDividesTheRequests(t *testing.T) {
	r := newRandom(1, "weight", 0)
	traffic := Traffic{Rate: always(1e5), Stable: always(0), Canary: always(0)}
	for _, weight := range []int32{0, 5, 50, 100} {
		w := traffic.window(r, 0, weight)
		want := 5e5 * float64(weight) / 100
		if math.Abs(float64(w.Canary.Requests)-want) > 5*math.Sqrt(want) {
			t.Errorf("weight %d: %d requests, want about %v", weight, w.Canary.Requests, want)
		}
		if math.Abs(float64(w.Stable.Requests)-(5e5-want)) > 5*math.Sqrt(5e5-want) {
			t.Errorf("weight %d: %d requests of stable", weight, w.Stable.Requests)
		}
	}
}

// The families do what they say, at the moments that they name.
func TestFamilies(t *testing.T) {
	const base, effect = .01, .05
	at := func(name string, effect float64, since time.Duration) (stable, canary float64) {
		for i := range Families {
			if Families[i].Name == name {
				traffic := Cell{Family: &Families[i], Rate: 100, Base: base, Effect: effect}.Traffic()
				return traffic.Stable(since), traffic.Canary(since)
			}
		}
		t.Fatalf("no family %s", name)
		return 0, 0
	}
	for _, tt := range []struct {
		name           string
		effect         float64
		since          time.Duration
		stable, canary float64
	}{
		{"independent", effect, time.Minute, base, base + effect},
		{"edge", 0, time.Minute, base, 1.1*base + .001},
		{"incident", 0, 2 * time.Minute, base, base},
		{"incident", 0, 5 * time.Minute, base + .05, base + .05},
		{"incident", effect, 5 * time.Minute, base + .05, base + effect + .05},
		{"incident", 0, 9 * time.Minute, base, base},
		{"drift", 0, 150 * time.Second, 1.8 * base, 1.8 * base},
		{"drift", 0, 450 * time.Second, .2 * base, .2 * base},
		{"overdispersed", effect, time.Minute, base, base + effect},
		{"burst", effect, time.Minute, base, base + effect},
		{"cold start", 0, 0, base, base + .2},
		{"cold start", 0, 7500 * time.Millisecond, base, base + .1},
		{"cold start", 0, 15 * time.Second, base, base},
		{"late defect", effect, 299 * time.Second, base, base},
		{"late defect", effect, 300 * time.Second, base, base + effect},
	} {
		stable, canary := at(tt.name, tt.effect, tt.since)
		if math.Abs(stable-tt.stable) > 1e-12 || math.Abs(canary-tt.canary) > 1e-12 {
			t.Errorf("%s at %v: %v and %v, want %v and %v", tt.name, tt.since, stable, canary, tt.stable, tt.canary)
		}
	}
}

// What all proxies suffer at once is not in the dispersion among them, and what
// breaks at one of them is.
func TestWindowsSayHowMuchTheProxiesDiffer(t *testing.T) {
	for _, tt := range []struct {
		family              string
		total, perProxyFrom float64
		perProxyTo          float64
	}{
		{"independent", 1, .8, 1.25},
		{"overdispersed", 20, .8, 1.25},
		{"burst", 6, 6, 14},
	} {
		i := slices.IndexFunc(Families, func(f Family) bool { return f.Name == tt.family })
		c := Cell{Family: &Families[i], Rate: 1000, Base: .01}
		rule := NewSerin(judge.Defaults())
		for run := range 200 {
			w := c.Traffic().window(newRandom(1, c.String(), run), time.Duration(run)*analysis.WindowLength, 0)
			if w.Stable.Spread.Proxies != proxies {
				t.Fatalf("%s: %d proxies, want %d", tt.family, w.Stable.Spread.Proxies, proxies)
			}
			rule.Remember(w)
		}
		d := rule.state.Dispersion()
		total, perProxy := d.Total.Squares/d.Total.Expected, d.PerProxy.Squares/d.PerProxy.Expected
		t.Logf("%s: %.2f in total, %.2f per proxy", tt.family, total, perProxy)
		if total < .8*tt.total || perProxy < tt.perProxyFrom || perProxy > tt.perProxyTo {
			t.Errorf("%s: dispersion %.2f in total and %.2f per proxy", tt.family, total, perProxy)
		}
	}
}

func TestLatency(t *testing.T) {
	plain := Latency{Median: .05}
	late := Latency{Median: .05, Late: .02, Delay: 1}
	for _, tt := range []struct {
		name    string
		latency Latency
		seconds float64
		want    float64
	}{
		{"half is within the median", plain, .05, .5},
		{"the p99 is 3.2 medians", plain, .05 * math.Exp(.5*2.3263478740408408), .99},
		{"nothing is within nothing", plain, 0, 0},
		{"2 % have not even begun after a second", late, 1, .98},
		{"half of those are back a median later", late, 1.05, .99},
	} {
		if got := tt.latency.within(tt.seconds); math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHistogramsHaveTheSharesOfTheirLatency(t *testing.T) {
	const n = 200_000
	l := Latency{Median: .05, Late: .02, Delay: 1}
	h := l.histogram(newRandom(1, "histogram", 0), n)
	for i, le := range h.LE {
		p := l.within(le)
		if d := math.Abs(float64(h.Counts[i])/n - p); d > 5*math.Sqrt(p*(1-p)/n)+1e-9 {
			t.Errorf("within %v s: %d of %d, want %v", le, h.Counts[i], n, p)
		}
	}
	if h.Counts[len(h.LE)] != n {
		t.Errorf("%d timed, want all", h.Counts[len(h.LE)])
	}
}
