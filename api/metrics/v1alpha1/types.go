// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrafficMetrics are the request counts and latencies of a resource, for one of
// its edges, over one window of time.
//
// +kubebuilder:object:root=true
type TrafficMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// resource that generates or serves the traffic.
	Resource corev1.ObjectReference `json:"resource"`

	// edge restricts the metrics to the traffic between resource and edge.resource.
	Edge Edge `json:"edge"`

	// backend that the metrics are for, when resource is a TrafficSplit.
	// +optional
	Backend *Backend `json:"backend,omitempty"`

	// timestamp is the end of the window.
	Timestamp metav1.Time `json:"timestamp"`

	// window is the length of time that the metrics cover.
	Window metav1.Duration `json:"window"`

	// metrics are the values.
	// +listType=map
	// +listMapKey=name
	Metrics []Metric `json:"metrics"`
}

// TrafficMetricsList is a list of TrafficMetrics of one kind of resource.
//
// +kubebuilder:object:root=true
type TrafficMetricsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// resource of the request: a kind, or one resource for its edges.
	Resource corev1.ObjectReference `json:"resource"`

	// selector that limited the items, if any.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// items are the metrics. Empty, never null, where there was no traffic.
	Items []TrafficMetrics `json:"items"`
}

// Edge is the other end of the traffic.
type Edge struct {
	// direction of the requests, as seen from the resource.
	Direction Direction `json:"direction"`

	// side at which the traffic was observed.
	Side Side `json:"side"`

	// resource at the other end. Empty means any.
	// +optional
	Resource *corev1.ObjectReference `json:"resource,omitempty"`
}

// Direction of requests, as seen from a resource.
type Direction string

// The directions of requests.
const (
	// DirectionTo means that the resource sends the requests.
	DirectionTo Direction = "to"
	// DirectionFrom means that the resource receives the requests.
	DirectionFrom Direction = "from"
)

// Side at which traffic was observed.
type Side string

// The sides at which traffic can be observed.
const (
	// SideClient is the end that sends the requests.
	SideClient Side = "client"
	// SideServer is the end that answers them.
	SideServer Side = "server"
)

// Backend is one backend of a TrafficSplit.
type Backend struct {
	// apex is the root Service of the split.
	Apex string `json:"apex"`
	// name is the Service that gets the share.
	Name string `json:"name"`
	// weight of the backend in the split.
	Weight int32 `json:"weight"`
}

// Metric is one value.
type Metric struct {
	// name of the metric, such as p99_response_latency or success_count.
	Name string `json:"name"`
	// unit of the value: seconds, or empty for a count.
	// +optional
	Unit string `json:"unit,omitempty"`
	// value of the metric. Absent values are left out, never zero.
	Value resource.Quantity `json:"value"`
}

// Names of metrics that every implementation serves.
const (
	MetricP99Latency   = "p99_response_latency"
	MetricP90Latency   = "p90_response_latency"
	MetricP50Latency   = "p50_response_latency"
	MetricSuccessCount = "success_count"
	MetricFailureCount = "failure_count"

	// UnitSeconds is the unit of latencies.
	UnitSeconds = "seconds"
)
