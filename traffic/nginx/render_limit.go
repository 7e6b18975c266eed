// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"net/http"
	"strconv"
)

const (
	// overloadedCode stands for a request that is too many. No backend and no client sees it.
	overloadedCode = "430"
	// overloadedReason is what its client is told.
	overloadedReason = "too many requests in progress"
)

// renderRequestLimit writes how many requests of all HTTP ports may be in progress. Servers that
// have a limit of their own, such as that of mirrored requests, do not take part.
func renderRequestLimit(t *text, capacity Capacity) {
	if capacity.Requests > 0 {
		t.line("limit_conn_log_level", "info") // an overload has many lines, and shows in the counts
		t.line("limit_conn_zone", "requests", "zone=serin_requests:64k")
	}
}

// renderRequestLimitServer writes how a server refuses what is too many.
func renderRequestLimitServer(t *text, capacity Capacity) {
	if capacity.Requests == 0 {
		return
	}
	t.line("limit_conn", "serin_requests", strconv.Itoa(capacity.Requests))
	t.line("limit_conn_status", overloadedCode)
	t.line("error_page", overloadedCode, "=", "@overloaded")
	t.block("location", []string{"@overloaded"}, func() {
		t.line("add_header", "X-Serin-Proxy-Error", overloadedReason, "always")
		t.line("return", strconv.Itoa(http.StatusServiceUnavailable), "serin proxy: "+overloadedReason+"\n")
	})
}

// renderStreamLimit writes how many connections of all TCP ports there may be. A connection that
// is too many is closed.
func renderStreamLimit(t *text, capacity Capacity) {
	if capacity.Streams == 0 {
		return
	}
	t.line("limit_conn_log_level", "info")
	t.line("limit_conn_zone", "connections", "zone=serin_connections:64k")
	t.line("limit_conn", "serin_connections", strconv.Itoa(capacity.Streams))
}
