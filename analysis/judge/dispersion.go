// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Dispersion is what stable's history says about how much more its failures
// vary than those of independent requests would. It is a value that later
// windows add to; the zero Dispersion knows nothing. It belongs to a workload,
// not to one release: keep State.Dispersion of one release and give it as
// Config.Dispersion to the next.
type Dispersion struct {
	// Span is the stretch of time that was measured, at most an hour: what is
	// older counts less and less.
	Span time.Duration
	// Total compares each window with the one before, for all proxies together.
	Total Scale
	// PerProxy compares the proxies of one window with each other.
	PerProxy Scale
	// Latency compares the share of slow requests in each window with the one
	// before, for all proxies together.
	Latency Scale
}

// Scale is the dispersion of counts of one size.
type Scale struct {
	// Squares is the sum of squared differences between counts, standardised for
	// their number of requests, and Expected is what it would be on average if
	// requests were independent. Slow drift is in neither.
	Squares, Expected float64
	// Requests is the sum of the requests, and Counts the number of counts.
	Requests, Counts float64
}

const (
	// longHistory is where history begins to be forgotten.
	longHistory = time.Hour
	// caution inflates the excess of a fit, which is as uncertain as its history is short.
	caution = 1.25
	// maxCorrelatedFailures is the largest size of a cluster that can be stated or fitted.
	maxCorrelatedFailures = 1e6
	// doubtful is the number of counts that are taken to be independent before any is seen.
	doubtful = 4
	// apartBy is by how much counts of two scales must differ in size for a line
	// through both to mean something.
	apartBy = 1.5
)

// tempering is how many requests count as one: φ(n) = max(floor, c + ρ(n-1)). With
// counts divided by φ, bets are valid exactly when requests come in independent
// groups of at most φ, whatever happens inside a group (by Hölder's inequality).
type tempering struct{ floor, c, rho float64 }

// independent leaves counts as they are.
var independent = tempering{floor: 1, c: 1}

func (t tempering) cluster(n float64) float64 {
	return min(max(t.floor, t.c+t.rho*(n-1)), maxCorrelatedFailures)
}

// temperings are those of both versions.
type temperings struct{ stable, canary tempering }

// against tempers counts for a bet against the canary, by what stable does. That
// the canary's own failures come together must not hide how many they are.
func (t temperings) against(n counts) counts {
	return n.divided(t.stable.cluster(n.nc), t.stable.cluster(n.ns))
}

// favour tempers counts for a bet in favour of the canary, whose failures may come
// together as stable's never did: then a good moment of it says little.
func (t temperings) favour(n counts) counts {
	return n.divided(max(t.stable.cluster(n.nc), t.canary.cluster(n.nc)), t.stable.cluster(n.ns))
}

func (n counts) divided(canary, stable float64) counts {
	return counts{nc: n.nc / canary, kc: n.kc / canary, ns: n.ns / stable, ks: n.ks / stable}
}

func (c *Config) temperings(s *State, slot int) temperings {
	t := temperings{stable: c.tempering(&s.dispersion, slot)}
	t.canary = t.stable
	if slot == failuresSlot {
		t.canary = c.tempering(&s.canary, slot)
	}
	return t
}

// tempering of the metric in a slot is what the user stated, or else the fit on
// what was measured so far. Of users' metrics there is no history.
//
// There is no least history: an estimate from few windows is rough, but it only
// ever makes bets smaller, and without it a first release of a workload whose
// failures come in clusters would most likely be rolled back.
func (c *Config) tempering(d *Dispersion, slot int) tempering {
	switch {
	case c.MaxCorrelatedFailures > 0:
		return tempering{floor: c.MaxCorrelatedFailures}
	case slot == failuresSlot:
		return fit(d.Total, d.PerProxy)
	case slot == latencySlot:
		return fit(d.Latency, Scale{})
	}
	return independent
}

// fit draws a line through the dispersion of both scales: what a proxy sees
// (one connection that breaks) is in c, what all of them see at once (a
// database that hesitates) grows with n. With one scale only, neither is known:
// the measured dispersion is then assumed for smaller counts, and one that
// grows with n for larger ones.
func fit(all, perProxy Scale) tempering {
	many, few := all.size(), perProxy.size()
	if perProxy.Expected == 0 || many <= apartBy*few {
		largest := 1 + caution*(max(all.ratio(), perProxy.ratio())-1)
		return tempering{floor: largest, c: 1, rho: (largest - 1) / max(many-1, 1)}
	}
	rho := max(0, (all.ratio()-perProxy.ratio())/(many-few))
	c := max(1, perProxy.ratio()-rho*(few-1))
	return tempering{floor: 1, c: 1 + caution*(c-1), rho: caution * rho}
}

