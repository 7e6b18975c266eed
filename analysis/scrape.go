// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"time"
)

// Target names what to measure: the proxies that carry the traffic and the two
// backends that it is divided between.
type Target struct {
	// Pods are the proxies; each counts both backends.
	Pods []Pod
	// Stable and Canary are the names of the backend Services.
	Stable, Canary string
}

// Subject names what is compared: the TrafficSplit, by its name, and the two backends
// that it divides the traffic between. Without a TrafficSplit, they are two ReplicaSets
// whose pods get the traffic.
type Subject struct{ Split, Stable, Canary string }

// Pod is one proxy.
type Pod struct {
	// UID is the UID of the pod.
	UID string
	// Address is where its metrics are served, as IP:port.
	Address string
}

// Equal reports whether both targets name the same backends and the same pods
// in the same order.
func (t Target) Equal(o Target) bool {
	return t.Stable == o.Stable && t.Canary == o.Canary && slices.Equal(t.Pods, o.Pods)
}

// Clone returns a copy that shares nothing with t.
func (t Target) Clone() Target {
	t.Pods = slices.Clone(t.Pods)
	return t
}

// Scrape is one reading of the counters of every pod of a target that could be
// read. Scrapes are treated as immutable.
type Scrape struct {
	// At is the time before the first counter was read.
	At time.Time
	// Pods has one entry per series: the key is made of the UID of the pod and
	// the time its proxy started, so that a restarted proxy is another series.
	Pods map[string]PodCounters
	// Missed are the pods that could not be read. What they counted is unknown,
	// which is not zero.
	Missed []Missed
}

// PodCounters are the counters of one proxy since it started. Both variants come
// from one response, so that they cover the same time.
type PodCounters struct {
	Canary, Stable Variant
	// All is what came to the proxy, and its Failures what the proxy refused itself. Zero when
	// it does not say so.
	All Variant
}

// Missed says why one pod could not be read.
type Missed struct {
	// UID is the UID of the pod.
	UID string
	// Err names the pod's address and what was wrong. It never quotes what the
	// pod answered.
	Err error
}

// Weight is the share of requests that the canary is being sent.
type Weight struct {
	// Percent is 0 to 100.
	Percent int32
	// Since is when the weight was known to be live everywhere; round up
	// when it was stored with less precision than it had. Zero means that the
	// weight is changing or unknown, and no window closes meanwhile. Make it
	// zero before a new weight is written, not after, so that no window can
	// hold two weights.
	Since time.Time
}
