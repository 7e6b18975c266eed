// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Options of the router: what the pods of proxies are made from.
type Options struct {
	// Image that holds `serin-proxy` and nginx. Required.
	Image string
	// Reports reads what proxies serve. Required.
	Reports traffic.ProxyReports
	// ClusterRole that proxies are bound to in the namespace of their split. Default serin-proxy.
	ClusterRole string
	// Role that proxies are bound to instead, which each namespace with a split has. Default
	// none: the ClusterRole.
	Role string
	// PullPolicy of the image. Default IfNotPresent.
	PullPolicy corev1.PullPolicy
	// Replicas that each split's proxy has at least, until a user or an autoscaler scales it.
	// Default 2, so that one can be lost.
	Replicas int32
	// MaxReplicas that each split's proxy has at most, whatever its load. Default 10, or Replicas.
	MaxReplicas int32
	// WithoutNodes is true where the operator may not read the cluster's nodes: then it is not known
	// over how many the proxies can be spread.
	WithoutNodes bool
	// Spread is how the scheduler spreads the proxies. The router decides it for each split.
	Spread Spread
	// Pods is what else the pods of proxies are to be.
	Pods splitv1.ProxyPods
	// Autoscaling of each split's proxy; nil when it is left to others. An autoscaler or
	// a user who scales the Deployment is never overruled, except from 0.
	Autoscaling *Autoscaling
	// Resources of a proxy's container. Default: see DefaultResources.
	Resources corev1.ResourceRequirements
	// Workers is the number of nginx's worker processes and of the agent's threads.
	// Default 2, however many cores the node has: each worker costs memory.
	Workers int
	// AppPods reads pods of apps, past the cache, which holds none but proxies. Without it,
	// NetworkPolicies and meshes are told by what Services select.
	AppPods client.Reader
	// Namespaces is true when the operator may read namespaces.
	Namespaces bool
	// Access is who reads from proxies, and where the API server is, for NetworkPolicies.
	Access Access
	// GracePeriod bounds how long a proxy may take to drain and to finish its
	// requests. It has to be longer than the agent's --drain-limit and --quit-timeout
	// together, and the time for which the last counts wait to be read. Default 90 s.
	GracePeriod time.Duration
}

// Access is what NetworkPolicies of proxies allow beside the traffic of the app.
type Access struct {
	// Readers of counters and confirmations where policies isolate the proxies. Default: every
	// pod.
	Readers []networkingv1.NetworkPolicyPeer
	// Restricted are the namespaces in which only Readers read them, whatever policies
	// there are; "*" for all.
	Restricted []string
	// APIServer is where proxies find the API server. Default: any address.
	APIServer []networkingv1.NetworkPolicyPeer
	// APIServerPorts are its ports. Default 443 and 6443.
	APIServerPorts []int32
}

// volumeSize bounds the folder in memory that holds nginx's configuration, access
// log and buffered request bodies. It counts as memory of the container.
const volumeSize = "128Mi"

// DefaultResources suit a few thousand requests a second. There is no limit of
// CPU: throttled, the proxy would add latency to every version alike.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("96Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// DefaultClusterRole is that of a chart whose release is called serin.
const DefaultClusterRole = "serin-proxy"

// settings are what the objects of one split are made from.
type settings struct {
	Options
	// account is the UID of the ServiceAccount that there is; "" when there is none.
	account types.UID
	// scaled is true when an autoscaler or a user says how many proxies there are.
	scaled bool
	// proxies that there are.
	proxies []traffic.Proxy
}

// agentMemory is the soft limit of the agent's own heap (GOMEMLIMIT): what is
// left of the container's memory is nginx's and the volume's.
const agentMemory = "64MiB"

func (o *Options) complete() error {
	if o.Image == "" {
		return errors.New("nginx.Options: Image is required; give the operator --proxy-image")
	}
	if o.Reports == nil {
		return errors.New("nginx.Options: Reports is required")
	}
	o.ClusterRole = cmp.Or(o.ClusterRole, DefaultClusterRole)
	o.PullPolicy = cmp.Or(o.PullPolicy, corev1.PullIfNotPresent)
	o.Replicas = cmp.Or(o.Replicas, 2)
	o.MaxReplicas = cmp.Or(o.MaxReplicas, max(10, o.Replicas))
	if o.MaxReplicas < o.Replicas {
		return fmt.Errorf("nginx.Options: MaxReplicas is %d, below the %d replicas that are always there; raise it, or lower Replicas", o.MaxReplicas, o.Replicas)
	}
	o.Workers = cmp.Or(o.Workers, 2)
	o.GracePeriod = cmp.Or(o.GracePeriod, 90*time.Second)
	if o.Resources.Requests == nil && o.Resources.Limits == nil {
		o.Resources = DefaultResources()
	}
	if len(o.Access.APIServerPorts) == 0 {
		o.Access.APIServerPorts = []int32{443, 6443}
	}
	if o.Autoscaling != nil {
		return o.Autoscaling.complete(*o)
	}
	return nil
}
