// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/traffic"
)

// Facts are what the policies of a split's proxies depend on.
type Facts struct {
	// Split that the proxies serve, and its namespace.
	Split, Namespace string
	// NamespaceLabels are those of the namespace.
	NamespaceLabels map[string]string
	// Policies of all namespaces that are known, with those that Serin made. They are not
	// changed.
	Policies []*networkingv1.NetworkPolicy
	// Listeners are the ports of a proxy that stand in for ports of the app.
	Listeners []Listener
	// Root is the Service whose traffic goes through the proxies, with the pods that its
	// owner's selector finds.
	Root Service
	// Backends are the Services that the proxies send requests to.
	Backends []Service
	// Access is what does not depend on policies.
	Access Access
}

// Access is who reads from proxies, and what proxies reach beside the app.
type Access struct {
	// Port of a proxy where its counters and confirmations are read, and its name.
	Port Listener
	// Readers of that port where policies isolate the proxies; empty for every pod.
	Readers []networkingv1.NetworkPolicyPeer
	// Restrict is true when only Readers are to reach that port, also where no policy isolates
	// the proxies.
	Restrict bool
	// APIServer is where the API server is, for proxies whose egress is isolated; empty for any
	// address.
	APIServer []networkingv1.NetworkPolicyPeer
	// APIServerPorts are its ports.
	APIServerPorts []int32
}

// Listener is a port that a proxy listens on.
type Listener struct {
	Number int32
	// Name of the port in the proxy's pod, or "".
	Name string
	// Protocol is TCP or UDP.
	Protocol corev1.Protocol
}

// Service is one with its pods.
type Service struct {
	// Name of the Service.
	Name string
	// Selector that its owner declares.
	Selector map[string]string
	// Behind is the split through whose proxies its traffic goes, or "".
	Behind string
	// Targets are its target ports, one for each listener; zero for one that it has not.
	Targets []intstr.IntOrString
	// Pods that it selects.
	Pods []Pod
}

// Pod is what policies see of a pod.
type Pod struct {
	Labels map[string]string
	// Ports of its containers.
	Ports []corev1.ContainerPort
	// Addresses that it has.
	Addresses []string
}

// Concerns is true for a policy that the proxies may need others for: one of the split's
// namespace, or one that may let pods send there, and none that was made for the split itself.
func (f Facts) Concerns(policy *networkingv1.NetworkPolicy) bool {
	split, found := traffic.MadeFor(policy)
	if found && split == (types.NamespacedName{Namespace: f.Namespace, Name: f.Split}) {
		return false
	}
	return policy.Namespace == f.Namespace || slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool {
			return p.IPBlock != nil || f.near(p, policy.Namespace)
		})
	})
}

// made is true for a policy that was made for any split.
func made(policy *networkingv1.NetworkPolicy) bool {
	_, found := traffic.MadeFor(policy)
	return found
}

// proxy is what policies see of the split's proxies.
func (f Facts) proxy() Pod {
	p := Pod{Labels: map[string]string{traffic.LabelProxy: f.Split}}
	for _, l := range append([]Listener{f.Access.Port}, f.Listeners...) {
		p.Ports = append(p.Ports, corev1.ContainerPort{Name: l.Name, ContainerPort: l.Number, Protocol: l.Protocol})
	}
	return p
}

// services are the root Service and the backends.
func (f Facts) services() []Service { return append([]Service{f.Root}, f.Backends...) }

// any is true when something is true of a pod of the app.
func (f Facts) any(is func(Service, Pod) bool) bool {
	return slices.ContainsFunc(f.services(), func(s Service) bool {
		return slices.ContainsFunc(s.Pods, func(pod Pod) bool { return is(s, pod) })
	})
}

// target is the number of the port of a pod that stands behind a listener; 0 for none.
func (s Service) target(pod Pod, i int, protocol corev1.Protocol) int32 {
	t := s.Targets[i]
	if t.Type == intstr.Int {
		return t.IntVal
	}
	for _, p := range pod.Ports {
		if p.Name == t.StrVal && protocolOf(p.Protocol) == protocol {
			return p.ContainerPort
		}
	}
	return 0
}

func protocolOf(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}
