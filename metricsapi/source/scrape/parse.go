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
	"github.com/serin-dev/serin/proxy/exposition"
)

const (
	// maxPairs is more than a proxy tells: a thousand, and one for each backend whose
	// other clients are not distinguished.
	maxPairs = 1200
	// maxName is the length of the longest name of an object.
	maxName = 253
)

var (
	errNamespace = errors.New("a series is of another namespace than the proxy's own")
	errName      = fmt.Errorf("a series has a name of more than %d characters", maxName)
	errPairs     = fmt.Errorf("there are more than %d pairs, which no proxy of Serin reports", maxPairs)
)

// pair is between whom requests were counted. Names are stored once each.
type pair struct {
	namespace, apex, backend unique.Handle[string]
	client, server           netip.Addr
}

// reading is what one proxy counted. All of its histograms have the same bounds.
type reading struct {
	le    []float64
	pairs map[pair]analysis.Variant
}

// parse reads the flows of one proxy in a namespace.
func parse(f exposition.Families, namespace string) (reading, error) {
	r := reading{pairs: map[pair]analysis.Variant{}}
	requests, err := f.Series(exposition.FlowRequests, dto.MetricType_COUNTER)
	if err != nil {
		return r, err
	}
	for _, s := range requests {
		if err := r.addRequests(s); err != nil {
			return r, fmt.Errorf("%s: %w", exposition.FlowRequests, err)
		}
	}
	durations, err := f.Series(exposition.FlowDurations, dto.MetricType_HISTOGRAM)
	if err != nil {
		return r, err
	}
	for _, s := range durations {
		if err := r.addLatency(s); err != nil {
			return r, fmt.Errorf("%s: %w", exposition.FlowDurations, err)
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
	n, err := exposition.Count(s.GetCounter().GetValue())
	if err != nil {
		return err
	}
	c := r.pairs[key]
	switch exposition.Label(s, exposition.Result) {
	case exposition.Success:
	case exposition.Failure:
		c.Failures += n
	default:
		return errors.New("a series has a label result that is neither success nor failure")
	}
	c.Requests += n
	r.pairs[key] = c
	return nil
}

func (r *reading) addLatency(s *dto.Metric) error {
	key, err := pairOf(s)
	if err != nil {
		return err
	}
	h, err := exposition.Histogram(s.GetHistogram())
	if err != nil {
		return err
	}
	if r.le == nil {
		r.le = h.LE
	}
	c := r.pairs[key]
	if !slices.Equal(r.le, h.LE) || c.Latency != nil {
		return errors.New("histograms with other bounds, or two of one pair")
	}
	h.LE = r.le // which is in memory once
	c.Latency = h
	r.pairs[key] = c
	return nil
}

func pairOf(s *dto.Metric) (key pair, err error) {
	namespace, apex, backend := exposition.Label(s, exposition.Namespace), exposition.Label(s, exposition.Apex), exposition.Label(s, exposition.Backend)
	if max(len(namespace), len(apex), len(backend)) > maxName {
		return key, errName
	}
	key.namespace, key.apex, key.backend = unique.Make(namespace), unique.Make(apex), unique.Make(backend)
	if key.client, err = address(exposition.Label(s, exposition.Client)); err != nil {
		return key, err
	}
	key.server, err = address(exposition.Label(s, exposition.Server))
	return key, err
}

func address(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, errors.New("a series has a label client or server that is not an address")
	}
	return a.Unmap(), nil
}
