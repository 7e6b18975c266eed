// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/serin-dev/serin/analysis"
)

// epoch is when every simulated release begins.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// Curve is a figure that changes with the time since the release began, which is
// negative before.
type Curve func(since time.Duration) float64

// Traffic says what requests come and what becomes of them.
type Traffic struct {
	// Rate is how many requests per second are expected, for both versions together.
	Rate Curve
	// Stable and Canary are the shares of requests that fail.
	Stable, Canary Curve
	// Correlation is that of the failures in one window of one version; 0 when
	// requests fail independently.
	Correlation float64
	// Burst is how many requests fail together, 1 or more. Half of the failures
	// come in bursts then; the failure rate stays what it is.
	Burst int64
	// StableLatency and CanaryLatency are how long the versions take; nil when it
	// is not measured.
	StableLatency, CanaryLatency func(since time.Duration) Latency
	// Window is how long a window is; 0 is analysis.WindowLength.
	Window time.Duration
}

func (t Traffic) windowLength() time.Duration {
	if t.Window > 0 {
		return t.Window
	}
	return analysis.WindowLength
}

// window draws what both versions answered in the window that begins at a time,
// while the canary had that weight.
func (t Traffic) window(r random, since time.Duration, weight int32) analysis.Window {
	length := t.windowLength()
	middle := since + length/2
	expected := t.Rate(middle) * length.Seconds()
	share := float64(weight) / 100
	w := analysis.Window{
		Start: epoch.Add(since), End: epoch.Add(since + length), Weight: weight,
		Canary: t.variant(r, expected*share, t.Canary(middle)),
		Stable: t.variant(r, expected*(1-share), t.Stable(middle)),
	}
	if t.StableLatency != nil {
		w.Canary.Latency = t.CanaryLatency(middle).histogram(r, w.Canary.Requests)
		w.Stable.Latency = t.StableLatency(middle).histogram(r, w.Stable.Requests)
	}
	return w
}

// proxies is how many of them carry the traffic.
const proxies = 4

// variant draws the requests of one version. What it does in one window is the same
// at every proxy; a burst is at one of them.
func (t Traffic) variant(r random, expected, p float64) analysis.Variant {
	share := p
	if t.Burst <= 1 {
		share = r.share(p, t.Correlation)
	}
	var sum analysis.Variant
	for range proxies {
		n := r.count(expected / proxies)
		var k int64
		if t.Burst > 1 {
			k = t.inBursts(r, n, p)
		} else {
			k = r.failures(n, share)
		}
		sum.Requests, sum.Failures = sum.Requests+n, sum.Failures+k
		if n > 0 {
			sum.Spread.Proxies++
			sum.Spread.Squares += float64(k) * float64(k) / float64(n)
		}
	}
	return sum
}

// inBursts draws failures of which half come in bursts, such as all requests on
// a connection that breaks.
func (t Traffic) inBursts(r random, n int64, p float64) int64 {
	bursts := r.count(float64(n) * p / 2 / float64(t.Burst))
	together := min(n, bursts*t.Burst)
	return together + r.failures(n-together, p/2)
}

// always is a curve that does not change.
func always(x float64) Curve { return func(time.Duration) float64 { return x } }
