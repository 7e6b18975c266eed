// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// Keep is how many samples or windows of each metric are kept.
const Keep = 120

// Series is what one metric gave. Its slices are not changed any more.
type Series struct {
	Metric resolve.Metric
	// Samples are the numbers, and the reasons where there are none, oldest first. Of a
	// metric that is compared there are only reasons.
	Samples []Sample
	// Windows are those of a metric that is compared, oldest first. They never overlap.
	Windows []Window
}

// Window is what a metric counted for both versions in a stretch of time.
type Window struct {
	analysis.Window
	// Known is when it was.
	Known time.Time
}

// Sample is one number, or the reason why there is none.
type Sample struct {
	// At is the time that the number is about.
	At time.Time
	// Known is when there was an answer, or none.
	Known time.Time
	// Value is a finite number; it means nothing with a Reason.
	Value float64
	// Reason is empty when there is a number.
	Reason source.Reason
	// Message says the reason to users, in at most source.MaxMessage bytes.
	Message string
}

// metric is the state of one metric. The Loop's lock guards all of it but the measurer,
// which is used by the one measurement under way.
type metric struct {
	spec     resolve.Metric
	measurer source.Measurer
	weight   analysis.Weight

	windower          analysis.Windower
	samples           []Sample
	windows           []Window
	measured, missing int32
}

// reading is the outcome of one measurement.
type reading struct {
	// at is when it was asked for, and known when there was an answer.
	at, known time.Time
	sample    source.Sample
	err       error
}

// add keeps the outcome of a measurement and reports whether it is something new.
func (m *metric) add(r reading) bool {
	s := r.sample
	switch {
	case r.err != nil:
		m.miss(r, r.err)
	case m.spec.Compare != nil:
		return m.addCounters(r)
	case s.Counters != nil:
		m.miss(r, source.Wrong("has counters where one number was asked for"))
	case len(m.samples) > 0 && m.last().Reason == "" && !s.At.After(m.last().At):
		// The same number again is not another measurement.
		return false
	default:
		m.measured++
		m.keep(Sample{At: s.At, Known: r.known, Value: s.Value})
	}
	return true
}

func (m *metric) last() Sample { return m.samples[len(m.samples)-1] }

func (m *metric) addCounters(r reading) bool {
	if r.sample.Counters == nil {
		m.miss(r, source.Wrong("has one number where counters were asked for"))
		return true
	}
	var window analysis.Window
	var reason analysis.Reason
	if m.windower, window, reason = m.windower.Add(*r.sample.Counters, m.weight); reason != "" {
		return false // no window, and no fault either: it takes two readings
	}
	m.measured++
	m.windows = appendKept(m.windows, Window{window, r.known})
	return true
}

// miss keeps the reason why there is no number.
func (m *metric) miss(r reading, err error) {
	sample := Sample{At: r.at, Known: r.known, Reason: source.Malformed, Message: "the measurement failed"}
	if missing, ok := errors.AsType[*source.MissingError](err); ok {
		sample.Reason, sample.Message = missing.Reason, missing.Message
	}
	if sample.Reason != source.Pending {
		m.missing++
	}
	if len(sample.Message) > source.MaxMessage {
		sample.Message = shorten(sample.Message)
	}
	m.keep(sample)
}

// keep keeps a sample. What was pending is so no longer, or again.
func (m *metric) keep(s Sample) {
	known := m.samples
	if n := len(known); n > 0 && known[n-1].Reason == source.Pending {
		known = known[:n-1]
	}
	m.samples = appendKept(known, s)
}

// appendKept appends to a fresh slice of the last Keep: readers hold the old one.
func appendKept[T any](list []T, next T) []T {
	return append(slices.Clone(list[max(0, len(list)+1-Keep):]), next)
}

func (m *metric) series() Series {
	return Series{Metric: m.spec, Samples: m.samples, Windows: m.windows}
}
