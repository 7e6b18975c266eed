// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Metrics are the metrics of Rollouts. Only the weight, the step and the evidence
// of releases in progress name a Rollout, and only of maxReleases of them at a time.
type Metrics struct {
	releases, rollbacks, verdicts, interventions *prometheus.CounterVec
	releaseDuration                              *prometheus.HistogramVec
	stepDuration                                 prometheus.Histogram
	mismatches                                   prometheus.Counter
	rollouts, weight, step, omitted              *prometheus.Desc
	evidence, promotion                          *prometheus.Desc

	mu   sync.Mutex
	seen map[types.NamespacedName]figures
}

// New makes the metrics of releases, without any figures yet.
func New() *Metrics {
	return &Metrics{
		releases:      counters("serin_releases_total", "Releases that ended, by outcome.", "outcome", outcomes),
		rollbacks:     counters("serin_rollbacks_total", "Rollbacks that were decided, by cause.", "cause", causes),
		verdicts:      counters("serin_verdicts_total", "Changes of the verdict of the analysis, by the new verdict.", "verdict", verdicts),
		interventions: counters("serin_interventions_total", "User actions that were carried out, by action.", "action", interventions),
		releaseDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "serin_release_duration_seconds",
			Help: "Time from the start of a release until its outcome was settled, by outcome.",
			// From 30 seconds to a week.
			Buckets: []float64{30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 345600, 604800},
		}, []string{"outcome"}),
		stepDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "serin_step_duration_seconds",
			Help:    "Time from the end of the step before until the end of a step that was passed.",
			Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400},
		}),
		mismatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "serin_share_mismatches_total",
			Help: "Times that a version's share of the requests did not match its weight.",
		}),
		rollouts:  prometheus.NewDesc("serin_rollouts", "Rollouts by state, which is the reason of the condition Ready.", []string{"state"}, nil),
		weight:    prometheus.NewDesc("serin_rollout_weight", "Live weight of the canary in percent, of a release in progress.", []string{"namespace", "name"}, nil),
		step:      prometheus.NewDesc("serin_rollout_step", "Step of a release in progress, counted from 1; one past the last while the canary is being promoted.", []string{"namespace", "name"}, nil),
		evidence:  prometheus.NewDesc("serin_rollout_evidence_ratio", "Evidence against the canary of a release in progress, as a share of what rolls it back.", []string{"namespace", "name"}, nil),
		promotion: prometheus.NewDesc("serin_rollout_promotion_ratio", "Evidence for promoting the canary of a release in progress ahead of time, as a share of what promotes it.", []string{"namespace", "name"}, nil),
		omitted:   prometheus.NewDesc("serin_rollouts_omitted", "Releases in progress without metrics of their own, since 500 older ones have them.", nil, nil),
		seen:      map[types.NamespacedName]figures{},
	}
}

// counters have all their series from the start: a rate needs the zero before the
// first.
func counters(name, help, label string, values []string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range append(slices.Clone(values), other) {
		c.WithLabelValues(v)
	}
	return c
}

// Count adds what happened between the status that was read and the one that was written.
func (m *Metrics) Count(before, after *v1alpha1.RolloutStatus) { m.count(compare(before, after)) }

func (m *Metrics) count(t transition) {
	for i := range t.ended {
		e := &t.ended[i]
		outcome := oneOf(outcomes, e.Outcome)
		m.releases.WithLabelValues(outcome).Inc()
		if e.StartedAt != nil {
			m.releaseDuration.WithLabelValues(outcome).Observe(max(e.EndedAt.Sub(e.StartedAt.Time).Seconds(), 0))
		}
	}
	if t.cause != "" {
		m.rollbacks.WithLabelValues(oneOf(causes, t.cause)).Inc()
	}
	if t.step >= 0 {
		m.stepDuration.Observe(t.step.Seconds())
	}
	if t.verdict != "" {
		m.verdicts.WithLabelValues(oneOf(verdicts, t.verdict)).Inc()
	}
	if t.mismatch {
		m.mismatches.Inc()
	}
	for i := range t.interventions {
		m.interventions.WithLabelValues(oneOf(interventions, string(t.interventions[i].Action))).Inc()
	}
}

// collectors are the metrics that count.
func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.releases, m.rollbacks, m.verdicts, m.interventions, m.releaseDuration, m.stepDuration, m.mismatches}
}

// Describe makes Metrics a collector: register it once.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{m.rollouts, m.weight, m.step, m.evidence, m.promotion, m.omitted} {
		ch <- d
	}
}

// Collect makes Metrics a collector. A replica that is
// not the leader has seen no Rollout and reports none.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
	for _, g := range m.gauges() {
		ch <- g
	}
}
