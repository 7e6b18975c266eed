// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
)

// Query is one metric.
type Query struct {
	// Address of the server, such as http://prometheus.monitoring:9090.
	Address string
	// Bearer is the token that is sent; none when zero.
	Bearer source.SecretKey
	// PromQL is the query for one number. Either it or Counters.
	PromQL string
	// Range has the number made of several; nil for the number of the present.
	Range *Range
	// Counters are the counters of a metric that is compared.
	Counters *Counters
	// MaxAge is how old a sample may be; DefaultMaxAge when zero. A query is evaluated by
	// the server, which knows the setting since Prometheus 2.43; an older one takes its
	// own, of five minutes. For counters it is enforced here.
	MaxAge time.Duration
	// Stable and Canary are what the query is filled in with for each version. A plain
	// number is measured of the canary.
	Stable, Canary Scope
}

// DefaultMaxAge is four scrapes of the usual half minute.
const DefaultMaxAge = 2 * time.Minute

// Range is a query over a stretch of time.
type Range struct {
	// Over is its length, up to the present; Step is the distance of its points.
	Over, Step time.Duration
	// Reduce says which number the points give.
	Reduce Reduction
}

// Reduction makes one number of several.
type Reduction string

// The reductions.
const (
	Last Reduction = "Last"
	Min  Reduction = "Min"
	Max  Reduction = "Max"
	Mean Reduction = "Mean"
)

// maxPoints keeps the answer to a range query short.
const maxPoints = 1000

// Counters are selectors of raw counters. Each finds those of one version, of all of
// its pods.
type Counters struct {
	// Requests finds the counters of all requests; required unless Latency is given.
	Requests string
	// Failures finds the counters of those requests that failed; "" for none.
	Failures string
	// Latency finds the counters of the buckets of a classic histogram in seconds, with
	// the label le; "" for none.
	Latency string
}

func (q Query) maxAge() time.Duration {
	if q.MaxAge <= 0 {
		return DefaultMaxAge
	}
	return q.MaxAge
}

// compiled is a Query that can be sent.
type compiled struct {
	number         string
	stable, canary variant
}

// variant are the queries for the counters of one version; "" for none.
type variant struct{ requests, latency, failures string }

// compile returns an error that names the field and the fix.
func (q Query) compile() (compiled, error) {
	if err := egress.CheckURL(q.Address); err != nil {
		return compiled{}, fmt.Errorf("address: %w", err)
	}
	if (q.PromQL == "") == (q.Counters == nil) {
		return compiled{}, errors.New("needs exactly one of query and counters; remove or add one")
	}
	if q.Counters != nil {
		return q.compileCounters()
	}
	if err := q.Range.validate(); err != nil {
		return compiled{}, fmt.Errorf("range.%w", err)
	}
	text, err := number(q.PromQL, q.Canary)
	if err != nil {
		return compiled{}, fmt.Errorf("query: %w", err)
	}
	return compiled{number: text}, nil
}

func (r *Range) validate() error {
	switch {
	case r == nil:
		return nil
	case r.Step < time.Second:
		return fmt.Errorf("step: %v; give at least 1s", r.Step)
	case r.Over < r.Step || r.Over/r.Step > maxPoints:
		return fmt.Errorf("over: %v; give 1 to %d times the step", r.Over, maxPoints)
	}
	switch r.Reduce {
	case Last, Min, Max, Mean:
		return nil
	default:
		return fmt.Errorf("reduce: %q; give %s, %s, %s or %s", r.Reduce, Last, Min, Max, Mean)
	}
}

func (q Query) compileCounters() (c compiled, err error) {
	switch {
	case q.Range != nil:
		return c, errors.New("range: is for a query and not for counters; remove it")
	case q.Counters.Requests == "" && q.Counters.Latency == "":
		return c, errors.New("counters: need requests or latency; add one")
	}
	if c.stable, err = q.Counters.compile(q.Stable, q.maxAge()); err == nil {
		c.canary, err = q.Counters.compile(q.Canary, q.maxAge())
	}
	if err != nil {
		return c, fmt.Errorf("counters.%w", err)
	}
	return c, nil
}

func (c Counters) compile(s Scope, over time.Duration) (a variant, err error) {
	for _, f := range []struct {
		name, query string
		into        *string
	}{{"requests", c.Requests, &a.requests}, {"latency", c.Latency, &a.latency}, {"failures", c.Failures, &a.failures}} {
		if f.query == "" {
			continue
		}
		if *f.into, err = counter(f.query, s, model.Duration(over).String()); err != nil {
			return a, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return a, nil
}
