// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Resolve returns the metrics of a release: those that the Rollout writes itself, then
// those of its templates in their order. A mistake anywhere gives no metrics at all: a
// release is not judged by a part of what its user asked for.
func Resolve(a *v1alpha1.Analysis, templates []Template, r Release) ([]Metric, error) {
	if a == nil {
		return nil, nil
	}
	own := scope{field: "spec.analysis", trusted: false, release: r}
	if err := own.declare(a.Args, nil); err != nil {
		return nil, err
	}
	var metrics []Metric
	for i, m := range a.Metrics {
		resolved, err := own.metric(m.Full(), fmt.Sprintf("spec.analysis.metrics[%d]", i))
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, resolved)
	}
	for i, ref := range a.TemplateRefs {
		of, err := fromTemplate(ref, fmt.Sprintf("spec.analysis.templateRefs[%d]", i), templates, r)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, of...)
	}
	if err := distinct(metrics); err != nil {
		return nil, err
	}
	return metrics, nil
}

func fromTemplate(ref v1alpha1.TemplateReference, field string, templates []Template, r Release) ([]Metric, error) {
	kind := ref.Kind
	if kind == "" {
		kind = v1alpha1.KindAnalysisTemplate
	}
	at := slices.IndexFunc(templates, func(t Template) bool { return t.Kind == kind && t.Name == ref.Name })
	if at < 0 {
		return nil, fmt.Errorf("%s: there is no %s %s; create it or correct the name", field, kind, ref.Name)
	}
	t := templates[at]
	s := scope{field: kind + " " + t.Name + ": spec", usedAt: field, trusted: kind == v1alpha1.KindClusterAnalysisTemplate, release: r}
	if err := s.declare(t.Spec.Args, ref.Args); err != nil {
		return nil, err
	}
	metrics := make([]Metric, 0, len(t.Spec.Metrics))
	for i, m := range t.Spec.Metrics {
		resolved, err := s.metric(m, fmt.Sprintf("%s.metrics[%d]", s.field, i))
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, resolved)
	}
	return metrics, nil
}

// distinct checks what only shows once all metrics are together.
func distinct(metrics []Metric) error {
	if n := len(metrics); n > v1alpha1.MaxResultMetrics {
		return fmt.Errorf("spec.analysis: has %d metrics with those of its templates; %d are possible, remove some", n, v1alpha1.MaxResultMetrics)
	}
	fields := map[string]string{}
	for _, m := range metrics {
		if other, found := fields[m.Name]; found {
			return fmt.Errorf("%s.name: %s is the name of %s too; rename one of them", m.Field, m.Name, other)
		}
		fields[m.Name] = m.Field
	}
	return nil
}

func (s scope) metric(m v1alpha1.Metric, field string) (Metric, error) {
	resolved := Metric{
		Name: m.Name, Field: field, Provider: m.Provider, Trusted: s.trusted, Release: s.release,
		Stable: s.stable, Canary: s.canary, Secrets: s.secrets, DryRun: m.DryRun,
		ConsecutiveFailureLimit: defaultTo(m.ConsecutiveFailureLimit, defaultConsecutiveFailureLimit), MinSamples: defaultTo(m.MinSamples, defaultMinSamples),
	}
	if err := resolved.settings(m.MetricSettings); err != nil {
		return Metric{}, fmt.Errorf("%s.%w", field, err)
	}
	switch job := m.Provider.Job; {
	case job == nil || job.Repeat:
		resolved.Release.Step = 0 // only a Job that is run for each step depends on it
	case m.ConsecutiveFailureLimit == nil:
		resolved.ConsecutiveFailureLimit = 1
	}
	return resolved, nil
}

// settings reads the numbers and durations.
func (m *Metric) settings(s v1alpha1.MetricSettings) (err error) {
	if m.Min, err = limit("min", s.Min); err != nil {
		return err
	}
	if m.Max, err = limit("max", s.Max); err != nil {
		return err
	}
	if m.Provider.Type == v1alpha1.ProviderJob {
		passed := 1.0
		m.Min = &passed
	}
	m.Interval = defaultInterval
	if s.Interval != "" {
		if m.Interval, err = s.Interval.Parse(); err != nil {
			return fmt.Errorf("interval: %w", err)
		}
	}
	longest := maxInterval
	if s.Compare != nil {
		longest = maxWindow
		if m.Compare, err = comparison(s.Compare); err != nil {
			return fmt.Errorf("compare.%w", err)
		}
	}
	if m.Interval < minInterval || m.Interval > longest {
		return fmt.Errorf("interval: %s; give %s to %s", m.Interval, minInterval, longest)
	}
	return nil
}

func limit(field string, d v1alpha1.Decimal) (*float64, error) {
	if d == "" {
		return nil, nil
	}
	v, err := d.Float()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &v, nil
}

func comparison(c *v1alpha1.Comparison) (*Comparison, error) {
	resolved := &Comparison{More: c.Better == v1alpha1.BetterMore, Weight: defaultTo(c.Weight, defaultWeight)}
	if c.Tolerance == "" {
		return resolved, nil
	}
	tolerance, err := c.Tolerance.Fraction(false, 50)
	if err != nil {
		return nil, fmt.Errorf("tolerance: %w", err)
	}
	resolved.Tolerance = &tolerance
	return resolved, nil
}

func defaultTo(v *int32, otherwise int32) int32 {
	if v == nil {
		return otherwise
	}
	return *v
}
