// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// kept is the number of latest failures that a report shows of each class: as many as an
// outage of some seconds breaks.
const kept = 2000

// recorder counts outcomes. Its methods may be called at once.
type recorder struct {
	mu          sync.Mutex
	startedAt   time.Time
	underWay    underWay
	skipped     int64
	retried     int64
	connections int64
	proxied     int64
	versions    map[string]*versionCount
	kinds       map[Kind]int64
	// appFailures and unanswered are the latest failures, and slow the latest requests that took
	// long, oldest first.
	appFailures, unanswered, slow []Failure
}

type versionCount struct {
	requests, failed int64
	latency          histogram
}

func newRecorder() *recorder {
	return &recorder{versions: map[string]*versionCount{}, kinds: map[Kind]int64{}}
}

// begin notes when the first request is due.
func (r *recorder) begin(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startedAt = now
}

// send counts a request and returns its number.
func (r *recorder) send() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.underWay.begin()
}

func (r *recorder) skip(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped += n
}

// finish counts the outcome of the request with a number.
func (r *recorder) finish(now time.Time, number int64, o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay.end(number)
	r.retried += o.retries
	r.connections += o.opened
	r.countProxied(o)
	if o.kind.answered() {
		r.count(o)
	} else {
		r.kinds[o.kind]++
	}
	if o.retries > 0 {
		repeated := failureOf(now, o)
		repeated.Kind = KindRepeated
		r.unanswered = appendBounded(r.unanswered, repeated)
	}
	if o.latency >= slow && o.kind.answered() {
		late := failureOf(now, o)
		late.Kind = KindSlow
		r.slow = appendBounded(r.slow, late)
	}
	switch {
	case o.kind == KindAppError:
		r.appFailures = appendBounded(r.appFailures, failureOf(now, o))
	case !o.kind.answered():
		r.unanswered = appendBounded(r.unanswered, failureOf(now, o))
	}
}

// countProxied counts the connections to proxies, from zero after each answer without one.
func (r *recorder) countProxied(o outcome) {
	switch {
	case o.direct:
		r.proxied = 0
	case o.kind.answered():
		r.proxied += o.opened
	}
}

func (r *recorder) count(o outcome) {
	v := r.versions[o.version]
	if v == nil {
		v = &versionCount{}
		r.versions[o.version] = v
	}
	v.requests++
	v.latency.add(o.latency)
	if o.kind == KindAppError {
		v.failed++
	}
}

func failureOf(now time.Time, o outcome) Failure {
	return Failure{
		Time: now, Kind: o.kind, Version: o.version, Status: o.status,
		Detail: o.detail, Seconds: o.latency.Seconds(),
	}
}

// appendBounded keeps the latest failures only.
func appendBounded(list []Failure, f Failure) []Failure {
	if len(list) == kept {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, f)
}

// report returns a copy of everything counted.
func (r *recorder) report(now time.Time) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{
		StartedAt: r.startedAt, Time: now,
		Sent: r.underWay.begun, Settled: r.underWay.settled(), InFlight: int64(len(r.underWay.open)), Skipped: r.skipped,
		Retried: r.retried, Connections: r.connections, Proxied: r.proxied,
		Failures: slices.Concat(r.unanswered, r.appFailures, r.slow),
	}
	for _, name := range slices.Sorted(maps.Keys(r.versions)) {
		v := r.versions[name]
		report.Versions = append(report.Versions, VersionReport{
			Version: name, Requests: v.requests, Failed: v.failed, Latency: v.latency.quantiles(),
		})
	}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		report.Unanswered += r.kinds[kind]
		report.Kinds = append(report.Kinds, KindReport{Kind: kind, Count: r.kinds[kind]})
	}
	return report
}
