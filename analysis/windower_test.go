// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/serin-dev/serin/analysis"
)

// at is a number of seconds after some beginning.
func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).UTC().Add(time.Duration(seconds * float64(time.Second)))
}

func variant(requests, failures int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Failures: failures}
}

// withoutSpread leaves to TestAWindowTellsHowFailuresWereDividedBetweenProxies
// what it is about.
var withoutSpread = cmpopts.IgnoreFields(analysis.Variant{}, "Spread")

// timed is an variant whose requests took up to 0.1 s, up to 1 s, or longer.
func timed(requests int64, counts ...int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Latency: &analysis.Histogram{LE: []float64{.1, 1}, Counts: counts}}
}

type pods = map[string]analysis.PodCounters

func counters(canary, stable analysis.Variant) analysis.PodCounters {
	return analysis.PodCounters{Canary: canary, Stable: stable}
}

func scrape(seconds float64, p pods) analysis.Scrape {
	return analysis.Scrape{At: at(seconds), Pods: p}
}

func TestWindower(t *testing.T) {
	settled := analysis.Weight{Percent: 20, Since: at(-100)}
	window := func(start, end float64, canary, stable analysis.Variant) analysis.Window {
		return analysis.Window{Start: at(start), End: at(end), Weight: 20, Canary: canary, Stable: stable}
	}
	first := scrape(0, pods{"a@1": counters(variant(100, 1), variant(900, 9)), "b@1": counters(variant(200, 2), variant(800, 8))})
	for _, tt := range []struct {
		name   string
		second analysis.Scrape
		weight analysis.Weight
		want   analysis.Window
		reason analysis.Reason
	}{
		{
			"adds up what every pod counted",
			scrape(5, pods{"a@1": counters(variant(110, 2), variant(990, 9)), "b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(15, 1), variant(140, 2)), "",
		},
		{
			"counts nothing as zero when nothing was asked",
			scrape(5, first.Pods), settled,
			window(0, 5, variant(0, 0), variant(0, 0)), "",
		},
		{
			"leaves out a pod that was not read",
			scrape(5, pods{"b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"leaves out a pod that is new, however much it has counted",
			scrape(5, pods{"b@1": counters(variant(205, 2), variant(850, 10)), "c@1": counters(variant(7777, 7), variant(7777, 7))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"leaves out a proxy that restarted",
			scrape(5, pods{"a@2": counters(variant(500, 0), variant(5000, 0)), "b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"leaves out both variants of a pod when one counter went backwards",
			scrape(5, pods{"a@1": counters(variant(99, 1), variant(5000, 9)), "b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"leaves out a pod whose failures alone went backwards",
			scrape(5, pods{"a@1": counters(variant(200, 0), variant(5000, 9)), "b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"leaves out a pod whose successes went backwards while the sum grew",
			scrape(5, pods{"a@1": counters(variant(101, 50), variant(5000, 9)), "b@1": counters(variant(205, 2), variant(850, 10))}), settled,
			window(0, 5, variant(5, 0), variant(50, 2)), "",
		},
		{
			"has no window when no pod is left",
			scrape(5, pods{"a@2": counters(variant(500, 0), variant(5000, 0)), "b@1": counters(variant(0, 0), variant(0, 0))}), settled,
			analysis.Window{},
			analysis.ReasonSeriesChanged,
		},
		{
			"has no window when no pod could be read",
			scrape(5, nil), settled,
			analysis.Window{},
			analysis.ReasonNoData,
		},
		{
			"drops a scrape of the same time",
			scrape(0, pods{"a@1": counters(variant(110, 2), variant(990, 9))}), settled,
			analysis.Window{},
			analysis.ReasonOutOfOrder,
		},
		{
			"drops a late scrape",
			scrape(-1, pods{"a@1": counters(variant(110, 2), variant(990, 9))}), settled,
			analysis.Window{},
			analysis.ReasonOutOfOrder,
		},
		{
			"has no window across a long gap",
			scrape(60.1, first.Pods), settled,
			analysis.Window{},
			analysis.ReasonGap,
		},
		{
			"has no window while the weight changes",
			scrape(5, first.Pods),
			analysis.Weight{Percent: 20},
			analysis.Window{},
			analysis.ReasonWeightChanging,
		},
		{
			"has no window if the weight took effect after it began",
			scrape(5, first.Pods),
			analysis.Weight{Percent: 20, Since: at(.001)},
			analysis.Window{},
			analysis.ReasonWeightChanging,
		},
		{
			"has a window that began when the weight took effect",
			scrape(5, first.Pods),
			analysis.Weight{Percent: 20, Since: at(0)},
			window(0, 5, variant(0, 0), variant(0, 0)), "",
		},
		{
			"has no window for a weight that cannot be",
			scrape(5, first.Pods),
			analysis.Weight{Percent: 101, Since: at(-1)},
			analysis.Window{},
			analysis.ReasonSeriesChanged,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _, reason := analysis.Windower{}.Add(first, settled)
			if reason != analysis.ReasonFirstScrape {
				t.Fatalf("reason after the first scrape = %q, want FirstScrape", reason)
			}
			_, got, reason := w.Add(tt.second, tt.weight)
			if reason != tt.reason {
				t.Errorf("reason = %q, want %q", reason, tt.reason)
			}
			if diff := cmp.Diff(tt.want, got, withoutSpread); diff != "" {
				t.Errorf("window (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWindowerLatency(t *testing.T) {
	other := analysis.Variant{Requests: 10, Latency: &analysis.Histogram{LE: []float64{.2, 1}, Counts: []int64{1, 2, 3}}}
	for _, tt := range []struct {
		name          string
		first, second []analysis.Variant // of the canary in each pod
		want          analysis.Variant
	}{
		{
			"adds up the increases of the buckets",
			[]analysis.Variant{timed(10, 5, 9, 10), timed(20, 20, 20, 20)},
			[]analysis.Variant{timed(15, 6, 13, 15), timed(30, 25, 30, 30)},
			timed(15, 6, 14, 15),
		},
		{
			"counts a histogram that began with the first request from zero",
			[]analysis.Variant{variant(0, 0)},
			[]analysis.Variant{timed(15, 6, 13, 15)},
			timed(15, 6, 13, 15),
		},
		{
			"takes a pod that answered nothing for no obstacle",
			[]analysis.Variant{variant(0, 0), timed(10, 5, 9, 10), variant(0, 0)},
			[]analysis.Variant{variant(0, 0), timed(15, 6, 13, 15), variant(0, 0)},
			timed(5, 1, 4, 5),
		},
		{
			"does not know the latency if a pod does not",
			[]analysis.Variant{timed(10, 5, 9, 10), variant(10, 0)},
			[]analysis.Variant{timed(15, 6, 13, 15), variant(20, 0)},
			variant(15, 0),
		},
		{
			"does not know the latency of requests from before there was a histogram",
			[]analysis.Variant{variant(10, 0)},
			[]analysis.Variant{timed(15, 6, 13, 15)},
			variant(5, 0),
		},
		{
			"does not add buckets of different bounds",
			[]analysis.Variant{timed(10, 5, 9, 10), {}},
			[]analysis.Variant{timed(15, 6, 13, 15), other},
			variant(15, 0),
		},
		{
			"leaves out a pod whose bounds changed",
			[]analysis.Variant{timed(10, 5, 9, 10), timed(5, 1, 2, 3)},
			[]analysis.Variant{timed(15, 6, 13, 15), other},
			timed(5, 1, 4, 5),
		},
		{
			"leaves out a pod whose buckets went backwards",
			[]analysis.Variant{timed(10, 5, 9, 10), timed(20, 20, 20, 20)},
			[]analysis.Variant{timed(15, 6, 13, 15), timed(25, 19, 25, 25)},
			timed(5, 1, 4, 5),
		},
		{
			"leaves out a pod whose histogram vanished",
			[]analysis.Variant{timed(10, 5, 9, 10), timed(20, 20, 20, 20)},
			[]analysis.Variant{timed(15, 6, 13, 15), variant(25, 0)},
			timed(5, 1, 4, 5),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both := func(seconds float64, variants []analysis.Variant) analysis.Scrape {
				p := pods{}
				for i, a := range variants {
					p[string(rune('a'+i))] = counters(a, variant(0, 0))
				}
				return scrape(seconds, p)
			}
			weight := analysis.Weight{Since: at(0)}
			w, _, _ := analysis.Windower{}.Add(both(0, tt.first), weight)
			_, got, reason := w.Add(both(5, tt.second), weight)
			if reason != "" {
				t.Fatalf("reason = %q, want a window", reason)
			}
			if diff := cmp.Diff(tt.want, got.Canary, withoutSpread); diff != "" {
				t.Errorf("canary (-want +got):\n%s", diff)
			}
		})
	}
}

// Two pods count steadily; one is missed, restarts or comes late. Whatever
// happens, what windows hold was counted, once, and in time.
func TestWindowsNeverOverlapAndNeverHoldMoreThanWasCounted(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var (
			w       analysis.Windower
			now     float64
			windows []analysis.Window
			since   = 0.0
			sums    = pods{"a": {}, "b": {}, "c": {}}
			total   analysis.Variant
		)
		for range 60 {
			now += 1 + 9*rng.Float64()
			for _, key := range slices.Sorted(maps.Keys(sums)) {
				c := sums[key]
				n := rng.Int64N(50)
				c.Canary.Requests, c.Canary.Failures = c.Canary.Requests+n, c.Canary.Failures+n/5
				total.Requests, total.Failures = total.Requests+n, total.Failures+n/5
				sums[key] = c
			}
			if rng.IntN(10) == 0 {
				since = now - 3*rng.Float64()
			}
			seen := maps.Clone(sums)
			switch key := slices.Sorted(maps.Keys(sums))[rng.IntN(3)]; rng.IntN(5) {
			case 0:
				delete(seen, key)
			case 1:
				delete(sums, key)
				sums[key+"'"] = analysis.PodCounters{}
				seen = maps.Clone(sums)
			case 2:
				clear(seen)
			}
			s := scrape(now, seen)
			if rng.IntN(10) == 0 {
				s.At = at(now - 20)
			}
			var (
				got    analysis.Window
				reason analysis.Reason
			)
			w, got, reason = w.Add(s, analysis.Weight{Percent: 10, Since: at(since)})
			if reason != "" {
				continue
			}
			if got.Start.Before(at(since)) {
				t.Fatalf("seed %d: window from %v although the weight is live since %v", seed, got.Start, at(since))
			}
			windows = append(windows, got)
		}
		checkWindows(t, seed, windows, total)
	}
}

func checkWindows(t *testing.T, seed uint64, windows []analysis.Window, total analysis.Variant) {
	t.Helper()
	var sum analysis.Variant
	for i, w := range windows {
		if err := w.Validate(); err != nil {
			t.Fatalf("seed %d: window %d: %v", seed, i, err)
		}
		if i > 0 && w.Start.Before(windows[i-1].End) {
			t.Fatalf("seed %d: window %d begins at %v, before the end of the one before at %v", seed, i, w.Start, windows[i-1].End)
		}
		sum.Requests, sum.Failures = sum.Requests+w.Canary.Requests, sum.Failures+w.Canary.Failures
	}
	if sum.Requests > total.Requests || sum.Failures > total.Failures {
		t.Fatalf("seed %d: windows hold %+v, more than the %+v that there were", seed, sum, total)
	}
	if len(windows) < 5 || sum.Requests == 0 {
		t.Fatalf("seed %d: only %d windows: nothing was tested", seed, len(windows))
	}
}

func TestAWindowTellsWhatTheProxiesRefused(t *testing.T) {
	pods := func(a, b, c analysis.Variant) pods {
		return pods{"a": {All: a}, "b": {All: b}, "c": {All: c}}
	}
	settled := analysis.Weight{Percent: 20, Since: at(0)}
	w, _, _ := analysis.Windower{}.Add(scrape(0, pods(variant(100, 7), variant(50, 1), variant(90, 9))), settled)
	want := analysis.Window{Start: at(0), End: at(5), Weight: 20, Proxies: variant(170, 30)}
	if _, got, _ := w.Add(scrape(5, pods(variant(250, 37), variant(70, 1), variant(80, 9))), settled); cmp.Diff(want, got) != "" {
		t.Errorf("of two proxies, and one whose counter went backwards (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestAWindowTellsHowFailuresWereDividedBetweenProxies(t *testing.T) {
	pods := func(a, b, idle analysis.Variant) map[string]analysis.PodCounters {
		return map[string]analysis.PodCounters{"a": {Stable: a}, "b": {Stable: b, Canary: a}, "idle": {Stable: idle}}
	}
	settled := analysis.Weight{Percent: 20, Since: at(0)}
	w, _, _ := analysis.Windower{}.Add(analysis.Scrape{At: at(0), Pods: pods(variant(100, 7), variant(50, 1), variant(9, 9))}, settled)
	_, got, reason := w.Add(analysis.Scrape{At: at(5), Pods: pods(variant(150, 17), variant(70, 5), variant(9, 9))}, settled)
	if reason != "" {
		t.Fatalf("reason = %q, want a window", reason)
	}
	want := analysis.Window{
		Start: at(0), End: at(5), Weight: 20,
		Canary: analysis.Variant{Requests: 50, Failures: 10, Spread: analysis.Spread{Proxies: 1, Squares: 10. * 10 / 50}},
		Stable: analysis.Variant{Requests: 70, Failures: 14, Spread: analysis.Spread{Proxies: 2, Squares: 10.*10/50 + 4.*4/20}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
}
