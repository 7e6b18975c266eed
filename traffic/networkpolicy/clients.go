// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clients are the policies that let pods reach the proxies whose egress other policies limit to
// pods such as those of the app. Each selects what the other one selects.
//
// A policy of the split's own namespace that lets pods reach the proxies and not the app is
// refused. What one of another namespace has its pods do is that namespace's affair: it must
// not be able to prevent the split.
func (f Facts) clients() (policies []*networkingv1.NetworkPolicy, refusals []string) {
	proxy := f.proxy()
	for _, limit := range f.Policies {
		if !directed(limit, networkingv1.PolicyTypeEgress) {
			continue
		}
		var lacking []networkingv1.NetworkPolicyPort
		for i, l := range f.Listeners {
			app, proxies := f.appAllowed(limit, i), f.allowed(limit, proxy, l.Number, l.Protocol)
			switch {
			case app && !proxies:
				lacking = append(lacking, l.port())
			case proxies && !app && limit.Namespace == f.Namespace:
				refusals = append(refusals, fmt.Sprintf("NetworkPolicy %q lets pods send to the proxies, which have the label %s, but not to the pods of Service %q; "+
					"exclude pods with that label from the peers of its egress rules", limit.Name, text(proxy.Labels), f.Root.Name))
			}
		}
		if len(lacking) > 0 {
			policies = append(policies, f.letOut(limit, lacking))
		}
	}
	slices.Sort(refusals)
	return policies, slices.Compact(refusals)
}

// appAllowed is true when a policy lets pods send to one of the app by a listener's port.
func (f Facts) appAllowed(limit *networkingv1.NetworkPolicy, i int) bool {
	l := f.Listeners[i]
	return f.any(func(s Service, pod Pod) bool {
		number := s.target(pod, i, l.Protocol)
		return number != 0 && f.allowed(limit, pod, number, l.Protocol)
	})
}

// allowed is true when a policy lets pods send to a port of a pod of the split's namespace.
func (f Facts) allowed(limit *networkingv1.NetworkPolicy, pod Pod, number int32, protocol corev1.Protocol) bool {
	return slices.ContainsFunc(limit.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		return covers(rule.Ports, pod, number, protocol) && f.peer(rule.To, limit.Namespace, pod)
	})
}

// letOut lets the pods that a policy limits send to ports of the proxies.
func (f Facts) letOut(limit *networkingv1.NetworkPolicy, ports []networkingv1.NetworkPolicyPort) *networkingv1.NetworkPolicy {
	policy := f.policy(limit.Namespace, "clients/"+limit.Namespace+"/"+limit.Name)
	to := networkingv1.NetworkPolicyPeer{PodSelector: proxies(f.Split)}
	if limit.Namespace != f.Namespace {
		to.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace}}
	}
	policy.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: *limit.Spec.PodSelector.DeepCopy(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{to}, Ports: ports}},
	}
	owned(policy, limit)
	return policy
}
