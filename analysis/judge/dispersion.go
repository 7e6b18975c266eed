// SPDX-License-Identifier: Apache-2.0

package judge

import "time"

// Dispersion is what stable's history says about how much its failures vary
// more than those of independent requests would. It is a value that later
// windows add to; the zero Dispersion knows nothing. It belongs to a workload,
// not to one release: keep State.Dispersion of one release and give it as
// Config.Dispersion to the next.
type Dispersion struct {
	// Span is the stretch of time that was measured.
	Span time.Duration
	// Total compares each window with the one before, for all proxies together.
	Total Scale
	// PerPod compares the proxies of one window with each other.
	PerPod Scale
}

// Scale is the dispersion of counts of one size.
type Scale struct {
	// Squares is the sum of squared differences, standardised for their number of
	// requests, and Expected what it would be for independent requests.
	Squares, Expected float64
	// Requests is the sum of the requests, and Counts the number of counts.
	Requests, Counts float64
}

const maxCluster = 1e6

func validCluster(n float64) bool { return n == 0 || n >= 1 && n <= maxCluster }

func (d Dispersion) plausible() bool {
	return d.Span >= 0 && d.Total.plausible() && d.PerPod.plausible()
}

func (s Scale) plausible() bool {
	return finite(s.Squares) && finite(s.Expected) && finite(s.Requests) && finite(s.Counts)
}
