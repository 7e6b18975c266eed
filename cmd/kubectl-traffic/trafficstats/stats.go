// SPDX-License-Identifier: Apache-2.0

package trafficstats

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Figures are those of one item.
type Figures struct {
	// Success and Failure are numbers of requests; nil when they are not known.
	Success, Failure *float64
	// Window is the time in which they were counted.
	Window time.Duration
	// P50, P90 and P99 are latencies; nil when they are not known.
	P50, P90, P99 *time.Duration
}

// Read reads the figures of an item.
func Read(m *metricsv1.TrafficMetrics) Figures {
	f := Figures{Window: m.Window.Duration}
	for _, metric := range m.Metrics {
		switch metric.Name {
		case metricsv1.MetricSuccessCount:
			f.Success = count(metric.Value)
		case metricsv1.MetricFailureCount:
			f.Failure = count(metric.Value)
		case metricsv1.MetricP50Latency:
			f.P50 = latency(metric.Value)
		case metricsv1.MetricP90Latency:
			f.P90 = latency(metric.Value)
		case metricsv1.MetricP99Latency:
			f.P99 = latency(metric.Value)
		}
	}
	return f
}

func count(q resource.Quantity) *float64 {
	n := q.AsApproximateFloat64()
	return &n
}

// latency of a quantity in seconds.
func latency(q resource.Quantity) *time.Duration {
	seconds := q.AsApproximateFloat64()
	if math.Abs(seconds) > math.MaxInt64/float64(time.Second) {
		return nil // no latency: no request takes 292 years
	}
	d := time.Duration(math.Round(seconds * float64(time.Second)))
	return &d
}

// requests are all of them, as far as both numbers are known.
func (f Figures) requests() (float64, bool) {
	if f.Success == nil || f.Failure == nil {
		return 0, false
	}
	return *f.Success + *f.Failure, true
}

// SuccessRate is the share of the requests that succeeded, from 0 to 1. It is not known
// without requests.
func (f Figures) SuccessRate() (float64, bool) {
	all, known := f.requests()
	if !known || all <= 0 {
		return 0, false
	}
	return *f.Success / all, true
}

// RPS are requests a second.
func (f Figures) RPS() (float64, bool) {
	all, known := f.requests()
	if !known || f.Window <= 0 {
		return 0, false
	}
	return all / f.Window.Seconds(), true
}

// Unknown is shown where nothing was measured.
const Unknown = "-"

// Cells are the figures for users: SUCCESS, RPS and LATENCY_P99.
func (f Figures) Cells() []string {
	success, rps := Unknown, Unknown
	if rate, known := f.SuccessRate(); known {
		success = fmt.Sprintf("%.2f%%", percent(rate))
	}
	if r, known := f.RPS(); known {
		rps = fmt.Sprintf("%.1frps", r)
	}
	return []string{success, rps, Latency(f.P99)}
}

// percent rounds down to hundredths, so that 100.00% means that nothing failed.
func percent(rate float64) float64 { return math.Floor(rate*1e4+1e-6) / 100 }

// MoreCells are LATENCY_P50, LATENCY_P90, SUCCEEDED, FAILED and WINDOW.
func (f Figures) MoreCells() []string {
	return []string{Latency(f.P50), Latency(f.P90), number(f.Success), number(f.Failure), f.Window.String()}
}

func number(n *float64) string {
	if n == nil {
		return Unknown
	}
	return fmt.Sprintf("%.0f", *n)
}

// Latency is a latency for users: in milliseconds, below one in microseconds, and from
// ten seconds in seconds.
func Latency(d *time.Duration) string {
	switch {
	case d == nil:
		return Unknown
	case *d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case *d >= time.Millisecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%dµs", d.Round(time.Microsecond).Microseconds())
}
