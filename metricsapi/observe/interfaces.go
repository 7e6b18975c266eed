// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// Source is where traffic is measured, or where measurements are stored.
type Source interface {
	// Observe returns the last complete window. Flows are those of which the client
	// or the server is in the namespace, or all when it is "". It returns soon after
	// ctx ends. An error is an UnavailableError when asking later may help.
	Observe(ctx context.Context, namespace string) (Snapshot, error)
}

// UnavailableError says why nothing is known at present, in words of Serin's own that
// may be shown to anyone who may read TrafficMetrics.
type UnavailableError struct {
	Message string
	// Cause is what happened, for the log alone: it may hold words of a store. Nil when the
	// message says it all.
	Cause error
}

// Error returns the message.
func (e *UnavailableError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// Inventory is what the cluster says about the ends of flows. It is safe for concurrent
// use, and answers from memory.
type Inventory interface {
	// Names returns the objects of a kind in a namespace ("" = all) whose labels
	// match, ordered by namespace and name.
	Names(kind Kind, namespace string, selector labels.Selector) []types.NamespacedName
	// Exists is whether there is such an object.
	Exists(kind Kind, name types.NamespacedName) bool
	// Pod that has an address and is not over.
	Pod(address netip.Addr) (types.NamespacedName, bool)
	// Holders are the objects of a kind that contain a pod: its namespace, its node,
	// the workloads that own it, directly or not, and the Services that have it among
	// their endpoints.
	Holders(kind Kind, pod types.NamespacedName) []types.NamespacedName
	// Split returns the apex and the backends with their live weights.
	Split(name types.NamespacedName) (Split, bool)
}

// Split is a TrafficSplit.
type Split struct {
	Apex     string
	Backends []metricsv1.Backend
}

// Request is a request of the API.
type Request struct {
	Kind Kind
	// Namespace of the resources; "" for all namespaces and for kinds without one.
	Namespace string
	// Name of one resource, or "" for a list.
	Name string
	// Selector of the resources of a list. Never nil.
	Selector labels.Selector
}

// Provider answers requests.
type Provider interface {
	// Metrics returns what the resources that are asked for received and sent: an
	// item for each of them with traffic, for a TrafficSplit one for each backend.
	Metrics(ctx context.Context, r Request) (Answer, error)
	// Edges returns an item for each edge of the resource r.Name.
	Edges(ctx context.Context, r Request) (Answer, error)
}

// Answer is what a Provider found.
type Answer struct {
	// Items are ordered by namespace, name, direction, side, and the other end.
	Items []metricsv1.TrafficMetrics
	// Warnings are shown to the client: what is missing in the items.
	Warnings []string
}
