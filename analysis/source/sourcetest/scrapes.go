// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
)

// Scrapes are the samples that a Prometheus has of scrapes at the times that a test says. The
// zero value has none.
type Scrapes struct {
	series map[model.Fingerprint]*model.SampleStream
	// last are the series of the latest scrape of each target.
	last map[string]map[model.Fingerprint]bool
}

// Add is a scrape of a target, later than those before: what it answers in the text format, and
// "" when it is down. As Prometheus does, it marks the series as stale that the target has no
// longer. A target without a name has no label instance.
func (s *Scrapes) Add(tb testing.TB, target, text string, at time.Time) {
	tb.Helper()
	if s.series == nil {
		s.series, s.last = map[model.Fingerprint]*model.SampleStream{}, map[string]map[model.Fingerprint]bool{}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	if err != nil {
		tb.Fatal(err)
	}
	there := map[model.Fingerprint]bool{}
	for _, sample := range samples {
		sample.Metric[model.JobLabel] = "web"
		if target != "" {
			sample.Metric[model.InstanceLabel] = model.LabelValue(target)
		}
		id := sample.Metric.Fingerprint()
		if s.series[id] == nil {
			s.series[id] = &model.SampleStream{Metric: sample.Metric}
		}
		there[id] = true
		s.append(id, at, float64(sample.Value))
	}
	for id := range s.last[target] {
		if !there[id] {
			s.append(id, at, math.Float64frombits(value.StaleNaN))
		}
	}
	s.last[target] = there
}

func (s *Scrapes) append(id model.Fingerprint, at time.Time, v float64) {
	s.series[id].Values = append(s.series[id].Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(v)})
}

// PrometheusOf runs one that has the samples of scrapes, and scrapes nothing: what it answers
// does not depend on how fast the machine is.
func PrometheusOf(tb testing.TB, scrapes *Scrapes) (address string) {
	tb.Helper()
	address = start(tb, "127.0.0.1", "", "--web.enable-remote-write-receiver")
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, address+"/api/v1/write", bytes.NewReader(block(scrapes.message())))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		tb.Fatalf("the samples were answered with %s", response.Status)
	}
	return address
}

// message is the WriteRequest of version 1.0 of Prometheus's protocol for remote writes.
func (s *Scrapes) message() (out []byte) {
	for _, stream := range s.series {
		var series []byte
		for _, name := range slices.Sorted(maps.Keys(stream.Metric)) {
			label := field(field(nil, 1, []byte(name)), 2, []byte(stream.Metric[name]))
			series = field(series, 1, label)
		}
		for _, v := range stream.Values {
			sample := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(float64(v.Value)))
			sample = binary.AppendUvarint(append(sample, 2<<3), uint64(v.Timestamp)) //nolint:gosec // after 1970
			series = field(series, 2, sample)
		}
		out = field(out, 1, series)
	}
	return out
}

// field adds a field with a length to a message in the format of Protocol Buffers.
func field(out []byte, number byte, content []byte) []byte {
	out = binary.AppendUvarint(append(out, number<<3|2), uint64(len(content)))
	return append(out, content...)
}

// block is a Snappy block of literals: nothing in it is compressed.
func block(content []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(content)))
	for literal := range slices.Chunk(content, 1<<16) {
		out = binary.LittleEndian.AppendUint16(append(out, 61<<2), uint16(len(literal)-1)) //nolint:gosec // at most 1<<16 - 1
		out = append(out, literal...)
	}
	return out
}
