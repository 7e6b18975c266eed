// SPDX-License-Identifier: Apache-2.0

package scrape

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

const (
	requestsMetric = "serin_proxy_requests_total"
	durationMetric = "serin_proxy_request_duration_seconds"
	startMetric    = "serin_proxy_start_time_seconds"
	backendMetric  = "serin_proxy_backend_info"

	backendLabel = "backend"
	codeLabel    = "code"
)

// metrics is what one proxy says.
type metrics struct {
	// start tells apart the runs of one proxy.
	start    string
	counters analysis.PodCounters
}

// Families are the metric families of one answer, by name.
type Families map[string]*dto.MetricFamily

// parseFamilies reads an answer in the text format.
func parseFamilies(body []byte) (Families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		// The parser's error quotes the answer.
		return nil, errors.New("the answer is not in the Prometheus text format 0.0.4, or was cut short")
	}
	return parsed, nil
}

// parse reads what an answer says of a target.
func parse(body []byte, t analysis.Target) (metrics, error) {
	f, err := parseFamilies(body)
	if err != nil {
		return metrics{}, err
	}
	var m metrics
	if m.start, err = f.Start(); err != nil {
		return metrics{}, err
	}
	if m.counters.Canary, err = f.arm(t.Canary); err != nil {
		return metrics{}, err
	}
	if m.counters.Stable, err = f.arm(t.Stable); err != nil {
		return metrics{}, err
	}
	return m, nil
}

// Start is when the proxy started, in seconds since 1970 in the shortest form that is
// exact. It tells apart the runs of one proxy.
func (f Families) Start() (string, error) {
	series, err := f.Series(startMetric, dto.MetricType_GAUGE)
	if err != nil {
		return "", err
	}
	if len(series) != 1 {
		return "", fmt.Errorf("%s: %d series instead of one", startMetric, len(series))
	}
	v := series[0].GetGauge().GetValue()
	if !(v > 0) || math.IsInf(v, 0) {
		return "", fmt.Errorf("%s: not a time", startMetric)
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}

// arm reads the counters of one backend.
func (f Families) arm(backend string) (analysis.Arm, error) {
	if err := f.serves(backend); err != nil {
		return analysis.Arm{}, err
	}
	arm, err := f.requests(backend)
	if err != nil {
		return analysis.Arm{}, err
	}
	if arm.Latency, err = f.latency(backend); err != nil {
		return analysis.Arm{}, err
	}
	return arm, nil
}

// serves is an error unless the proxy says that it serves the backend, for only
// then does a counter that is not there mean zero.
func (f Families) serves(backend string) error {
	series, err := f.of(backendMetric, dto.MetricType_GAUGE, backend)
	if err != nil {
		return err
	}
	if len(series) != 1 || series[0].GetGauge().GetValue() != 1 {
		return fmt.Errorf("%s: the proxy does not serve backend %q (yet)", backendMetric, backend)
	}
	return nil
}

// requests sums the counters of one backend over the status codes.
func (f Families) requests(backend string) (analysis.Arm, error) {
	series, err := f.of(requestsMetric, dto.MetricType_COUNTER, backend)
	if err != nil {
		return analysis.Arm{}, err
	}
	var arm analysis.Arm
	seen := make(map[int]bool, len(series))
	for _, s := range series {
		code, err := strconv.Atoi(Label(s, codeLabel))
		if err != nil || code < 0 {
			return analysis.Arm{}, fmt.Errorf("%s: a series of backend %q has a label %s that is not a status", requestsMetric, backend, codeLabel)
		}
		if seen[code] {
			return analysis.Arm{}, fmt.Errorf("%s: several series for backend %q and code %d", requestsMetric, backend, code)
		}
		seen[code] = true
		n, err := Count(s.GetCounter().GetValue())
		if err != nil {
			return analysis.Arm{}, fmt.Errorf("%s: backend %q, code %d: %w", requestsMetric, backend, code, err)
		}
		switch analysis.Classify(code) {
		case analysis.Failure:
			arm.Failures += n
			arm.Requests += n
		case analysis.Success:
			arm.Requests += n
		case analysis.Ignored:
		}
	}
	return arm, nil
}

// latency is the histogram of one backend; nil when there is none yet.
func (f Families) latency(backend string) (*analysis.Histogram, error) {
	series, err := f.of(durationMetric, dto.MetricType_HISTOGRAM, backend)
	if err != nil || len(series) == 0 {
		return nil, err
	}
	if len(series) > 1 {
		return nil, fmt.Errorf("%s: several series for backend %q", durationMetric, backend)
	}
	h, err := Histogram(series[0].GetHistogram())
	if err != nil {
		return nil, fmt.Errorf("%s: backend %q: %w", durationMetric, backend, err)
	}
	return h, nil
}

// Histogram copies the finite buckets and the total of a classic histogram.
func Histogram(in *dto.Histogram) (*analysis.Histogram, error) {
	total := in.GetSampleCount()
	if total > analysis.MaxCount || in.SampleCountFloat != nil {
		return nil, errNotCount
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
	arm := analysis.Arm{Requests: analysis.MaxCount, Latency: h}
	return h, arm.Validate()
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

// of are the series of a metric for one backend.
func (f Families) of(name string, kind dto.MetricType, backend string) ([]*dto.Metric, error) {
	all, err := f.Series(name, kind)
	if err != nil {
		return nil, err
	}
	var out []*dto.Metric
	for _, m := range all {
		if Label(m, backendLabel) == backend {
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

var errNotCount = errors.New("not a count: a whole number that is not negative was expected")

// Count reads the value of a counter of requests, and refuses what can never be one.
func Count(v float64) (int64, error) {
	if !(v >= 0 && v <= analysis.MaxCount) || v != math.Trunc(v) {
		return 0, errNotCount
	}
	return int64(v), nil
}
