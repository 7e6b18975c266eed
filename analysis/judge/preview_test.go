// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
)

// edgesOf are the bounds that are compared when stable has had 1,000 requests.
func edgesOf(bounds []float64, counts []int64) (list []float64) {
	m := metric{}
	m.learn(&analysis.Variant{Requests: 1000, Latency: &analysis.Histogram{LE: bounds, Counts: counts}}, opening, 0, 0)
	for _, track := range m.tracks[:m.open] {
		list = append(list, track.edge)
	}
	return list
}

func TestEdgesAreTheBoundsNearestToStablesQuantiles(t *testing.T) {
	le := []float64{.01, .02, .05, .1, .2, .5, 1}
	for _, tt := range []struct {
		name   string
		counts []int64 // of 1,000 requests
		want   []float64
	}{
		{"each quantile has its bound", []int64{100, 490, 700, 910, 970, 992, 1000}, []float64{.02, .1, .5}},
		{"exactly on bounds", []int64{0, 0, 500, 900, 990, 1000, 1000}, []float64{.05, .1, .2}},
		{"all requests are faster than the first bound", []int64{1000, 1000, 1000, 1000, 1000, 1000, 1000}, []float64{.01}},
		{"two quantiles share a bound", []int64{0, 0, 0, 880, 995, 1000, 1000}, []float64{.1, .2}},
		{"most are between two bounds", []int64{0, 0, 100, 1000, 1000, 1000, 1000}, []float64{.1}},
		{"nearly all are slower than every bound", []int64{0, 0, 0, 0, 0, 0, 100}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, edgesOf(le, tt.counts)); diff != "" {
				t.Errorf("edges (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShortBoundsAreNoEdges: below them the node decides, not the version.
func TestShortBoundsAreNoEdges(t *testing.T) {
	le := []float64{.001, .002, .005, .0075, .01, .02}
	for _, tt := range []struct {
		name   string
		counts []int64 // of 1,000 requests
		want   []float64
	}{
		{"each quantile would have a shorter one", []int64{500, 990, 1000, 1000, 1000, 1000}, []float64{.005}},
		{"the median would", []int64{500, 700, 800, 890, 990, 1000}, []float64{.005, .0075, .01}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, edgesOf(le, tt.counts)); diff != "" {
				t.Errorf("edges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEdgesAreSettledOnceAndFromEnoughRequests(t *testing.T) {
	few := func(le ...float64) *analysis.Variant {
		return &analysis.Variant{Requests: 40, Latency: &analysis.Histogram{LE: le, Counts: []int64{20, 40}}}
	}
	var m metric
	for i, want := range []int32{0, 0, 2} {
		if m.learn(few(.1, .5), opening, 0, 0); m.open != want {
			t.Fatalf("after %d windows: %d edges, want %d", i+1, m.open, want)
		}
	}
	before := m
	if m.learn(&analysis.Variant{Requests: 1e6, Latency: &analysis.Histogram{LE: []float64{.1, .5}, Counts: []int64{0, 1e6}}}, opening, 0, 0); m != before {
		t.Error("the edges changed after they were settled")
	}

	m = metric{}
	m.learn(few(.1, .5), opening, 0, 0)
	m.learn(few(.1, .5), opening, 0, 0)
	m.learn(few(.2, .5), opening, 0, 0)
	if m.open != 0 || m.before.events != 40 {
		t.Errorf("after other bounds: %d edges from %d events, want none: counts of other bounds cannot be added", m.open, m.before.events)
	}
}

func TestAMetricThatIsSettledLateBeginsWithTheWholeStake(t *testing.T) {
	var m metric
	const spent, inFavour = .7, .55
	m.learn(&analysis.Variant{Requests: 500, Failures: 3}, opening, spent, inFavour)
	if e, f := m.evidence(spent), m.assurance(inFavour); e < 1-1e-6 || e > 1 || f < 1-1e-6 || f > 1 {
		t.Errorf("evidence %v and %v, want 1: nothing was bet yet, and nothing may be lost or won", e, f)
	}
}