// ratio is by how much the counts vary more than independent ones; at least 1.
// As much as a few counts is taken to be independent, so that one unlucky pair at
// the beginning does not say too much, and what has nearly been forgotten says no more than
// can be stated.
func (s Scale) ratio() float64 {
	if s.Expected == 0 {
		return 1
	}
	doubt := doubtful * s.Expected / s.Counts
	return min(max(1, (s.Squares+doubt)/(s.Expected+doubt)), maxCorrelatedFailures)
}

// size is the mean number of requests of a count.
func (s Scale) size() float64 {
	if s.Counts == 0 {
		return 0
	}
	return s.Requests / s.Counts
}

// add counts one window of stable; before is the window that ended when it
// began, zero if there was none.
func (d *Dispersion) add(before counter, stable *analysis.Variant, lasted time.Duration) {
	if stable.Requests == 0 {
		return
	}
	if before.requests > 0 {
		d.Total = d.Total.pair(before, counter{requests: stable.Requests, failures: stable.Failures}, 1)
		d.Span += lasted
	}
	if s := stable.Spread; s.Proxies > 1 {
		d.PerProxy = d.PerProxy.add(s.Squares, float64(stable.Requests), float64(stable.Failures), float64(s.Proxies), 1)
	}
	d.forget()
}

// pair compares two counts of successive windows.
func (s Scale) pair(a, b counter, unit float64) Scale {
	if a.requests == 0 || b.requests == 0 {
		return s
	}
	m, k := float64(a.requests), float64(a.failures)
	n, l := float64(b.requests), float64(b.failures)
	return s.add(k*k/m+l*l/n, m+n, k+l, 2, unit)
}

// add counts a comparison of m counts that ought to share one rate, n requests
// and k failures together: Pearson's Σ k_i²/n_i - k²/n has the expectation
// (m-1)·p(1-p) when they do and requests are independent, however different the
// n_i are. Both are divided by a unit, so that different rates may be added.
func (s Scale) add(squares, n, k, m, unit float64) Scale {
	if n < 2 {
		return s
	}
	variance := k / n * (n - k) / (n - 1) // without the bias of k/n·(1-k/n)
	return Scale{
		Squares:  rough(s.Squares + max(0, squares-k*k/n)/unit),
		Expected: rough(s.Expected + (m-1)*variance/unit),
		Requests: rough(s.Requests + n),
		Counts:   rough(s.Counts + m),
	}
}

// stored is d with the precision that a stored state has.
func (d Dispersion) stored() Dispersion {
	d.Total, d.PerProxy, d.Latency = d.Total.scale(1), d.PerProxy.scale(1), d.Latency.scale(1)
	return d
}

// forget makes what is older than an hour count less.
func (d *Dispersion) forget() {
	if d.Span <= longHistory {
		return
	}
	keep := longHistory.Seconds() / d.Span.Seconds()
	d.Span = longHistory
	d.Total, d.PerProxy, d.Latency = d.Total.scale(keep), d.PerProxy.scale(keep), d.Latency.scale(keep)
}

func (s Scale) scale(keep float64) Scale {
	return Scale{
		Squares: rough(s.Squares * keep), Expected: rough(s.Expected * keep),
		Requests: rough(s.Requests * keep), Counts: rough(s.Counts * keep),
	}
}

func validCorrelation(n float64) bool { return n == 0 || n >= 1 && n <= maxCorrelatedFailures }

func (d Dispersion) plausible() bool {
	return d.Span >= 0 && d.Total.plausible() && d.PerProxy.plausible() && d.Latency.plausible()
}

func (s Scale) plausible() bool {
	const most = 1e100 // sums and quotients of such numbers are numbers
	ok := s.Expected == 0 || s.Counts >= 1e-9
	for _, x := range [...]float64{s.Squares, s.Expected, s.Requests, s.Counts} {
		ok = ok && x >= 0 && x <= most
	}
	return ok
}
