// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
)

// Quantity is what to measure.
type Quantity string

// The quantities.
const (
	// SuccessRate is the fraction of the requests that did not fail.
	SuccessRate Quantity = "SuccessRate"
	// P50 and the others are quantiles of the latency in seconds.
	P50 Quantity = "P50"
	P90 Quantity = "P90"
	P99 Quantity = "P99"
)

// quantiles are the fractions of the requests in percent.
var quantiles = map[Quantity]int64{P50: 50, P90: 90, P99: 99}

// Windows returns the windows that ended after a time, oldest first.
type Windows func(after time.Time) ([]analysis.Window, analysis.Health)

// Measurer measures one quantity of the canary.
type Measurer struct {
	windows  Windows
	quantity Quantity
	// after is the end of the last window that was measured.
	after time.Time
}

// New makes a Measurer. What was measured before the given time does not count.
func New(windows Windows, q Quantity, after time.Time) (*Measurer, error) {
	if _, timed := quantiles[q]; !timed && q != SuccessRate {
		return nil, fmt.Errorf("quantity: %q; give %s, %s, %s or %s", q, SuccessRate, P50, P90, P99)
	}
	return &Measurer{windows: windows, quantity: q, after: after}, nil
}

// Measure sums the windows up that closed since the last measurement.
func (m *Measurer) Measure(context.Context, time.Time) (source.Sample, error) {
	windows, health := m.windows(m.after)
	if len(windows) == 0 {
		message := "no traffic was measured since the last measurement"
		if health.Reason != "" {
			message += ": " + string(health.Reason)
		}
		return source.Sample{}, &source.MissingError{Reason: source.NoData, Message: message}
	}
	m.after = windows[len(windows)-1].End
	var value float64
	var err error
	if m.quantity == SuccessRate {
		value, err = successRate(windows)
	} else {
		value, err = quantile(windows, quantiles[m.quantity])
	}
	if err != nil {
		return source.Sample{}, err
	}
	return source.Finite(m.after, value)
}

func successRate(windows []analysis.Window) (float64, error) {
	var requests, failures int64
	for _, w := range windows {
		requests += w.Canary.Requests
		failures += w.Canary.Failures
	}
	if requests == 0 {
		return 0, silent()
	}
	return 1 - float64(failures)/float64(requests), nil
}

func silent() error {
	return &source.MissingError{Reason: source.NoData, Message: "the canary answered no request since the last measurement"}
}

// quantile is the lowest bound of the histogram within which that many percent of the
// requests were answered.
func quantile(windows []analysis.Window, percent int64) (float64, error) {
	var le []float64
	var counts []int64
	var total int64
	for _, w := range windows {
		h := w.Canary.Latency
		switch {
		case w.Canary.Requests == 0:
			continue
		case h == nil || le != nil && !slices.Equal(le, h.LE):
			return 0, &source.MissingError{Reason: source.Partial, Message: "some windows have no latency, or other bounds of its histogram"}
		case le == nil:
			le, counts = h.LE, make([]int64, len(h.LE))
		}
		for i := range le {
			counts[i] += h.Counts[i]
		}
		total += h.ShareWithin(0, w.Canary.Requests).Total
	}
	if total == 0 {
		return 0, silent()
	}
	sum := analysis.Histogram{LE: le, Counts: counts}
	if bound, found := sum.Bound(percent, total); found {
		return bound, nil
	}
	return 0, &source.MissingError{Reason: source.NotANumber, Message: "the quantile is beyond the last bound of the latency histogram"}
}
