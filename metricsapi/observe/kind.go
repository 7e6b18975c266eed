// SPDX-License-Identifier: Apache-2.0

package observe

// Kind is a kind of resource that has TrafficMetrics.
type Kind struct {
	// Resource is the plural in paths, such as deployments.
	Resource string
	// Kind is that of the objects, such as Deployment.
	Kind string
	// APIVersion of the objects, such as apps/v1.
	APIVersion string
	// Namespaced is whether the objects are in namespaces.
	Namespaced bool
}

// The kinds of the specification, in its order.
var (
	Namespaces             = Kind{"namespaces", "Namespace", "v1", false}
	Nodes                  = Kind{"nodes", "Node", "v1", false}
	Pods                   = Kind{"pods", "Pod", "v1", true}
	ReplicationControllers = Kind{"replicationcontrollers", "ReplicationController", "v1", true}
	Services               = Kind{"services", "Service", "v1", true}
	DaemonSets             = Kind{"daemonsets", "DaemonSet", "apps/v1", true}
	Deployments            = Kind{"deployments", "Deployment", "apps/v1", true}
	ReplicaSets            = Kind{"replicasets", "ReplicaSet", "apps/v1", true}
	StatefulSets           = Kind{"statefulsets", "StatefulSet", "apps/v1", true}
	Jobs                   = Kind{"jobs", "Job", "batch/v1", true}
	TrafficSplits          = Kind{"trafficsplits", "TrafficSplit", "split.smi-spec.io/v1alpha4", true}
)

// Kinds are all kinds.
var Kinds = []Kind{
	Namespaces, Nodes, Pods, ReplicationControllers, Services, DaemonSets,
	Deployments, ReplicaSets, StatefulSets, Jobs, TrafficSplits,
}
