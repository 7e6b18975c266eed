// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"
)

// A metric is compared by one or several tracks, each a running bet on the
// share of some kind of bad event: failed requests, or requests slower than
// a bound. Bets against "the canary is no worse" (rollback) and against "it is
// worse by the tolerance or more" (promotion) run in parallel.
const (
	historyWeight = 200             // events that the usual share of bad ones counts for
	baseDecay     = 0.9             // of the memory of shares
	baseDecayPer  = 5 * time.Second // per this much time
	maxRate       = 0.995           // alternatives from here on are not bet on
	maxMass       = 1e200           // far above any threshold, far below overflow
	minMass       = 1e-15           // far below what is staked anew each minute: no longer bet on
	minUsual      = 0x1p-40         // of the usual share: never 0
)

const (
	// alternatives is how many differences are bet on for a rollback.
	alternatives = 9
	// hopes is how many are bet on for a promotion.
	hopes = 3
)

// mostExcess is the largest difference that is bet on.
const mostExcess = .64

var (
	// prior are the π_j: the share of the bet on each.
	prior = [alternatives]float64{.20, .20, .20, .13, .09, .06, .04, .04, .04}
	// hope is where the canary might be between stable (0) and the edge of the
	// null of the promotion (1). All are bet on alike.
	hope = [hopes]float64{0, .25, .5}
)

// excesses are the a_j: by how much the canary might be above the edge of the null.
// They grow by one factor from half of the tolerance: who tolerates little looks
// for little. For the default tolerance they are 0.25, 0.5, 1, 2, … 64 pp.
func excesses(tolerance float64) [alternatives]float64 {
	least := tolerance / 2
	factor := math.Pow(mostExcess/least, 1./(alternatives-1))
	var a [alternatives]float64
	for j := range a {
		a[j] = least
		least *= factor
	}
	return a
}

// track is the state of the bets on one kind of bad event.
type track struct {
	// edge is the bound beyond which an event is bad, for a histogram.
	edge float64
	// usual is the share of bad events to begin with.
	usual float64
	// stable and canary are what each version did lately.
	stable, canary memory
	// against[j] is the worth of what has been put on the canary being worse by
	// excesses[j], and favour[j] of what has been put on it being as good as hope[j].
	against [alternatives]float64
	favour  [hopes]float64
}

// memory counts events, exponentially forgotten.
type memory struct{ events, bad float64 }

// nulls are the edges that a window is bet against.
type nulls struct {
	rollback, promotion boundary
	excess              [alternatives]float64
	// maxWin is the logarithm of the most that a single bet on a rollback wins, and
	// maxFavour that of one on a promotion; -Inf where there is no such bet.
	maxWin, maxFavour float64
}

// betAgainst plays one window for a rollback. An variant without events says nothing
// about the difference.
func (t *track) betAgainst(n counts, null *nulls) {
	if math.IsInf(null.maxWin, -1) || !(n.nc > 0 && n.ns > 0) {
		return
	}
	base := t.baseRate()
	for j, mass := range t.against {
		alt := rates{s: base, c: null.rollback.at(base) + null.excess[j]}
		if mass > 0 && alt.c < maxRate {
			t.against[j] = won(mass, min(null.rollback.logLikelihoodRatio(n, alt), null.maxWin))
		}
	}
}

// betFor is betAgainst for a promotion.
func (t *track) betFor(n counts, null *nulls) {
	base := t.baseRate()
	edge := null.promotion.at(base)
	if math.IsInf(null.maxFavour, -1) || edge >= maxRate || !(n.nc > 0 && n.ns > 0) {
		return
	}
	for j, mass := range t.favour {
		if mass > 0 {
			alt := rates{s: base, c: base + hope[j]*(edge-base)}
			t.favour[j] = rough(won(mass, min(null.promotion.logLikelihoodRatio(n, alt), null.maxFavour)))
		}
	}
}

// won is what a stake is worth after a bet.
func won(mass, logWin float64) float64 {
	mass = min(mass*math.Exp(logWin), maxMass)
	if mass < minMass {
		return 0
	}
	return storable(mass)
}

// storable drops the last 24 bits of a number's 52, so that a stored state is
// small and exactly the one that was stored. It rounds towards zero: a stake
// may lose by that, and never gains.
func storable(x float64) float64 {
	const dropped = 1<<24 - 1
	return math.Float64frombits(math.Float64bits(x) &^ dropped)
}

// rough is storable for what need not be as precise, or begins anew with each
// step: it drops 32 bits.
func rough(x float64) float64 {
	const dropped = 1<<32 - 1
	return math.Float64frombits(math.Float64bits(x) &^ dropped)
}

// evidence is u + Σ π_j S_j, with u the stake not spent yet.
func (t *track) evidence(spent float64) float64 {
	e := max(0, 1-spent)
	for j, mass := range t.against {
		e += prior[j] * mass
	}
	return e
}

// assurance is the evidence that the canary is not worse by the tolerance.
func (t *track) assurance(spent float64) float64 {
	f := max(0, 1-spent)
	for _, mass := range t.favour {
		f += mass / hopes
	}
	return f
}

// stake puts more on every bet.
func (t *track) stake(against, favour float64) {
	if against > 0 {
		for j := range t.against {
			t.against[j] = storable(t.against[j] + against)
		}
	}
	if favour > 0 {
		for j := range t.favour {
			t.favour[j] = rough(t.favour[j] + favour)
		}
	}
}

// baseRate is stable's share of bad events to bet with: from earlier windows
// only, pulled towards the usual share while those are few. A wrong one costs
// power, never validity.
func (t *track) baseRate() float64 {
	return (historyWeight*t.usual + t.stable.bad) / (historyWeight + t.stable.events)
}

// remember adds a window to what is known of both versions; keep is what is
// left of what was known before.
func (t *track) remember(n counts, keep float64) {
	t.stable.add(n.ns, n.ks, keep)
	t.canary.add(n.nc, n.kc, keep)
}

func (m *memory) add(events, bad, keep float64) {
	m.events, m.bad = rough(m.events*keep+events), rough(m.bad*keep+bad)
}

// share is the share of bad events lately.
func (m memory) share() float64 {
	if m.events == 0 {
		return 0
	}
	return m.bad / m.events
}

// decay is what is left of a memory after so much time.
func decay(elapsed time.Duration) float64 {
	return math.Pow(baseDecay, elapsed.Seconds()/baseDecayPer.Seconds())
}

// stakeDue is the part of the initial stake that is to be spent by the time
// that elapsed since betting began. Spreading it over start times makes a
// defect that begins late as visible as an early one, and a long good history
// no debt.
//
//	at           without start-up   with
//	0            .5                 .25
//	its end      –                  .4
//	each minute  .05                .035
//
// The last two minutes' worth is spread over all later minutes as 1/m(m+1), so
// that there is always some left: a defect after m such minutes costs only
// 2·ln(m) of evidence more, where a stake that is used up would leave nothing.
func stakeDue(elapsed time.Duration, s Startup) float64 {
	first, atEnd, rate := 0.5, 0.0, 0.05
	if s.For > 0 {
		first, atEnd, rate = 0.25, 0.4, 0.035
	}
	due := first
	if elapsed >= s.For {
		due += atEnd
	}
	const regular = 8 // minutes at the full rate
	minutes := math.Floor(elapsed.Minutes())
	due += rate * min(minutes, regular)
	if late := minutes - regular; late > 0 {
		due += 2 * rate * (1 - 1/(late+1))
	}
	return due
}
