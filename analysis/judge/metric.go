// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/serin-dev/serin/analysis"
)

// Slots of the metrics in a State.
const (
	failuresSlot = iota
	latencySlot
	userSlots
	slots = userSlots + MaxComparisons
)

// kind is what a metric's samples look like. It is settled with the first one.
type kind uint8

const (
	unknown kind = iota
	counted
	histogram
)

// What is known of stable settles the usual share of bad events and the edges of
// a histogram.
const (
	// opening is how many events of stable must be known before a metric is bet on.
	opening = 100
	// thorough is how many settle the edges of a histogram while there is time: with
	// fewer, the share beyond the p99 is hardly known, and its edge often falls on
	// a bound that says nothing.
	thorough = 5000
)

// metric is one thing that both versions are compared by.
type metric struct {
	// key is that of the user's name for it; 0 for failures and latency.
	key  uint64
	kind kind
	// open is how many tracks are bet on; none before there is enough of stable.
	open int32
	// apart means that samples did not cover the same stretches of time as the
	// windows that they came in.
	apart bool
	// end is when the last sample of a user's metric ended, Unix nanoseconds.
	end    int64
	before preview
	tracks [edges]track
}

// observation is what one window says about a metric.
type observation struct{ canary, stable *analysis.Variant }

// counts are those of one track; false when the bounds of the histograms do not
// tell, since they changed.
func (o observation) counts(k kind, edge float64) (counts, bool) {
	if k == counted {
		return counts{
			nc: float64(o.canary.Requests), kc: float64(o.canary.Failures),
			ns: float64(o.stable.Requests), ks: float64(o.stable.Failures),
		}, true
	}
	nc, kc, okCanary := beyond(o.canary, edge)
	ns, ks, okStable := beyond(o.stable, edge)
	return counts{nc: nc, kc: kc, ns: ns, ks: ks}, okCanary && okStable
}

// beyond counts what was timed and what was beyond an edge; false unless the
// edge is a bound of the histogram.
func beyond(a *analysis.Variant, edge float64) (n, k float64, ok bool) {
	if a.Latency == nil {
		return 0, 0, a.Requests == 0
	}
	s := a.Latency.ShareWithin(edge, a.Requests)
	return float64(s.Total), float64(s.Beyond), s.Within+s.Beyond == s.Total
}

// play bets on a window and remembers it. The order matters: bets are made with
// what was known before.
func (m *metric) play(o observation, null *nulls, t temperings, keep float64) {
	if m.open == 0 {
		return
	}
	for i := range m.tracks[:m.open] {
		track := &m.tracks[i]
		n, ok := o.counts(m.kind, track.edge)
		if !ok {
			continue
		}
		track.betAgainst(t.against(n), null)
		track.betFor(t.favour(n), null)
		track.remember(n, keep)
	}
}

// learn settles how to bet on a metric from stable's events, once there are
// enough of them, given as the number that settles the edges of a histogram. It
// is called after play, so that no event is bet on with what it taught. The stake
// that is due by then is put on the new bets at once.
func (m *metric) learn(stable *analysis.Variant, enough int64, spent, spentFavour float64) {
	if m.open > 0 {
		return
	}
	if m.kind == unknown {
		m.kind = kindOf(stable)
	}
	switch {
	case m.kind == counted && stable.Latency == nil:
		m.before.addCounts(stable)
		m.open = m.before.settleCounts(&m.tracks)
	case m.kind == histogram && stable.Latency != nil:
		m.before.addHistogram(stable)
		m.open = m.before.settleEdges(stable.Latency.LE, enough, &m.tracks)
	}
	if m.open > 0 {
		m.before = preview{}
	}
	m.stake(spent, spentFavour)
}

func kindOf(stable *analysis.Variant) kind {
	switch {
	case stable.Latency != nil:
		return histogram
	case stable.Requests > 0:
		return counted
	default:
		return unknown
	}
}

// stake puts more on the bets of every open track.
func (m *metric) stake(against, favour float64) {
	for i := range m.tracks[:m.open] {
		m.tracks[i].stake(against, favour)
	}
}

// restart takes back what was bet in favour of the canary: a new step begins.
func (m *metric) restart() {
	for i := range m.tracks {
		m.tracks[i].favour = [hopes]float64{}
	}
}

// evidence is the mean over the tracks, which is valid however they depend on
// each other. A metric that is not bet on yet has its stake.
func (m *metric) evidence(spent float64) float64 {
	if m.open == 0 {
		return 1
	}
	var sum float64
	for i := range m.tracks[:m.open] {
		sum += m.tracks[i].evidence(spent)
	}
	return sum / float64(m.open)
}

// assurance is the least of the tracks: being good at one edge excuses nothing
// at another.
func (m *metric) assurance(spentFavour float64) float64 {
	if m.open == 0 {
		return 1
	}
	least := m.tracks[0].assurance(spentFavour)
	for i := range m.tracks[1:m.open] {
		least = min(least, m.tracks[1+i].assurance(spentFavour))
	}
	return least
}

// worst is the track with the most evidence.
func (m *metric) worst(spent float64) *track {
	worst := &m.tracks[0]
	for i := range m.tracks[:m.open] {
		if m.tracks[i].evidence(spent) > worst.evidence(spent) {
			worst = &m.tracks[i]
		}
	}
	return worst
}

const (
	// edges is how many bounds of a histogram are compared at most.
	edges = 3
	// maxBounds is how many bounds of a histogram are looked at; those above are
	// never edges.
	maxBounds = 32
	// leastWithin is the share of stable's events that an edge must have below it:
	// where most events are beyond, none can be much worse.
	leastWithin = 0.3
	// shortest is the least bound that is compared, in seconds. Below it there is little but noise:
	// nginx counts whole milliseconds by a clock that stands still while it handles other requests,
	// and a process of a busy node waits for milliseconds until a processor is free. So the share
	// beyond a shorter bound says more of the node that a pod is on than of its version.
	shortest = 0.005
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

func (p *preview) addCounts(stable *analysis.Variant) {
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
func (p *preview) addHistogram(stable *analysis.Variant) {
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
// stable, on the scale of log odds, and not too short. A bound is taken as it is;
// nothing is interpolated.
func (p *preview) settleEdges(bounds []float64, enough int64, tracks *[edges]track) int32 {
	if p.events < enough {
		return 0
	}
	var open int32
	last := -1
	for _, q := range quantiles {
		i := p.nearest(q, bounds[:min(len(bounds), maxBounds)])
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
func (p *preview) nearest(quantile float64, bounds []float64) int {
	best, distance := -1, math.Inf(1)
	for i, bound := range bounds {
		share := smooth(int64(p.within[i]), p.events)
		if d := math.Abs(logit(share) - logit(quantile)); bound >= shortest && share >= leastWithin && d < distance {
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
