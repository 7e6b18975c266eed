// SPDX-License-Identifier: Apache-2.0

package judgement

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/e2e/cluster/rejection"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// Record is what a scenario saw: all that is judged.
type Record struct {
	// Before and After are the load generator's reports at both ends of the scenario.
	Before generator.Report `json:"before"`
	After  generator.Report `json:"after"`
	// Bad is the version whose answers fail on purpose, "" for none.
	Bad string `json:"bad,omitempty"`
	// PodsStay tells that the pods that the load began with are there all along, so that the
	// connection that is held never has a reason to end.
	PodsStay bool `json:"podsStay,omitempty"`
	// Disrupted tells that the cluster itself was harmed, the control with it: what fails at the
	// moments in which the control fails too, in whatever way, is not laid to Serin.
	Disrupted bool `json:"disrupted,omitempty"`
	// Spans are the times in which the shares of the versions were known.
	Spans []Span `json:"spans,omitempty"`
	// Pings are what clients of other protocols counted.
	Pings []Pings `json:"pings,omitempty"`
	// Rejections are the connections that the node led nowhere, for it was exchanging a rule.
	Rejections []rejection.Rejection `json:"rejections,omitempty"`
	// Leftovers are the differences between the namespace before and after.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Span is a time in which each version had one share of the requests.
type Span struct {
	// What was the case, such as "weight 10".
	What string `json:"what"`
	// Shares are the versions' shares, which add up to 1. No other version may answer.
	Shares map[string]float64 `json:"shares"`
	// Answers of each version in this time.
	Answers map[string]int64 `json:"answers"`
}

// NewSpan is the span between two reports, between which the shares were the same all along.
func NewSpan(what string, shares map[string]float64, first, last generator.Report) Span {
	s := Span{What: what, Shares: shares, Answers: map[string]int64{}}
	for _, v := range last.Versions {
		if n := v.Requests - first.Version(v.Version).Requests; n > 0 {
			s.Answers[v.Version] = n
		}
	}
	return s
}

// All is how many requests were answered in the span.
func (s Span) All() (n int64) {
	for _, answers := range s.Answers {
		n += answers
	}
	return n
}

// Pings is what a client counted that sent something to a server, and what one counted that
// sent the same to the control.
type Pings struct {
	What    string           `json:"what"`
	Target  generator.Series `json:"target"`
	Control generator.Series `json:"control"`
}

// traffic is one kind of what was sent, between two reports.
type traffic struct {
	what     string
	requests int64
	kinds    map[generator.Kind]int64
	failures []generator.Failure
}

// during is what a Series has more than it had before.
func during(what string, before, after generator.Series, since time.Time) traffic {
	t := traffic{what: what, requests: after.Requests - before.Requests, kinds: kindsOf(before.Kinds, after.Kinds)}
	t.failures = later(after.Failures, since)
	return t
}

func kindsOf(before, after []generator.KindReport) map[generator.Kind]int64 {
	kinds := map[generator.Kind]int64{}
	for _, k := range after {
		kinds[k.Kind] += k.Count
	}
	for _, k := range before {
		kinds[k.Kind] -= k.Count
	}
	return kinds
}

func later(failures []generator.Failure, since time.Time) []generator.Failure {
	return slices.DeleteFunc(slices.Clone(failures), func(f generator.Failure) bool { return !f.Time.After(since) })
}

// target is all that was sent through what Serin does, control all that was not.
func (r Record) target() []traffic {
	since := r.Before.Time
	return []traffic{
		{
			what: "requests", requests: r.After.Sent - r.Before.Sent,
			kinds: kindsOf(r.Before.Kinds, r.After.Kinds), failures: later(r.After.Failures, since),
		},
		during("probes", r.Before.Probes, r.After.Probes, since),
		during("long answers", r.Before.Streams, r.After.Streams, since),
		during("requests on the connection that is held", r.Before.Held, r.After.Held, since),
	}
}

func (r Record) control() []traffic {
	since := r.Before.Time
	return []traffic{
		during("requests to the control", r.Before.Control, r.After.Control, since),
		during("probes of the control", r.Before.ControlProbes, r.After.ControlProbes, since),
	}
}
