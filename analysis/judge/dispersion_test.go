// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// clustered makes windows whose requests fail in groups of a size, each group
// within one of some proxies.
type clustered struct {
	*traffic
	size, proxies int64
	// shared is the standard deviation of a factor that all proxies have in common
	// in one window, and not the other version.
	shared float64
}

func (c *clustered) next() analysis.Window {
	w := c.traffic.next()
	w.Canary = c.variant(w.Canary.Requests, c.canary(c.at-c.length))
	w.Stable = c.variant(w.Stable.Requests, c.stable(c.at-c.length))
	return w
}

func (c *clustered) variant(n int64, p float64) analysis.Variant {
	if c.shared > 0 {
		p *= math.Exp(c.shared*c.rng.NormFloat64() - c.shared*c.shared/2)
	}
	var sum analysis.Variant
	for range c.proxies {
		part := n / c.proxies
		bad := c.size * c.binomial(part/c.size, p)
		sum.Requests += part
		sum.Failures += bad
		if part > 0 {
			sum.Spread.Proxies++
			sum.Spread.Squares += float64(bad) * float64(bad) / float64(part)
		}
	}
	return sum
}

// history is what an earlier release measured of stable, for so long.
func (c *clustered) history(length time.Duration) judge.Dispersion {
	before := *c.traffic
	before.weight = func(time.Duration) int32 { return 0 }
	earlier := clustered{traffic: &before, size: c.size, proxies: c.proxies, shared: c.shared}
	var s judge.State
	for before.at < length {
		s, _ = judge.Defaults().Next(s, earlier.next())
	}
	return s.Dispersion()
}

func newClustered(seed uint64, rate float64, size, proxies int64) *clustered {
	return &clustered{traffic: newTraffic(seed, rate), size: size, proxies: proxies}
}

// ratios are by how much stable's failures vary more than independent ones.
func ratios(d judge.Dispersion) (total, perProxy float64) {
	return d.Total.Squares / d.Total.Expected, d.PerProxy.Squares / d.PerProxy.Expected
}

func TestTheDispersionOfStableIsMeasured(t *testing.T) {
	for _, tt := range []struct {
		name            string
		size            int64
		shared          float64
		stable          func(time.Duration) float64
		total, perProxy float64
	}{
		{"independent requests", 1, 0, always(.01), 1, 1},
		{"independent requests that drift", 1, 0, func(at time.Duration) float64 { return .03 * (1 + math.Sin(at.Minutes()/5)) }, 1, 1},
		{"groups of ten", 10, 0, always(.01), 10, 10},
		{"a factor that all proxies share", 1, .5, always(.02), 1 + 5000*.02*(math.Exp(.25)-1), 1},
		{"both", 5, .5, always(.02), 5 + 5000*.02*(math.Exp(.25)-1), 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			flow := newClustered(5, 1000, tt.size, 10)
			flow.stable, flow.shared = tt.stable, tt.shared
			total, perProxy := ratios(flow.history(time.Hour))
			t.Logf("total %.2f, per proxy %.2f", total, perProxy)
			if math.Abs(total/tt.total-1) > .25 || math.Abs(perProxy/tt.perProxy-1) > .1 {
				t.Errorf("dispersion = %.2f in total and %.2f per proxy, want %.2f and %.2f", total, perProxy, tt.total, tt.perProxy)
			}
		})
	}
}

func TestGoodCanariesWhoseFailuresComeInClustersAreKept(t *testing.T) {
	const runs, length = 80, 10 * time.Minute
	for _, tt := range []struct {
		name    string
		rate    float64
		size    int64
		proxies int64
		shared  float64
		base    float64
	}{
		{"groups of ten", 1000, 10, 4, 0, .01},
		{"groups of thirty, at one proxy", 200, 30, 1, 0, .01},
		{"a factor that all proxies share", 1000, 1, 4, .8, .01},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rolledBack := func(configure func(*clustered, *judge.Config)) int {
				n := 0
				for run := range runs {
					flow := newClustered(uint64(run), tt.rate, tt.size, tt.proxies)
					flow.stable, flow.canary, flow.shared, flow.weight = always(tt.base), always(tt.base), tt.shared, planned
					c := judge.Defaults()
					configure(flow, &c)
					if flow.failed(c, length) {
						n++
					}
				}
				return n
			}
			first := rolledBack(func(*clustered, *judge.Config) {})
			known := rolledBack(func(flow *clustered, c *judge.Config) { c.Dispersion = flow.history(10 * time.Minute) })
			never := rolledBack(func(_ *clustered, c *judge.Config) { c.MaxCorrelatedFailures = 1 })
			t.Logf("%s: rolled back %d of %d in a first release, %d with a history and %d untempered", tt.name, first, runs, known, never)
			if tt.name == "groups of ten" {
				wantOnPage(t, "`maxCorrelatedFailures` states the size by hand. In simulated traffic with failures in groups of ten, ",
					fmt.Sprintf("`maxCorrelatedFailures` states the size by hand. In simulated traffic with failures in groups of ten, %d of %d good", never, runs))
			}
			if first > 3 || known > 3 {
				t.Errorf("%d and %d of %d good canaries rolled back, want at most about 1 %%", first, known, runs)
			}
			if never < runs/4 {
				t.Error("few are rolled back untempered: this traffic shows nothing")
			}
		})
	}
}

