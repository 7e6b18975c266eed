// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unique"

	dto "github.com/prometheus/client_model/go"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source/scrape"
)

const (
	requestsMetric = "serin_proxy_flow_requests_total"
	durationMetric = "serin_proxy_flow_duration_seconds"

	// maxPairs is more than a proxy tells: a thousand, and one for each backend whose
	// other clients are not told apart.
	maxPairs = 1200
)

var (
	errNamespace = errors.New("a series is of another namespace than the proxy's own")
	errPairs     = fmt.Errorf("there are more than %d pairs, which no proxy of Serin's tells", maxPairs)
)

// pair is between whom requests were counted. Names are stored once each.
type pair struct {
	namespace, apex, backend unique.Handle[string]
	client, server           netip.Addr
}

// counts are those of one pair since its proxy began to count it.
type counts struct {
	success, failure int64
	// latency counts within each bound, and all timed requests at last; nil without.
	latency []int64
}

// reading is what one proxy counted. All of its histograms have the same bounds.
type reading struct {
	le    []float64
	pairs map[pair]counts
}

// parse reads the flows of one proxy in a namespace.
func parse(f scrape.Families, namespace string) (reading, error) {
	r := reading{pairs: map[pair]counts{}}
	requests, err := f.Series(requestsMetric, dto.MetricType_COUNTER)
	if err != nil {
		return r, err
	}
	for _, s := range requests {
		if err := r.addRequests(s); err != nil {
			return r, fmt.Errorf("%s: %w", requestsMetric, err)
		}
	}
	durations, err := f.Series(durationMetric, dto.MetricType_HISTOGRAM)
	if err != nil {
		return r, err
	}
	for _, s := range durations {
		if err := r.addLatency(s); err != nil {
			return r, fmt.Errorf("%s: %w", durationMetric, err)
		}
	}
	for key := range r.pairs {
		if key.namespace.Value() != namespace {
			return r, errNamespace
		}
	}
	return r, nil
}

func (r *reading) addRequests(s *dto.Metric) error {
	key, err := pairOf(s)
	if err != nil {
		return err
	}
	if _, known := r.pairs[key]; !known && len(r.pairs) >= maxPairs {
		return errPairs
	}
	n, err := scrape.Count(s.GetCounter().GetValue())
	if err != nil {
		return err
	}
	c := r.pairs[key]
	switch scrape.Label(s, "result") {
	case "success":
		c.success += n
	case "failure":
		c.failure += n
	default:
		return errors.New("a series has a label result that is neither success nor failure")
	}
	r.pairs[key] = c
	return nil
}

func (r *reading) addLatency(s *dto.Metric) error {
	key, err := pairOf(s)
	if err != nil {
		return err
	}
	h, err := scrape.Histogram(s.GetHistogram())
	if err != nil {
		return err
	}
	if r.le == nil {
		r.le = h.LE
	}
	c := r.pairs[key]
	if !slices.Equal(r.le, h.LE) || c.latency != nil {
		return errors.New("histograms with other bounds, or two of one pair")
	}
	c.latency = h.Counts
	r.pairs[key] = c
	return nil
}

func pairOf(s *dto.Metric) (pair, error) {
	key := pair{
		namespace: unique.Make(scrape.Label(s, "namespace")), apex: unique.Make(scrape.Label(s, "apex")), backend: unique.Make(scrape.Label(s, "backend")),
	}
	var err error
	if key.client, err = address(scrape.Label(s, "client")); err != nil {
		return key, err
	}
	key.server, err = address(scrape.Label(s, "server"))
	return key, err
}

func address(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, errors.New("a series has a label client or server that is no address")
	}
	return a.Unmap(), nil
}

// increase is what was counted since before; false when it can't be of the same series.
// A pair that was not there before was counted from zero: its proxy runs since.
func (c counts) increase(before counts) (counts, bool) {
	d := counts{success: c.success - before.success, failure: c.failure - before.failure}
	ok := d.success >= 0 && d.failure >= 0
	switch {
	case before.latency == nil && before.success+before.failure > 0:
		return d, ok // what was timed before is not known
	case before.latency == nil:
		d.latency = slices.Clone(c.latency)
		return d, ok
	case len(c.latency) != len(before.latency):
		return d, false
	}
	d.latency = make([]int64, len(c.latency))
	for i := range c.latency {
		d.latency[i] = c.latency[i] - before.latency[i]
		ok = ok && d.latency[i] >= 0 && (i == 0 || d.latency[i] >= d.latency[i-1])
	}
	return d, ok
}

// plus adds what another proxy counted.
func (c counts) plus(o counts) counts {
	c.success, c.failure = min(c.success+o.success, analysis.MaxCount), min(c.failure+o.failure, analysis.MaxCount)
	if len(c.latency) != len(o.latency) {
		c.latency = nil
		return c
	}
	for i := range c.latency {
		c.latency[i] += o.latency[i]
	}
	return c
}
