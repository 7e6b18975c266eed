// SPDX-License-Identifier: Apache-2.0

package exposition

// Prefix begins the name of each metric of a proxy.
const Prefix = "serin_proxy_"

// Metrics that others read.
const (
	Requests      = Prefix + requests
	Durations     = Prefix + durations
	BackendInfo   = Prefix + "backend_info"
	FlowRequests  = Prefix + "flow_requests_total"
	FlowDurations = Prefix + "flow_duration_seconds"
	Refused       = Prefix + "refused_requests_total"
	Start         = Prefix + "start_time_seconds"
	Unmatched     = Prefix + UnmatchedKind + requests

	requests  = "requests_total"
	durations = "request_duration_seconds"
)

// UnmatchedKind begins the names of what is counted of requests that matched nothing.
const UnmatchedKind = "unmatched_"

// RequestsOf is the counter of another kind of request: only those that were shared by the
// weights can be compared.
func RequestsOf(kind string) string { return Prefix + kind + requests }

// DurationsOf is the histogram of another kind of request.
func DurationsOf(kind string) string { return Prefix + kind + durations }

// Labels.
const (
	Backend   = "backend"
	Code      = "code"
	Namespace = "namespace"
	Apex      = "apex"
	Client    = "client"
	Server    = "server"
	Result    = "result"
)

// Values of Result.
const (
	Success = "success"
	Failure = "failure"
)
