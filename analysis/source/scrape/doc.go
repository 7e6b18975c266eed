// SPDX-License-Identifier: Apache-2.0

// Package scrape reads the counters of both versions from Serin's own proxies.
//
// Its input is the addresses of the proxy pods and the names of the two
// backends; its output is one analysis.Scrape. The metrics it understands are
//
//	serin_proxy_requests_total{backend,code}             counter, one count per client request that was split by weight
//	serin_proxy_request_duration_seconds{backend}        classic histogram, upstream response time
//	serin_proxy_start_time_seconds                       gauge; another value is another series
//	serin_proxy_backend_info{backend} 1                  the proxy serves this backend
//
// Requests that matched nothing in a split limited by matches, and mirrored
// requests, are in metrics of their own (serin_proxy_unmatched_… and
// serin_proxy_mirrored_…) and are left out: only requests that could have gone to
// either version compare the versions.
//
// A backend without counters has counted zero only if its backend_info is
// there; otherwise it is unknown. An answer that is late, too big, cut short,
// redirected, of another format, or that holds a value which cannot be a count,
// makes that pod missed: it is never read in part. What a pod answered is never
// quoted in an error.
//
// The package makes no decisions.
package scrape
