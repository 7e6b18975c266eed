// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// maxReleases is how many releases in progress have series of their own.
const maxReleases = 500

// figures are what is known of one Rollout.
type figures struct {
	state string
	// startedAt is when the release in progress began; zero when there is none.
	startedAt time.Time
	// weight that is live in percent, -1 when it is not known.
	weight int32
	// step counted from 1; one past the last while the version is being promoted.
	step int32
	// evidence against the canary, and for its promotion, as a share of what is needed;
	// negative when there is none.
	evidence, promotion float64
}

// Show has the gauges show a status.
func (m *Metrics) Show(key types.NamespacedName, s *v1alpha1.RolloutStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[key] = figuresOf(s)
}

// Forget removes a Rollout that is gone from the gauges.
func (m *Metrics) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, key)
}

func figuresOf(s *v1alpha1.RolloutStatus) figures {
	f := figures{state: other, weight: -1, evidence: -1, promotion: -1}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); c != nil {
		f.state = oneOf(states, c.Reason)
	}
	if s.Step == nil || s.Canary == nil || s.Canary.StartedAt == nil {
		return f
	}
	f.startedAt, f.step = s.Canary.StartedAt.Time, s.Step.Index+1
	if s.Weight != nil && s.Weight.Observed != nil {
		f.weight = *s.Weight.Observed
	}
	if a := s.Analysis; a != nil {
		f.evidence, f.promotion = ratio(a.Evidence, a.Threshold), ratio(a.PromotionEvidence, a.PromotionThreshold)
	}
	return f
}

// ratio of two figures of a status; -1 where there are none.
func ratio(part, whole string) float64 {
	p, err := strconv.ParseFloat(part, 64)
	w, errWhole := strconv.ParseFloat(whole, 64)
	if err != nil || errWhole != nil || !(w > 0) || !(p >= 0) {
		return -1
	}
	return p / w
}

// shownRelease is a release in progress.
type shownRelease struct {
	types.NamespacedName
	figures
}

// releasesOf are the oldest releases in progress, at most limit of them, and how
// many are left out. One that has series keeps them until it ends.
func releasesOf(seen map[types.NamespacedName]figures, limit int) (shown []shownRelease, leftOut int) {
	for key, f := range seen {
		if !f.startedAt.IsZero() {
			shown = append(shown, shownRelease{key, f})
		}
	}
	slices.SortFunc(shown, func(a, b shownRelease) int {
		return cmp.Or(a.startedAt.Compare(b.startedAt), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	n := min(len(shown), limit)
	return shown[:n], len(shown) - n
}

// gauges are what the Rollouts are like now.
func (m *Metrics) gauges() (out []prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := map[string]int{}
	for _, f := range m.seen {
		count[f.state]++
	}
	for _, s := range append(slices.Clone(states), other) {
		out = append(out, gauge(m.rollouts, count[s], s))
	}
	shown, leftOut := releasesOf(m.seen, maxReleases)
	for _, f := range shown {
		out = append(out, gauge(m.step, f.step, f.Namespace, f.Name))
		if f.weight >= 0 {
			out = append(out, gauge(m.weight, f.weight, f.Namespace, f.Name))
		}
		if f.evidence >= 0 {
			out = append(out, gauge(m.evidence, f.evidence, f.Namespace, f.Name))
		}
		if f.promotion >= 0 {
			out = append(out, gauge(m.promotion, f.promotion, f.Namespace, f.Name))
		}
	}
	return append(out, gauge(m.omitted, leftOut))
}

func gauge[N int | int32 | float64](d *prometheus.Desc, n N, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}
