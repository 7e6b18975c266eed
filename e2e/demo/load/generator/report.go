// SPDX-License-Identifier: Apache-2.0

package generator

import "time"

// Report is what was counted since the start. Every request that was sent is
// either in flight, in Versions, or in Unanswered:
//
//	Sent = InFlight + sum of Versions[].Requests + Unanswered
type Report struct {
	// StartedAt is when the first request was due, zero before; Time is when the
	// report was made.
	StartedAt time.Time `json:"startedAt"`
	Time      time.Time `json:"time"`
	// Target and Rate repeat the configuration.
	Target string `json:"target"`
	Rate   int    `json:"rate"`
	// Control is what was sent to the control, on new connections.
	Control Series `json:"control"`
	// Probes are connections to the target that were opened and ended at once, ControlProbes
	// those to the control.
	Probes        Series `json:"probes"`
	ControlProbes Series `json:"controlProbes"`
	// Streams are answers that took long, Held are requests on the connection that is kept.
	Streams Series `json:"streams"`
	Held    Series `json:"held"`
	// Sent counts requests that were started; InFlight those without an outcome. Settled
	// counts from the first one up to the first without an outcome: when it has come to what
	// Sent was, none of before is under way any more.
	Sent     int64 `json:"sent"`
	Settled  int64 `json:"settled"`
	InFlight int64 `json:"inFlight"`
	// Skipped counts requests that were due but not sent, because too many waited
	// for an answer.
	Skipped int64 `json:"skipped"`
	// Retried counts repetitions by net/http of a request whose idle connection was closed.
	Retried int64 `json:"retried"`
	// Connections counts connections that were opened.
	Connections int64 `json:"connections"`
	// Proxied counts the connections to an HTTP proxy that were opened since the app last answered
	// without one: by the X-Forwarded-For header, which the app repeats.
	Proxied int64 `json:"proxied"`
	// OldestConnection is when the oldest connection was made that is still kept: whatever
	// changed before it, every connection has followed.
	OldestConnection time.Time `json:"oldestConnection"`
	// Versions are the answers by the version that gave them, sorted by name.
	Versions []VersionReport `json:"versions,omitempty"`
	// Unanswered counts requests that no version of the app answered: transport
	// errors and answers without the app's X-Version header, whatever their status.
	Unanswered int64 `json:"unanswered"`
	// Kinds tells the unanswered ones apart.
	Kinds []KindReport `json:"kinds,omitempty"`
	// Failures are the latest failed requests, those of the app and the unanswered
	// ones kept apart so that many of one kind never hide the other. A request that net/http
	// repeated is among them, as KindRepeated, and an answer that took a second or more as
	// KindSlow, though they are counted as what they became.
	Failures []Failure `json:"failures,omitempty"`
}

// VersionReport counts the answers of one version.
type VersionReport struct {
	// Version is the value of the X-Version header.
	Version string `json:"version"`
	// Requests counts its answers; Failed those with a status of 500 or more.
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"`
	// Latency is how long the answers took, failed ones included.
	Latency Quantiles `json:"latency"`
}

// KindReport counts the unanswered requests of one kind.
type KindReport struct {
	Kind  Kind  `json:"kind"`
	Count int64 `json:"count"`
}

// Quantiles are latencies in milliseconds, at most 5 % above the true ones.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Failure is one request that failed.
type Failure struct {
	// Time is when its outcome was known.
	Time time.Time `json:"time"`
	// Kind says how it failed.
	Kind Kind `json:"kind"`
	// Version answered, if one did; Status is its status, or 0 without an answer.
	Version string `json:"version,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Detail is the error or the beginning of the answer.
	Detail string `json:"detail,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// beside are the series of what was sent beside the main load.
func (r Report) beside() []Series {
	return []Series{r.Control, r.Probes, r.ControlProbes, r.Streams, r.Held}
}

// SettledSince tells whether nothing is under way any more that was when an earlier report was
// made, of the main load and beside it.
func (r Report) SettledSince(earlier Report) bool {
	before := earlier.beside()
	for i, s := range r.beside() {
		if s.Settled < before[i].Begun {
			return false
		}
	}
	return r.Settled >= earlier.Sent
}

// Failed counts the requests that failed: those that a version answered with an
// error, and those that none answered.
func (r Report) Failed() int64 {
	failed := r.Unanswered
	for _, v := range r.Versions {
		failed += v.Failed
	}
	return failed
}

// Version returns the counts of one version, all zero when it never answered.
func (r Report) Version(name string) VersionReport {
	for _, v := range r.Versions {
		if v.Version == name {
			return v
		}
	}
	return VersionReport{Version: name}
}
