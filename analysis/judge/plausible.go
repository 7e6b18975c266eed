// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
)

// plausible reports whether Next could have made the state. What is stored can
// be edited; a state that could not have come about must not poison what follows.
func (s *State) plausible() bool {
	ok := all(
		s.first >= 0, s.last >= s.first, s.weight >= 0, s.weight <= 100,
		stakeable(s.spent), finite(s.merged), s.previous.plausible(), s.dispersion.plausible(),
		s.previousCanary.plausible(), s.canary.plausible(),
		s.release.plausible(), finite(s.informative.nc), finite(s.informative.ns), s.step.plausible(),
	)
	for i := range s.metrics {
		ok = ok && s.metrics[i].plausible()
	}
	for i := range s.slow {
		ok = ok && s.slow[i].plausible()
	}
	for i := range s.limits {
		ok = ok && s.limits[i].plausible()
	}
	return ok
}

func all(conditions ...bool) bool { return !slices.Contains(conditions, false) }

func (s *step) plausible() bool {
	return s.canary.plausible() && s.stable.plausible() && s.warm.plausible(s) &&
		s.since >= 0 && s.measured >= 0 && stakeable(s.spent)
}

func (w *warm) plausible(all *step) bool {
	return w.windows >= 0 && w.windows <= all.windows && w.canary.plausible() && w.stable.plausible() &&
		w.canary.requests <= all.canary.requests && w.stable.requests <= all.stable.requests
}

func (m *metric) plausible() bool {
	if m.kind > histogram || m.open < 0 || m.open > edges || m.end < 0 || m.kind == unknown && m.open > 0 {
		return false
	}
	ok := m.before.plausible()
	for i := range m.tracks[:m.open] {
		ok = ok && m.tracks[i].plausible()
	}
	return ok
}

func (p *preview) plausible() bool {
	ok := p.bad >= 0 && p.bad <= p.events && p.events < thorough
	for _, n := range p.within {
		ok = ok && int64(n) <= p.events
	}
	return ok
}

func (t *track) plausible() bool {
	ok := !math.IsNaN(t.edge) && !math.IsInf(t.edge, 0) && t.usual > 0 && t.usual < 1 &&
		t.stable.plausible() && t.canary.plausible()
	for _, mass := range t.against {
		ok = ok && finite(mass) && mass <= maxMass+1
	}
	for _, mass := range t.favour {
		ok = ok && finite(mass) && mass <= maxMass+1
	}
	return ok
}

func (m memory) plausible() bool { return finite(m.events) && finite(m.bad) && m.bad <= m.events }

func (t counter) plausible() bool { return t.failures >= 0 && t.failures <= t.requests }

func (l *limitState) plausible() bool {
	s := l.share
	return l.phase <= missing && l.missed >= 0 && l.missed <= maxConsecutiveFailureLimit && l.at >= 0 &&
		s.Within >= 0 && s.Beyond >= 0 && s.Within <= s.Total && s.Beyond <= s.Total-s.Within
}

// stakeable reports whether x is a part of the stake.
func stakeable(x float64) bool { return x >= 0 && x <= 1+1e-9 }

// finite reports whether x is a number that is not negative.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
