// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/serin-dev/serin/analysis"
)

const (
	// edges is how many bounds of a histogram are compared at most.
	edges = 3
	// maxBounds is how many bounds of a histogram are looked at; those above are
	// never edges.
	maxBounds = 32
	// leastWithin is the share of stable's events that an edge must have below it:
	// where most events are beyond, none can be much worse.
	leastWithin = 0.3
)

// quantiles of stable that the edges are nearest to.
var quantiles = [edges]float64{.5, .9, .99}

// preview is what is known of stable before a metric is bet on.
type preview struct {
	events, bad int64
	// bounds tells histograms with other bounds apart.
	bounds uint64
	within [maxBounds]uint32
}

func (p *preview) addCounts(stable *analysis.Arm) {
	p.events += stable.Requests
	p.bad += stable.Failures
}

// settleCounts opens the one track of a counted metric.
func (p *preview) settleCounts(tracks *[edges]track) int32 {
	if p.events < opening {
		return 0
	}
	tracks[0] = track{usual: rough(smooth(p.bad, p.events))}
	return 1
}

// addHistogram adds what stable counted. Bounds that change begin again.
func (p *preview) addHistogram(stable *analysis.Arm) {
	h := stable.Latency
	if key := boundsKey(h.LE); key != p.bounds {
		*p = preview{bounds: key}
	}
	total, unit := h.Total(stable.Requests), int64(1)
	for total/unit > math.MaxInt32 {
		unit *= 2 // a sample of so many says as much
	}
	p.events += total / unit
	for i := range min(len(h.LE), maxBounds) {
		p.within[i] += uint32(h.Counts[i] / unit) //nolint:gosec // less than 2^31, after fewer than are thorough
	}
}

// settleEdges opens a track for each bound that is nearest to a quantile of
// stable, on the scale of log odds. A bound is taken as it is; nothing is
// interpolated.
func (p *preview) settleEdges(bounds []float64, enough int64, tracks *[edges]track) int32 {
	if p.events < enough {
		return 0
	}
	var open int32
	last := -1
	for _, q := range quantiles {
		i := p.nearest(q, min(len(bounds), maxBounds))
		if i < 0 || i == last {
			continue
		}
		last = i
		tracks[open] = track{edge: bounds[i], usual: rough(smooth(p.events-int64(p.within[i]), p.events))}
		open++
	}
	if open == 0 {
		*p = preview{} // stable is beyond every bound: look again
	}
	return open
}

// nearest is the first of the bounds that are nearest to a quantile; -1 when none is fit.
func (p *preview) nearest(quantile float64, bounds int) int {
	best, distance := -1, math.Inf(1)
	for i := range bounds {
		share := smooth(int64(p.within[i]), p.events)
		if d := math.Abs(logit(share) - logit(quantile)); share >= leastWithin && d < distance {
			best, distance = i, d
		}
	}
	return best
}

// smooth is the share k/n, kept away from 0 and 1.
func smooth(k, n int64) float64 { return (float64(max(k, 0)) + 0.5) / (float64(n) + 1) }

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

func boundsKey(bounds []float64) uint64 {
	h := newHash()
	for _, b := range bounds {
		h.add(math.Float64bits(b))
	}
	return uint64(h)
}
