// SPDX-License-Identifier: Apache-2.0

package networkpolicy_test

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This is what the API says that NetworkPolicies mean, written down without what the package
// under test has of it.

type pod struct {
	namespace, name, address string
	labels                   map[string]string
	ports                    []corev1.ContainerPort
}

type world struct {
	namespaces map[string]map[string]string
	policies   []*networkingv1.NetworkPolicy
	// withoutRanges is true for a data plane that takes a range of ports for the first of them.
	withoutRanges bool
}

func (w world) with(more []*networkingv1.NetworkPolicy) world {
	w.policies = append(append([]*networkingv1.NetworkPolicy(nil), w.policies...), more...)
	return w
}

func chosen(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		panic(err)
	}
	return s.Matches(labels.Set(set))
}

func (w world) of(p pod, direction networkingv1.PolicyType) (found []*networkingv1.NetworkPolicy) {
	for _, policy := range w.policies {
		for _, t := range policy.Spec.PolicyTypes {
			if t == direction && policy.Namespace == p.namespace && chosen(&policy.Spec.PodSelector, p.labels) {
				found = append(found, policy)
			}
		}
	}
	return found
}

func (w world) isolated(p pod, direction networkingv1.PolicyType) bool {
	return len(w.of(p, direction)) > 0
}

// reaches is true when one pod may open a connection to a port of another.
func (w world) reaches(from, to pod, number int32) bool {
	return w.sends(from, to, number) && w.takes(to, from, number)
}

func (w world) sends(from, to pod, number int32) bool {
	limits := w.of(from, networkingv1.PolicyTypeEgress)
	for _, policy := range limits {
		for _, rule := range policy.Spec.Egress {
			if w.onPort(rule.Ports, to, corev1.ProtocolTCP, number) && w.amongPeers(rule.To, policy.Namespace, to) {
				return true
			}
		}
	}
	return len(limits) == 0
}

func (w world) takes(to, from pod, number int32) bool {
	return w.takesBy(corev1.ProtocolTCP, to, from, number)
}

func (w world) takesBy(protocol corev1.Protocol, to, from pod, number int32) bool {
	limits := w.of(to, networkingv1.PolicyTypeIngress)
	for _, policy := range limits {
		for _, rule := range policy.Spec.Ingress {
			if w.onPort(rule.Ports, to, protocol, number) && w.amongPeers(rule.From, policy.Namespace, from) {
				return true
			}
		}
	}
	return len(limits) == 0
}

func (w world) onPort(ports []networkingv1.NetworkPolicyPort, of pod, protocol corev1.Protocol, number int32) bool {
	for _, p := range ports {
		said := corev1.ProtocolTCP
		if p.Protocol != nil {
			said = *p.Protocol
		}
		switch {
		case said != protocol:
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			for _, c := range of.ports {
				if c.Name == p.Port.StrVal && c.ContainerPort == number {
					return true
				}
			}
		case p.Port.IntVal == number, p.EndPort != nil && !w.withoutRanges && p.Port.IntVal <= number && number <= *p.EndPort:
			return true
		}
	}
	return len(ports) == 0
}

func (w world) amongPeers(peers []networkingv1.NetworkPolicyPeer, home string, other pod) bool {
	for _, p := range peers {
		if p.IPBlock != nil {
			if netip.MustParsePrefix(p.IPBlock.CIDR).Contains(netip.MustParseAddr(other.address)) {
				return true
			}
			continue
		}
		here := other.namespace == home
		if p.NamespaceSelector != nil {
			here = chosen(p.NamespaceSelector, w.namespaces[other.namespace])
		}
		if here && (p.PodSelector == nil || chosen(p.PodSelector, other.labels)) {
			return true
		}
	}
	return len(peers) == 0
}
