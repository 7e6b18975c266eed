// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// maxProblem is the longest message of an AnalysisResult.
const maxProblem = 1024

// makeStatus is what an AnalysisResult says of a release.
func makeStatus(r *release) v1alpha1.AnalysisResultStatus {
	status := v1alpha1.AnalysisResultStatus{Revision: r.spec.Revision, Message: cut(r.spec.Problem, maxProblem)}
	for _, m := range r.metrics {
		if len(status.Metrics) == v1alpha1.MaxResultMetrics {
			break
		}
		result := v1alpha1.MetricResult{Name: m.spec.Name, DryRun: m.spec.DryRun, Measured: m.measured, Missing: m.missing, Measurements: m.measurements()}
		if n := len(m.samples); n > 0 && !m.recovered() {
			result.Message = m.samples[n-1].Message
		}
		status.Metrics = append(status.Metrics, result)
	}
	return status
}

// recovered is whether a window closed after the last missing measurement.
func (m *metric) recovered() bool {
	return len(m.windows) > 0 && m.windows[len(m.windows)-1].End.After(m.last().At)
}

// measurements are the latest, the oldest first.
func (m *metric) measurements() []v1alpha1.Measurement {
	list := make([]v1alpha1.Measurement, 0, len(m.samples)+len(m.windows))
	for _, s := range m.samples {
		list = append(list, makeMeasurement(s))
	}
	for _, w := range m.windows {
		list = append(list, v1alpha1.Measurement{Time: metav1.NewMicroTime(w.End), Canary: count(w.Canary), Stable: count(w.Stable)})
	}
	slices.SortStableFunc(list, func(a, b v1alpha1.Measurement) int { return a.Time.Compare(b.Time.Time) })
	return list[max(0, len(list)-v1alpha1.MaxMeasurements):]
}

func makeMeasurement(s Sample) v1alpha1.Measurement {
	m := v1alpha1.Measurement{Time: metav1.NewMicroTime(s.At.Truncate(time.Microsecond)), Reason: string(s.Reason)}
	if s.Reason == "" {
		m.Value = strconv.FormatFloat(s.Value, 'g', -1, 64)
	}
	return m
}

func count(a analysis.Variant) *v1alpha1.ArmCount {
	return &v1alpha1.ArmCount{Requests: a.Requests, Failures: a.Failures}
}

// shorten cuts a message to what a sample may hold.
func shorten(message string) string { return cut(message, source.MaxMessage) }

// cut shortens a text to a number of bytes, at the end of a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