// failed plays windows until the verdict is Fail, and reports whether it was by the end.
func (c *clustered) failed(config judge.Config, length time.Duration) bool {
	var s judge.State
	var r judge.Result
	for c.at < length && r.Verdict != judge.Fail {
		s, r = config.Next(s, c.next())
	}
	return r.Verdict == judge.Fail
}

func TestAStatedClusterTempersFromTheBeginning(t *testing.T) {
	rolledBack := func(maxCorrelatedFailures float64) int {
		n := 0
		for run := range 200 {
			flow := newClustered(uint64(run), 500, 20, 1)
			flow.stable, flow.canary = always(.01), always(.01)
			c := judge.Defaults()
			c.MaxCorrelatedFailures = maxCorrelatedFailures
			if flow.failed(c, 5*time.Minute) {
				n++
			}
		}
		return n
	}
	if bad := rolledBack(20); bad > 5 {
		t.Errorf("%d of 200 good canaries rolled back, though the size of the clusters is stated", bad)
	}
	if bad := rolledBack(1); bad < 20 {
		t.Errorf("%d of 200 rolled back when one is stated: this traffic shows nothing", bad)
	}
}

func TestABadCanaryIsFoundThroughClusters(t *testing.T) {
	flow := newClustered(1, 1000, 10, 4)
	flow.stable = always(.01)
	c := judge.Defaults()
	c.Dispersion = flow.history(10 * time.Minute)
	flow.canary = always(.06)
	found := flow.failed(c, 5*time.Minute)
	t.Logf("found after %v", flow.at)
	if !found {
		t.Error("5 pp more in groups of ten are not found in five minutes")
	}
}

func TestAnIncidentThatHitsBothVersionsDoesNotBlindTheJudgeForLong(t *testing.T) {
	flow := newClustered(1, 1000, 1, 4)
	flow.stable = incident(.001)
	total, _ := ratios(flow.history(20 * time.Minute))
	t.Logf("dispersion after an incident: %.2f", total)
	if total > 12 {
		t.Errorf("dispersion = %.1f after two jumps of 5 pp, want them to weigh little against twenty minutes", total)
	}
}

func TestADispersionIsStoredAndHandedToTheNextRelease(t *testing.T) {
	flow := newClustered(1, 1000, 10, 4)
	flow.stable = always(.01)
	d := flow.history(20 * time.Minute)
	text, err := d.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back judge.Dispersion
	if err := back.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	c := plain()
	c.Dispersion = back
	s, _ := c.Next(judge.State{}, window(0, 50, variant(100, 0), variant(100, 0)))
	if diff := cmp.Diff(d, s.Dispersion()); diff != "" {
		t.Errorf("known in the next release (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{"nothing": "", "a state": "serin-judge/3 AAAA", "cut short": string(text[:len(text)-4])} {
		if err := back.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s was read without an error", name)
		}
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Errorf("changed by what could not be read (-want +got):\n%s", diff)
	}
}

// Stable's failures are independent of each other, and those of a canary that is
// worse by the tolerance come in groups: in the seconds between two of them it
// looks better than stable.
func TestACanaryWhoseOwnFailuresComeInClustersIsSeldomPromotedEarlyBetweenThem(t *testing.T) {
	const runs = 200
	promoted := 0
	for run := range runs {
		flow := newClustered(uint64(run), 1000, 1, 4)
		flow.stable, flow.canary = always(.001), always(.001+judge.Defaults().Tolerance)
		flow.weight = func(time.Duration) int32 { return 50 }
		groups := clustered{traffic: flow.traffic, size: 20, proxies: 4}
		c := judge.Defaults()
		c.Dispersion = flow.history(10 * time.Minute)
		var s judge.State
		var r judge.Result
		for flow.at < 10*time.Minute && r.Verdict != judge.Fail && !r.MayPromote {
			w := flow.next()
			w.Canary = groups.variant(w.Canary.Requests, flow.canary(flow.at))
			s, r = c.Next(s, w)
		}
		if r.MayPromote {
			promoted++
		}
	}
	t.Logf("%d of %d promoted early", promoted, runs)
	// Tempered by what stable does alone, a quarter is. The rest is promoted before
	// its first groups were seen.
	if promoted > runs/8 {
		t.Errorf("%d of %d canaries that are worse by the tolerance may be promoted early", promoted, runs)
	}
}
