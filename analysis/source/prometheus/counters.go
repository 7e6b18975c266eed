// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"fmt"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
)

// counters reads the counters of both versions. Requests come first and failures last:
// what was scraped between two of the queries is then in the later answer too, and a
// scrape that all answers have can be found.
func (m *Measurer) counters(ctx context.Context, server promv1.API, at time.Time) (source.Sample, error) {
	read := func(query string) (model.Matrix, error) {
		if query == "" {
			return nil, nil
		}
		answer, warnings, infos, err := server.Query(ctx, query, at)
		if err := m.check(err, warnings, infos); err != nil {
			return nil, err
		}
		matrix, ok := answer.(model.Matrix)
		if !ok {
			return nil, source.Wrong("is not a range of samples")
		}
		return matrix, nil
	}
	var variants [2]readings
	for i, queries := range []variant{m.text.stable, m.text.canary} {
		var err error
		if variants[i].requests, err = read(queries.requests); err != nil {
			return source.Sample{}, err
		}
		if variants[i].latency, err = read(queries.latency); err != nil {
			return source.Sample{}, err
		}
		if variants[i].failures, err = read(queries.failures); err != nil {
			return source.Sample{}, err
		}
	}
	return m.scrape(at, variants[0], variants[1])
}

// scrape puts the counters of both versions together as if they had been read from the
// pods.
func (m *Measurer) scrape(at time.Time, stable, canary readings) (source.Sample, error) {
	scrape := &analysis.Scrape{At: at, Pods: map[string]analysis.PodCounters{}}
	names := m.series.begin()
	for _, version := range []struct {
		prefix string
		read   readings
		put    func(analysis.Variant) analysis.PodCounters
	}{
		{"stable/", stable, func(a analysis.Variant) analysis.PodCounters { return analysis.PodCounters{Stable: a} }},
		{"canary/", canary, func(a analysis.Variant) analysis.PodCounters { return analysis.PodCounters{Canary: a} }},
	} {
		targets, err := version.read.targets(at)
		if err != nil {
			return source.Sample{}, err
		}
		for _, t := range targets {
			counted, err := t.variant()
			if err != nil {
				return source.Sample{}, err
			}
			// The oldest reading is when the counters are of: what happened later may be
			// missing in it.
			if t.at.Before(scrape.At) {
				scrape.At = t.at
			}
			scrape.Pods[names.name(version.prefix+t.key, t.values())] = version.put(counted)
		}
	}
	m.series = names.end()
	if len(scrape.Pods) == 0 {
		return source.Sample{}, &source.MissingError{
			Reason:  source.NoData,
			Message: fmt.Sprintf("no counter was scraped in the last %s; check that the selectors find something", m.query.maxAge()),
		}
	}
	return source.Sample{At: scrape.At, Counters: scrape}, nil
}
