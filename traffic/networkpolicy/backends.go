// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// group is what selects the pods of a backend, and as few other pods as can be said for a
// whole release: the selector of the root Service where the backend's narrows it.
func (f Facts) group(s Service) map[string]string {
	root := f.Root.Selector
	for key, value := range root {
		if s.Selector[key] != value {
			return s.Selector
		}
	}
	if len(root) == 0 {
		return s.Selector
	}
	return root
}

func selecting(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
}

// targets are the ports of a backend's pods.
func (f Facts) targets(s Service) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for i, target := range s.Targets {
		p := port(target, f.Listeners[i].Protocol)
		same := func(o networkingv1.NetworkPolicyPort) bool { return text(o) == text(p) }
		if target != (intstr.IntOrString{}) && !slices.ContainsFunc(ports, same) {
			ports = append(ports, p)
		}
	}
	return ports
}

// backends are the policies that let the proxies reach pods of the app which other policies
// isolate for ingress.
func (f Facts) backends() []*networkingv1.NetworkPolicy {
	policies := map[string]*networkingv1.NetworkPolicy{}
	for _, s := range f.Backends {
		if len(s.Selector) == 0 || len(f.targets(s)) == 0 {
			continue
		}
		for _, pod := range s.Pods {
			if f.closed(s, pod) {
				f.letIn(policies, s, f.isolation(pod, networkingv1.PolicyTypeIngress))
			}
		}
	}
	var out []*networkingv1.NetworkPolicy
	for _, key := range slices.Sorted(maps.Keys(policies)) {
		out = append(out, policies[key])
	}
	return out
}

// closed is true when a pod keeps the proxies out of a port that they send to.
func (f Facts) closed(s Service, pod Pod) bool {
	for i, l := range f.Listeners {
		number := s.target(pod, i, l.Protocol)
		if number != 0 && !f.admits(pod, number, i) {
			return true
		}
	}
	return false
}

// admits is true when the policies of users let the proxies reach a port of a pod.
func (f Facts) admits(pod Pod, number int32, i int) bool {
	proxy := f.proxy()
	for _, g := range f.admission(pod, number, f.Listeners[i].Protocol) {
		if f.peer(g.peers, f.Namespace, proxy) {
			return true
		}
	}
	return false
}

// letIn makes the policies for a pod of a backend that others isolate: one that selects the
// whole group when each pod of it is isolated, whatever other labels it has, and else one for
// each isolating policy, of the pods that both select.
func (f Facts) letIn(policies map[string]*networkingv1.NetworkPolicy, s Service, isolating []*networkingv1.NetworkPolicy) {
	group := f.group(s)
	sure := slices.DeleteFunc(slices.Clone(isolating), func(p *networkingv1.NetworkPolicy) bool {
		return !implied(&p.Spec.PodSelector, group)
	})
	if len(sure) > 0 {
		f.letInto(policies, s, *selecting(group), sure...)
		return
	}
	for _, p := range isolating {
		both := *p.Spec.PodSelector.DeepCopy()
		both.MatchLabels = maps.Clone(group)
		maps.Copy(both.MatchLabels, p.Spec.PodSelector.MatchLabels) // the pod has all of them
		f.letInto(policies, s, both, p)
	}
}

func (f Facts) letInto(policies map[string]*networkingv1.NetworkPolicy, s Service, selector metav1.LabelSelector, owners ...*networkingv1.NetworkPolicy) {
	key := "backends/" + text(selector)
	policy := policies[key]
	if policy == nil {
		policy = f.policy(f.Namespace, key)
		policy.Spec = networkingv1.NetworkPolicySpec{
			PodSelector: selector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: proxies(f.Split)}}}},
		}
		policies[key] = policy
	}
	rule := &policy.Spec.Ingress[0]
	for _, p := range f.targets(s) {
		if !slices.ContainsFunc(rule.Ports, func(o networkingv1.NetworkPolicyPort) bool { return text(o) == text(p) }) {
			rule.Ports = append(rule.Ports, p)
		}
	}
	for _, owner := range owners {
		if !slices.ContainsFunc(policy.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
			owned(policy, owner)
		}
	}
}

// implied is true when a selector matches each pod that has some labels, whatever others it has.
func implied(selector *metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	requirements, _ := s.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		_, known := of[r.Key()]
		return !known || !r.Matches(labels.Set(of))
	})
}
