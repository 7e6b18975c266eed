// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"net/http"
	"strconv"

	"github.com/serin-dev/serin/traffic"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	// agentBytes are those of the agent and the supervisor: the heap that agentMemory allows,
	// and what the Go runtime and the programs take beside it.
	agentBytes = 96 * mib
	// volumeBytes are volumeSize.
	volumeBytes = 128 * mib
	// workerBytes are those of a worker without connections. While a configuration replaces
	// another, there are workers of both.
	workerBytes = 12 * mib
	// mirrorBytes are those of the mirrored requests on their way, see maxCopies.
	mirrorBytes = 32 * mib

	// What a request or a connection in progress takes of the pod's memory, with its buffers
	// and both of its sockets. TestWhatIsTooManyIsRefusedAtOnceAndTheRestServed measures the first two.
	requestBytes = 72 * kib
	// streamBytes: of HTTP/2, whose body nginx reads ahead.
	streamBytes = 120 * kib
	// tcpBytes: a connection of a TCP port.
	tcpBytes = 48 * kib
	// copiedBytes are the body that is kept of a request which may be mirrored.
	copiedBytes = 100 * kib
	// excessBytes are those of a connection that is refused, and of the places of four
	// connections in each of the workers of two configurations.
	excessBytes = 30 * kib

	// minInProgress are taken on, however little memory there is.
	minInProgress = 8
	// sparePlaces are connections of a worker beside those of requests: to ask it what it serves.
	sparePlaces = 128
	// placesPerRequest of the limit are how many connections a worker has room for, if
	// all requests come to it: the client's, the backend's, one that is kept idle, and that of a
	// client that is told there are too many.
	placesPerRequest = 4
)

// Capacity is what one nginx takes on at once. It is 0 without a bound.
type Capacity struct {
	// Requests of all HTTP ports in progress, over all workers. What exceeds them is answered
	// with the status 503 at once.
	Requests int
	// Streams are connections of all TCP ports. What exceeds them is closed at once.
	Streams int
	// Connections of a worker, client and backend side counted apart.
	Connections int
}

// capacityOf bounds what nginx takes on so that it fits into the pod's memory, twice, because
// a configuration that was replaced finishes what it has. Without a limit of memory, the number of
// connections is the only bound.
func capacityOf(split traffic.Split, listeners []Listener, opts Options) Capacity {
	if opts.Memory == 0 {
		return Capacity{Connections: opts.Connections}
	}
	request := int64(requestBytes)
	if uses(listeners, traffic.ProtocolHTTP2) {
		request = streamBytes
	}
	fixed := int64(agentBytes + volumeBytes + 2*opts.Workers*workerBytes)
	if split.Mirror != nil {
		request += copiedBytes
		fixed += mirrorBytes
	}
	// With little memory, the volume and the agent get less than they may take.
	budget := max(opts.Memory-fixed, opts.Memory/4)
	http := uses(listeners, traffic.ProtocolHTTP) || uses(listeners, traffic.ProtocolHTTP2)
	tcp := uses(listeners, traffic.ProtocolTCP)
	if http && tcp {
		budget /= 2
	}
	// The connections that nginx may have bound both as well.
	most := int64(opts.Connections-sparePlaces) / placesPerRequest
	if http && tcp {
		most /= 2
	}
	fit := func(used bool, each int64) int {
		if !used {
			return 0
		}
		return int(max(min(budget/(2*each+excessBytes), most), minInProgress))
	}
	c := Capacity{Requests: fit(http, request), Streams: fit(tcp, tcpBytes)}
	c.Connections = min(placesPerRequest*(c.Requests+c.Streams)+sparePlaces, opts.Connections)
	return c
}

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

// refusedFormat is the format of the access log of what the proxy refuses.
const refusedFormat = "serin_refused"

// renderRefusedLog has the access log say that the proxy refused a request: no version and no
// client is the cause.
func renderRefusedLog(t *text, opts Options) { renderAccessLog(t, refusedFormat, opts) }

// renderRequestLimitServer writes how a server refuses what is too many.
func renderRequestLimitServer(t *text, capacity Capacity, opts Options) {
	if capacity.Requests == 0 {
		return
	}
	t.line("limit_conn", "serin_requests", strconv.Itoa(capacity.Requests))
	t.line("limit_conn_status", overloadedCode)
	t.line("error_page", overloadedCode, "=", "@overloaded")
	t.block("location", []string{"@overloaded"}, func() {
		renderRefusedLog(t, opts)
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
