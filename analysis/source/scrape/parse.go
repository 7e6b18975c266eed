// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"strconv"

	dto "github.com/prometheus/client_model/go"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/proxy/exposition"
)

// metrics is what one proxy says.
type metrics struct {
	// start distinguishes the runs of one proxy.
	start    string
	counters analysis.PodCounters
}

// families are those of one proxy.
type families struct{ exposition.Families }

// parse reads what an answer says of a target.
func parse(body []byte, t analysis.Target) (metrics, error) {
	parsed, err := exposition.Parse(body)
	if err != nil {
		return metrics{}, err
	}
	f, m := families{parsed}, metrics{}
	if m.start, err = f.Start(); err != nil {
		return metrics{}, err
	}
	if m.counters.Canary, err = f.variant(t.Canary); err != nil {
		return metrics{}, err
	}
	if m.counters.Stable, err = f.variant(t.Stable); err != nil {
		return metrics{}, err
	}
	if m.counters.All, err = f.all(); err != nil {
		return metrics{}, err
	}
	return m, nil
}

// variant reads the counters of one backend.
func (f families) variant(backend string) (analysis.Variant, error) {
	if err := f.serves(backend); err != nil {
		return analysis.Variant{}, err
	}
	series, err := f.Of(exposition.Requests, dto.MetricType_COUNTER, backend)
	if err != nil {
		return analysis.Variant{}, err
	}
	variant, err := answers(exposition.Requests, series)
	if err != nil {
		return analysis.Variant{}, err
	}
	if variant.Latency, err = f.latency(backend); err != nil {
		return analysis.Variant{}, err
	}
	return variant, nil
}

// serves is an error unless the proxy says that it serves the backend, for only
// then does a counter that is not there mean zero.
func (f families) serves(backend string) error {
	series, err := f.Of(exposition.BackendInfo, dto.MetricType_GAUGE, backend)
	if err != nil {
		return err
	}
	if len(series) != 1 || series[0].GetGauge().GetValue() != 1 {
		return fmt.Errorf("%s: the proxy does not serve backend %q (yet)", exposition.BackendInfo, backend)
	}
	return nil
}

// all reads what came of the requests of all clients: versions answered them, or the proxy refused
// them. Older proxies do not say what they refuse, which is not known to be nothing.
func (f families) all() (analysis.Variant, error) {
	series, err := f.Series(exposition.Refused, dto.MetricType_COUNTER)
	if err != nil || len(series) == 0 {
		return analysis.Variant{}, err
	}
	refused, err := exposition.Count(series[0].GetCounter().GetValue())
	if err != nil || len(series) > 1 {
		return analysis.Variant{}, fmt.Errorf("%s: %d series, the first of which is %v; one count was expected", exposition.Refused, len(series), series[0].GetCounter().GetValue())
	}
	all := analysis.Variant{Requests: refused, Failures: refused}
	for _, name := range []string{exposition.Requests, exposition.Unmatched} {
		series, err := f.Series(name, dto.MetricType_COUNTER)
		if err != nil {
			return analysis.Variant{}, err
		}
		answered, err := answers(name, series)
		if err != nil {
			return analysis.Variant{}, err
		}
		all.Requests += answered.Requests
	}
	return all, nil
}

// answers sums counters over the status codes and the backends.
func answers(name string, series []*dto.Metric) (analysis.Variant, error) {
	type answer struct {
		backend string
		code    int
	}
	var variant analysis.Variant
	seen := make(map[answer]bool, len(series))
	for _, s := range series {
		backend := exposition.Label(s, exposition.Backend)
		code, err := strconv.Atoi(exposition.Label(s, exposition.Code))
		if err != nil || code < 0 {
			return analysis.Variant{}, fmt.Errorf("%s: a series of backend %q has a label %s that is not a status", name, backend, exposition.Code)
		}
		if seen[answer{backend, code}] {
			return analysis.Variant{}, fmt.Errorf("%s: several series for backend %q and code %d", name, backend, code)
		}
		seen[answer{backend, code}] = true
		n, err := exposition.Count(s.GetCounter().GetValue())
		if err != nil {
			return analysis.Variant{}, fmt.Errorf("%s: backend %q, code %d: %w", name, backend, code, err)
		}
		switch analysis.Classify(code) {
		case analysis.Failure:
			variant.Failures += n
			variant.Requests += n
		case analysis.Success:
			variant.Requests += n
		case analysis.Ignored:
		}
	}
	return variant, nil
}

// latency is the histogram of one backend; nil when there is none yet.
func (f families) latency(backend string) (*analysis.Histogram, error) {
	series, err := f.Of(exposition.Durations, dto.MetricType_HISTOGRAM, backend)
	if err != nil || len(series) == 0 {
		return nil, err
	}
	if len(series) > 1 {
		return nil, fmt.Errorf("%s: several series for backend %q", exposition.Durations, backend)
	}
	h, err := exposition.Histogram(series[0].GetHistogram())
	if err != nil {
		return nil, fmt.Errorf("%s: backend %q: %w", exposition.Durations, backend, err)
	}
	return h, nil
}
