// SPDX-License-Identifier: Apache-2.0

package judge

import (
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
type observation struct{ canary, stable *analysis.Arm }

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
func beyond(a *analysis.Arm, edge float64) (n, k float64, ok bool) {
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
func (m *metric) learn(stable *analysis.Arm, enough int64, spent, spentFavour float64) {
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

func kindOf(stable *analysis.Arm) kind {
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
