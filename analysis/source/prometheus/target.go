// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
)

// readings are the raw samples that the queries for one version gave.
type readings struct {
	requests, latency, failures model.Matrix
}

// target is one scraped process: its counters start from zero together, and come from
// one scrape, with one timestamp.
type target struct {
	key string
	// at is the newest scrape that every query knows.
	at                          time.Time
	requests, latency, failures []*model.SampleStream
}

// missedScrapes is how many scrapes a target may miss before it is taken for gone.
const missedScrapes = 2

// targets groups the series by what was scraped, in the order of their keys, and leaves
// out what is no longer scraped: a pod that ended would hold the others up, as the
// scrape is as old as its oldest part.
func (r readings) targets(at time.Time) ([]*target, error) {
	byKey := map[string]*target{}
	for _, q := range []struct {
		series model.Matrix
		into   func(*target) *[]*model.SampleStream
	}{
		{r.requests, func(t *target) *[]*model.SampleStream { return &t.requests }},
		{r.latency, func(t *target) *[]*model.SampleStream { return &t.latency }},
		{r.failures, func(t *target) *[]*model.SampleStream { return &t.failures }},
	} {
		for _, s := range q.series {
			if s == nil || len(s.Values) == 0 {
				return nil, source.Wrong("has a series without numbers, or native histograms; give classic counters")
			}
			key := instance(s.Metric)
			if byKey[key] == nil {
				byKey[key] = &target{key: key}
			}
			list := q.into(byKey[key])
			*list = append(*list, s)
		}
	}
	var live []*target
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if t := byKey[key]; t.date(at) {
			live = append(live, t)
		}
	}
	return live, nil
}

// instance is what the server attaches to every series of one target.
func instance(m model.Metric) string {
	return strconv.Quote(string(m[model.JobLabel])) + strconv.Quote(string(m[model.InstanceLabel]))
}

// date finds the newest scrape that all queries know, and reports whether the target
// is still being scraped. One that only the last query has found was scraped for the
// first time between the queries.
func (t *target) date(at time.Time) bool {
	if len(t.requests) == 0 && len(t.latency) == 0 {
		return false
	}
	var newest model.Time
	var spacing time.Duration
	for _, series := range [][]*model.SampleStream{t.requests, t.latency, t.failures} {
		if len(series) == 0 {
			continue
		}
		last, between := latest(series)
		if newest == 0 || last < newest {
			newest, spacing = last, between
		}
	}
	t.at = newest.Time()
	// With a single sample the distance is unknown: the target is new.
	return spacing == 0 || at.Sub(t.at) <= missedScrapes*spacing
}

// latest is the newest sample of several series, and the longest time between two
// samples before it.
func latest(series []*model.SampleStream) (last model.Time, between time.Duration) {
	for _, s := range series {
		n := len(s.Values)
		last = max(last, s.Values[n-1].Timestamp)
		for i := 1; i < n; i++ {
			between = max(between, s.Values[i].Timestamp.Sub(s.Values[i-1].Timestamp))
		}
	}
	return last, between
}

// variant adds the counters of the target up. Those that were not in its scrape do not
// count: the tracker sees to it that nothing is made of their coming and going.
func (t *target) variant() (analysis.Variant, error) {
	var a analysis.Variant
	var err error
	if a.Latency, err = t.histogram(); err != nil {
		return a, err
	}
	if a.Failures, err = t.sum(t.failures); err != nil {
		return a, err
	}
	if len(t.requests) > 0 || a.Latency == nil {
		a.Requests, err = t.sum(t.requests)
	} else {
		a.Requests = a.Latency.Counts[len(a.Latency.LE)]
	}
	if err != nil {
		return a, err
	}
	if a.Validate() != nil {
		return a, source.Wrong("has counters that can't belong together: more failures than requests, or buckets that descend")
	}
	return a, nil
}

func (t *target) sum(series []*model.SampleStream) (int64, error) {
	var sum int64
	for _, s := range series {
		v, found := t.value(s)
		if !found {
			continue
		}
		n, err := whole(v)
		if err != nil {
			return 0, err
		}
		sum = min(sum+n, analysis.MaxCount)
	}
	return sum, nil
}

// value is that of the sample of the target's scrape.
func (t *target) value(s *model.SampleStream) (float64, bool) {
	for _, v := range slices.Backward(s.Values) {
		if v.Timestamp.Time().Equal(t.at) {
			return float64(v.Value), true
		}
	}
	return 0, false
}

// values are the target's series in its scrape, for the tracker.
func (t *target) values() map[model.Fingerprint]float64 {
	values := map[model.Fingerprint]float64{}
	for _, s := range slices.Concat(t.requests, t.latency, t.failures) {
		if v, found := t.value(s); found {
			values[s.Metric.Fingerprint()] = v
		}
	}
	return values
}

// histogram adds the buckets up; nil without any.
func (t *target) histogram() (*analysis.Histogram, error) {
	counts := map[float64]int64{}
	for _, s := range t.latency {
		v, found := t.value(s)
		if !found {
			continue
		}
		le, err := strconv.ParseFloat(string(s.Metric[model.BucketLabel]), 64)
		if err != nil || math.IsNaN(le) {
			return nil, source.Wrong("has a bucket without a number in its label le; select the _bucket series of a classic histogram")
		}
		n, err := whole(v)
		if err != nil {
			return nil, err
		}
		counts[le] = min(counts[le]+n, analysis.MaxCount)
	}
	if len(counts) == 0 {
		return nil, nil
	}
	if _, found := counts[math.Inf(1)]; !found {
		return nil, source.Wrong("has no bucket +Inf; select all buckets")
	}
	h := &analysis.Histogram{}
	for _, le := range slices.Sorted(maps.Keys(counts)) {
		if !math.IsInf(le, 1) {
			h.LE = append(h.LE, le)
		}
		h.Counts = append(h.Counts, counts[le])
	}
	return h, nil
}

// whole is the value of a counter of requests.
func whole(v float64) (int64, error) {
	if !(v >= 0 && v <= analysis.MaxCount) || v != math.Trunc(v) {
		return 0, &source.MissingError{Reason: source.NotANumber, Message: "a counter is not a whole number from 0 to 2^53; select counters of requests"}
	}
	return int64(v), nil
}
