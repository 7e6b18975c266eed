// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// merged is what all metrics say together.
type merged struct {
	// evidence is the weighted mean Σ w_m E_m. Evidence is never multiplied across
	// metrics: failures and slow answers often are the same requests, and a mean is
	// valid however metrics depend on each other.
	evidence float64
	// deciding is the slot of the metric that contributes most.
	deciding int
	// assurance is the least over all metrics: early promotion needs every one.
	assurance float64
}

// weigh is the weight of the metric in a slot; 0 when it is not compared.
func (c *Config) weigh(s *State, slot int) float64 {
	switch {
	case slot == failuresSlot:
		return 1
	case slot == latencySlot && s.timed:
		return c.LatencyWeight
	case slot >= userSlots && slot-userSlots < len(c.Comparisons):
		return c.Comparisons[slot-userSlots].Weight
	}
	return 0
}

// merge puts the metrics together. Those whose samples covered other stretches
// of time than the windows are not added but compared with the sum: looking at
// one metric in the middle of a sample of another could favour the moments
// before it turns out well, and only "one of them alone suffices" is safe from that.
func (c *Config) merge(s *State) merged {
	var weights, together, apart, most float64
	m := merged{assurance: math.Inf(1)}
	for i := range s.metrics {
		w := c.weigh(s, i)
		if w == 0 {
			continue
		}
		weights += w
		metric := &s.metrics[i]
		e := w * metric.evidence(s.spent)
		if metric.apart {
			apart = max(apart, e)
		} else {
			together += e
		}
		if e > most {
			most, m.deciding = e, i
		}
		m.assurance = min(m.assurance, metric.assurance(s.step.spent))
	}
	m.evidence = max(together, apart) / weights
	return m
}

// name is what users call the metric in a slot.
func (c *Config) name(slot int) string {
	switch {
	case slot == latencySlot:
		return MetricLatency
	case slot >= userSlots && slot-userSlots < len(c.Comparisons):
		return c.Comparisons[slot-userSlots].Name
	}
	return MetricFailures
}

// alignComparisons gives each metric of the user the bets that belong to it:
// metrics may be added, removed or reordered during a rollout. A new one begins
// with the stake that the others began with.
func (c *Config) alignComparisons(s *State) {
	var aligned [MaxComparisons]metric
	moved := false
	for i := range aligned {
		var key uint64
		if i < len(c.Comparisons) {
			key = nameKey(c.Comparisons[i].Name)
		}
		if s.metrics[userSlots+i].key != key {
			moved = true
		}
		aligned[i].key = key
	}
	if !moved {
		return
	}
	for i := range aligned {
		for _, old := range s.metrics[userSlots:] {
			if old.key == aligned[i].key {
				aligned[i] = old
			}
		}
	}
	copy(s.metrics[userSlots:], aligned[:])
}

// nameKey distinguishes names; it is never 0.
func nameKey(name string) uint64 {
	h := newHash()
	h.addString(name)
	return max(uint64(h), 1)
}
