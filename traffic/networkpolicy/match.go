// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"
)

// matches is what a selector of the API says of labels. An invalid one, which the API server
// takes from no user, matches nothing.
func matches(selector *metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}

// isolates is true when a policy selects a pod of its own namespace for a direction.
func isolates(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod Pod) bool {
	return directed(policy, direction) && matches(&policy.Spec.PodSelector, pod.Labels)
}

// directed is true when a policy is about a direction. The API server fills the types in.
func directed(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(policy.Spec.PolicyTypes) > 0 {
		return slices.Contains(policy.Spec.PolicyTypes, direction)
	}
	return direction == networkingv1.PolicyTypeIngress || len(policy.Spec.Egress) > 0
}

// covers is true when the ports of a rule include a port of a pod.
func covers(ports []networkingv1.NetworkPolicyPort, pod Pod, number int32, protocol corev1.Protocol) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return has(p, pod, number, protocol)
	})
}

func has(p networkingv1.NetworkPolicyPort, pod Pod, number int32, protocol corev1.Protocol) bool {
	of := corev1.ProtocolTCP
	if p.Protocol != nil {
		of = *p.Protocol
	}
	switch {
	case of != protocol:
		return false
	case p.Port == nil:
		return true
	case p.Port.Type == intstr.String:
		return slices.ContainsFunc(pod.Ports, func(c corev1.ContainerPort) bool {
			return c.Name == p.Port.StrVal && c.ContainerPort == number && protocolOf(c.Protocol) == protocol
		})
	case p.EndPort != nil:
		return p.Port.IntVal <= number && number <= *p.EndPort
	}
	return p.Port.IntVal == number
}

// near is true for a peer among the pods of the split's namespace. One of a policy's own
// namespace needs no selector of namespaces.
func (f Facts) near(p networkingv1.NetworkPolicyPeer, from string) bool {
	if p.NamespaceSelector != nil {
		return matches(p.NamespaceSelector, f.NamespaceLabels)
	}
	return from == f.Namespace
}

// peer is true when the peers of a rule include a pod of the split's namespace.
func (f Facts) peer(peers []networkingv1.NetworkPolicyPeer, from string, pod Pod) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return slices.ContainsFunc(pod.Addresses, func(address string) bool { return within(p.IPBlock, address) })
		}
		return f.near(p, from) && (p.PodSelector == nil || matches(p.PodSelector, pod.Labels))
	})
}

// within is true for an address of a block.
func within(block *networkingv1.IPBlock, address string) bool {
	ip := netutils.ParseIPSloppy(address)
	in := func(cidr string) bool {
		_, network, err := netutils.ParseCIDRSloppy(cidr)
		return err == nil && network.Contains(ip)
	}
	return ip != nil && in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}
