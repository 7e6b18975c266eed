// SPDX-License-Identifier: Apache-2.0

// Package exposition is the one form in which proxies show their counters and others read
// them: the Prometheus text format 0.0.4, the names of metrics and labels, and a parser
// that refuses what can't be a count.
//
//	serin_proxy_requests_total{backend,code}                             counter, one count per client request that was split by weight
//	serin_proxy_request_duration_seconds{backend}                        classic histogram, upstream response time
//	serin_proxy_backend_info{backend} 1                                  the proxy serves this backend
//	serin_proxy_flow_requests_total{namespace,apex,backend,client,server,result}   counter
//	serin_proxy_flow_duration_seconds{namespace,apex,backend,client,server}        classic histogram
//	serin_proxy_start_time_seconds                                       gauge; another value is another series
//
// What a proxy answered is never quoted in an error. The package sends and serves nothing.
package exposition
