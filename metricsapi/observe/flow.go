// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/netip"
	"time"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Party is one end of a flow, as far as the place of measurement tells. The zero Party
// is not known.
type Party struct {
	// Namespace of what the other fields name.
	Namespace string
	// Pod is the name of the pod.
	Pod string
	// Address is that of the pod where its name is not known.
	Address netip.Addr
	// Workload is the object that makes the pods, where pods are not distinguished.
	Workload Workload
	// Service that the requests were sent to, where pods are not distinguished.
	Service string
}

// Workload is an object that makes pods.
type Workload struct {
	// Kind is one of Kinds that have pods, or zero when only the name is known.
	Kind Kind
	Name string
}

// Flow is what was seen of the requests between two parties in one window.
type Flow struct {
	// Side at which it was seen: client where the sender, or a proxy that acts for it,
	// counted; server where the receiver did.
	Side metricsv1.Side
	// Client sends the requests and Server answers them.
	Client, Server Party
	// Apex is the Service that the client called, and Backend the one of a
	// TrafficSplit that was chosen for it, both in the namespace of the Server. They
	// are empty where it is unknown whether the traffic was split, and the same where it
	// was not.
	Apex, Backend string
	// Success and Failure are numbers of requests. They may be fractions, where a
	// store estimates them.
	Success, Failure float64
	// Latency of the requests; nil when it is not known.
	Latency *Histogram
}

// Histogram counts requests by their latency.
type Histogram struct {
	// LE are upper bounds in seconds, ascending; +Inf is not among them.
	LE []float64
	// Counts of requests within each bound, cumulative.
	Counts []float64
	// Total of the requests, at least the last of Counts.
	Total float64
}

// Snapshot is what was seen in one window.
type Snapshot struct {
	// Start and End of the window.
	Start, End time.Time
	// Flows with requests in the window. One that had none may be left out.
	Flows []Flow
	// Partial says in one sentence what is missing; "" when nothing is.
	Partial string
}
