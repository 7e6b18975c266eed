// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis"
)

// Families are the metric families of one answer, by name.
type Families map[string]*dto.MetricFamily

// What an answer has at most: a proxy tells of 1,200 pairs of a client and a backend, each in
// 19 lines with up to six labels.
const (
	maxLines  = 30_000
	maxLabels = 8
	// maxBuckets is several times those of a proxy's histograms.
	maxBuckets = 128
)

// Parse reads an answer in the text format. One with more lines, or labels in a line, than a
// proxy's is refused: anyone who may run pods may answer in a proxy's place, a line takes up to a
// hundred times its size in memory, and the parser compares each label of a line with the others.
func Parse(body []byte) (Families, error) {
	if !small(body) {
		return nil, errors.New("the answer has more lines, or labels in a line, than one of Serin's proxies")
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		// The parser's error quotes the answer.
		return nil, errors.New("the answer is not in the Prometheus text format 0.0.4, or was cut short")
	}
	return parsed, nil
}

func small(body []byte) bool {
	lines := 0
	for line := range bytes.Lines(body) {
		if lines++; lines > maxLines || bytes.Count(line, []byte("=")) > maxLabels {
			return false
		}
	}
	return true
}

// Start is when the proxy started, in seconds since 1970 in the shortest form that is
// exact. It distinguishes the runs of one proxy.
func (f Families) Start() (string, error) {
	series, err := f.Series(Start, dto.MetricType_GAUGE)
	if err != nil {
		return "", err
	}
	if len(series) != 1 {
		return "", fmt.Errorf("%s: %d series instead of one", Start, len(series))
	}
	v := series[0].GetGauge().GetValue()
	if !(v > 0) || math.IsInf(v, 0) {
		return "", fmt.Errorf("%s: not a time", Start)
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}

// Series are the series of a metric, none if the proxy has no such metric. It is an error
// if the metric is of another kind.
func (f Families) Series(name string, kind dto.MetricType) ([]*dto.Metric, error) {
	family, ok := f[name]
	if !ok {
		return nil, nil
	}
	if family.GetType() != kind {
		return nil, fmt.Errorf("%s: not a %s", name, kind)
	}
	return family.GetMetric(), nil
}

// Of are the series of a metric for one backend.
func (f Families) Of(name string, kind dto.MetricType, backend string) ([]*dto.Metric, error) {
	all, err := f.Series(name, kind)
	if err != nil {
		return nil, err
	}
	var out []*dto.Metric
	for _, m := range all {
		if Label(m, Backend) == backend {
			out = append(out, m)
		}
	}
	return out, nil
}

// Label is the value of a label of a series, "" when it has none of that name.
func Label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Histogram copies the finite buckets and the total of a classic histogram.
func Histogram(in *dto.Histogram) (*analysis.Histogram, error) {
	total := in.GetSampleCount()
	switch {
	case total > analysis.MaxCount || in.SampleCountFloat != nil:
		return nil, errNotCount
	case len(in.GetBucket()) > maxBuckets: // windows are kept for half an hour
		return nil, fmt.Errorf("a histogram has more than %d buckets", maxBuckets)
	}
	h := &analysis.Histogram{}
	for _, b := range in.GetBucket() {
		n := b.GetCumulativeCount()
		switch le := b.GetUpperBound(); {
		case b.CumulativeCountFloat != nil:
			return nil, errNotCount
		case n > total:
			return nil, errors.New("a bucket holds more than the total")
		case math.IsInf(le, 1) && n != total:
			return nil, errors.New("the last bucket and the total differ")
		case math.IsInf(le, 1):
		default:
			h.LE, h.Counts = append(h.LE, le), append(h.Counts, int64(n)) //nolint:gosec // at most MaxCount
		}
	}
	h.Counts = append(h.Counts, int64(total))
	variant := analysis.Variant{Requests: analysis.MaxCount, Latency: h}
	return h, variant.Validate()
}

var errNotCount = errors.New("not a count: a whole number that is not negative was expected")

// Count reads the value of a counter of requests, and refuses what can never be one.
func Count(v float64) (int64, error) {
	if !(v >= 0 && v <= analysis.MaxCount) || v != math.Trunc(v) {
		return 0, errNotCount
	}
	return int64(v), nil
}
