// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"
)

// The comparison is a mixture of bets against the null hypothesis
//
//	p_c ≤ r·p_s + d
//
// ("the canary's failure rate is at most a tenth above stable's, plus a fifth
// of the tolerance") in every window. The linear form keeps the null convex;
// a maximum such as max(r·p_s, p_s+d) would not be, and would void the proof.
const (
	slope          = 1.1 // r
	toleranceShare = 0.2 // d / tolerance

	historyWeight = 200             // requests that UsualFailureRate counts for
	baseDecay     = 0.9             // of the stable rate's memory
	baseDecayPer  = 5 * time.Second // per this much time
	maxRate       = 0.995           // alternatives from here on are not bet on
	maxMass       = 1e200           // far above any threshold, far below overflow
	minMass       = 1e-200          // far below any use, far above denormal numbers
)

// alternatives is how many differences are bet on.
const alternatives = 9

var (
	// excess are the a_j: by how much the canary might fail more often.
	excess = [alternatives]float64{.0025, .005, .01, .02, .04, .08, .16, .32, .64}
	// prior are the π_j: the share of the bet on each.
	prior = [alternatives]float64{.20, .20, .20, .13, .09, .06, .04, .04, .04}
)

// process is the state of the bets.
type process struct {
	// requests and failures of stable, exponentially forgotten: the base rate.
	requests, failures float64
	// spent is the part of the initial stake that has been put on start times.
	spent float64
	// mass[j] is the worth of what has been put on alternative j.
	mass [alternatives]float64
}

// counts are the requests n and failures k of both arms in one window. They
// are not whole numbers where counts are tempered.
type counts struct{ nc, kc, ns, ks float64 }

// evidence is u + Σ π_j S_j, with u the stake not yet spent.
func (p process) evidence() float64 {
	e := max(0, 1-p.spent)
	for j, mass := range p.mass {
		e += prior[j] * mass
	}
	return e
}

// stake moves stake from the unspent part to every alternative, as far as due
// says. It depends on the time alone, so it is known before the window's counts.
func (p process) stake(due float64) process {
	if w := due - p.spent; w > 0 {
		p.spent = due
		for j := range p.mass {
			p.mass[j] += w
		}
	}
	return p
}

// bet plays one window against the null with the given d; no single bet wins
// more than maxWin times what was put on it. An arm without requests says
// nothing about the difference.
func (p process) bet(n counts, base, d, maxWin float64) process {
	if n.nc == 0 || n.ns == 0 {
		return p
	}
	null, most := boundary{d: d}, math.Log(maxWin)
	for j := range p.mass {
		if alt, ok := null.alternative(base, excess[j]); ok {
			p.mass[j] *= math.Exp(min(null.logLikelihoodRatio(n, alt), most))
			p.mass[j] = min(p.mass[j], maxMass)
			if p.mass[j] < minMass {
				p.mass[j] = 0
			}
		}
	}
	return p
}

// baseRate is the stable failure rate to bet with: from earlier windows only,
// pulled towards the usual rate while those are few. A wrong one costs power,
// never validity.
func (p process) baseRate(usual float64) float64 {
	return (historyWeight*usual + p.failures) / (historyWeight + p.requests)
}

// remember adds a window to the base rate, elapsed after the window before.
func (p process) remember(n counts, elapsed time.Duration) process {
	keep := math.Pow(baseDecay, elapsed.Seconds()/baseDecayPer.Seconds())
	p.requests = p.requests*keep + n.ns
	p.failures = p.failures*keep + n.ks
	return p
}

// stakeDue is the part of the initial stake that is to be spent by the time
// that elapsed since the canary's first traffic. Spreading it over start times makes a
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
