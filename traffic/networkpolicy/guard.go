// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// grant is who a rule lets reach a port: everyone when it names no peer.
type grant struct {
	peers []networkingv1.NetworkPolicyPeer
	// policy that has the rule; "" when no policy isolates the pod.
	policy string
}

// admission is who reaches a port of a pod, by the text of the peers.
type admission map[string]grant

// everyone is the text of a rule without peers.
const everyone = ""

func (a admission) open() bool { _, found := a[everyone]; return found }

// same is true when the same peers are named. What goes beyond everyone adds nothing.
func (a admission) same(b admission) bool {
	if a.open() || b.open() {
		return a.open() && b.open()
	}
	return maps.EqualFunc(a, b, func(grant, grant) bool { return true })
}

// textOf is the same for the same peers in any order.
func textOf(peers []networkingv1.NetworkPolicyPeer) string {
	if len(peers) == 0 {
		return everyone
	}
	var texts []string
	for _, p := range peers {
		texts = append(texts, text(p))
	}
	slices.Sort(texts)
	return text(slices.Compact(texts))
}

// isolation are the policies of users that isolate a pod of the split's namespace for a
// direction.
func (f Facts) isolation(pod Pod, direction networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	var found []*networkingv1.NetworkPolicy
	for _, p := range f.Policies {
		if p.Namespace == f.Namespace && !made(p) && isolates(p, direction, pod) {
			found = append(found, p)
		}
	}
	return found
}

// admission is who reaches a port of a pod by the policies of users.
func (f Facts) admission(pod Pod, number int32, protocol corev1.Protocol) admission {
	isolating := f.isolation(pod, networkingv1.PolicyTypeIngress)
	if len(isolating) == 0 {
		return admission{everyone: {}}
	}
	a := admission{}
	for _, p := range isolating {
		for _, rule := range p.Spec.Ingress {
			if covers(rule.Ports, pod, number, protocol) {
				a[textOf(rule.From)] = grant{rule.From, p.Name}
			}
		}
	}
	return a
}

// toApp is who reaches the app by each listener. Pods between which a policy distinguishes have
// no answer in common.
func (f Facts) toApp() (apps []admission, refusals []string) {
	for i, l := range f.Listeners {
		var common admission
		var of string
		f.any(func(s Service, pod Pod) bool {
			number := s.target(pod, i, l.Protocol)
			if number == 0 {
				return false
			}
			a := f.admission(pod, number, l.Protocol)
			if common == nil {
				common, of = a, s.Name
			}
			if !common.same(a) {
				refusals = append(refusals, fmt.Sprintf("the NetworkPolicies of namespace %q let different clients reach pods of Service %q and pods of Service %q, "+
					"but behind proxies both have the same clients; label both so that the same policies select them", f.Namespace, of, s.Name))
			}
			return false
		})
		if common == nil { // no pod has the port, so no pod reaches it by this one
			f.any(func(_ Service, pod Pod) bool { common = f.admission(pod, 0, l.Protocol); return true })
		}
		apps = append(apps, f.withProxies(common))
	}
	slices.Sort(refusals)
	return apps, slices.Compact(refusals)
}

// withProxies adds the proxies of other splits that send to the pods of this one.
func (f Facts) withProxies(clients admission) admission {
	if clients.open() {
		return clients
	}
	all := admission{}
	maps.Copy(all, clients)
	for _, p := range f.Policies {
		if p.Namespace != f.Namespace || !made(p) || !f.any(func(_ Service, pod Pod) bool { return isolates(p, networkingv1.PolicyTypeIngress, pod) }) {
			continue
		}
		for _, rule := range p.Spec.Ingress {
			all[textOf(rule.From)] = grant{rule.From, p.Name}
		}
	}
	return all
}

// guard is the policy of the proxies; nil when they need none.
func (f Facts) guard() (*networkingv1.NetworkPolicy, []string) {
	apps, refusals := f.toApp()
	if len(refusals) > 0 {
		return nil, refusals
	}
	proxy, policy := f.proxy(), f.policy(f.Namespace, "")
	policy.Spec.PodSelector = *proxies(f.Split)
	ingress := len(f.isolation(proxy, networkingv1.PolicyTypeIngress)) > 0
	guarded := slices.ContainsFunc(apps, func(a admission) bool { return !a.open() })
	if guarded || ingress || f.Access.Restrict {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		policy.Spec.Ingress = append(f.admit(apps), f.readers(ingress || f.Access.Restrict))
		if !guarded && !ingress {
			policy.Spec.Ingress = append(policy.Spec.Ingress, f.rest())
		}
	}
	if len(f.isolation(proxy, networkingv1.PolicyTypeEgress)) > 0 {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = append(f.toBackends(), f.toAPIServer())
	}
	if len(policy.Spec.PolicyTypes) == 0 {
		return nil, nil
	}
	return policy, f.widened(apps)
}

// widened refuses policies that let clients reach the proxies which the app keeps out.
func (f Facts) widened(apps []admission) (refusals []string) {
	proxy := f.proxy()
	for i, l := range f.Listeners {
		if apps[i].open() {
			continue
		}
		proxies := f.admission(proxy, l.Number, l.Protocol)
		for _, peers := range slices.Sorted(maps.Keys(proxies)) {
			if _, found := apps[i][peers]; !found && proxies[peers].policy != "" {
				refusals = append(refusals, fmt.Sprintf("NetworkPolicy %q selects the proxies, which have the label %s, and lets clients that may not reach the app reach them; "+
					"have it select no pods with that label", proxies[peers].policy, text(proxy.Labels)))
			}
		}
	}
	slices.Sort(refusals)
	return slices.Compact(refusals)
}

// admit lets the clients of the app reach the listeners.
func (f Facts) admit(apps []admission) []networkingv1.NetworkPolicyIngressRule {
	rules := map[string]*networkingv1.NetworkPolicyIngressRule{}
	for i, l := range f.Listeners {
		clients := apps[i]
		if clients.open() {
			clients = admission{everyone: {}}
		}
		for peers, g := range clients {
			if rules[peers] == nil {
				rules[peers] = &networkingv1.NetworkPolicyIngressRule{From: g.peers}
			}
			rules[peers].Ports = append(rules[peers].Ports, l.port())
		}
	}
	var out []networkingv1.NetworkPolicyIngressRule
	for _, peers := range slices.Sorted(maps.Keys(rules)) {
		out = append(out, *rules[peers])
	}
	return out
}

// readers lets the port of counters and confirmations be read: by everyone who could before,
// and only by those who have to where policies isolate the proxies.
func (f Facts) readers(only bool) networkingv1.NetworkPolicyIngressRule {
	rule := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{f.Access.Port.port()}}
	if only {
		rule.From = f.Access.Readers
	}
	return rule
}

// rest lets everyone reach every other port, for proxies that no policy of a user isolates: only
// that of counters is to be closed. A sidecar of Linkerd takes on a port of its own what is sent to
// a listener. Data planes that keep no account of older connections check their replies by port.
// The listeners are admitted by themselves, since not every data plane knows ranges.
func (f Facts) rest() networkingv1.NetworkPolicyIngressRule {
	span := func(first, last int32, protocol corev1.Protocol) networkingv1.NetworkPolicyPort {
		p := port(intstr.FromInt32(first), protocol)
		p.EndPort = &last
		return p
	}
	const last = 65535
	return networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{
		span(1, f.Access.Port.Number-1, corev1.ProtocolTCP), span(f.Access.Port.Number+1, last, corev1.ProtocolTCP),
		span(1, last, corev1.ProtocolUDP),
	}}
}

// toBackends lets proxies reach the pods that they send to.
func (f Facts) toBackends() []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, s := range f.Backends {
		rule := networkingv1.NetworkPolicyEgressRule{Ports: f.targets(s)}
		if len(rule.Ports) == 0 {
			continue
		}
		if len(s.Selector) > 0 { // else its endpoints are addresses that a user writes
			rule.To = []networkingv1.NetworkPolicyPeer{{PodSelector: selecting(f.group(s))}}
		}
		if s.Behind != "" {
			rule.To = append(rule.To, networkingv1.NetworkPolicyPeer{PodSelector: proxies(s.Behind)})
		}
		if !slices.ContainsFunc(rules, func(r networkingv1.NetworkPolicyEgressRule) bool { return text(r) == text(rule) }) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// toAPIServer lets proxies learn what they are to serve. They look no names up.
func (f Facts) toAPIServer() networkingv1.NetworkPolicyEgressRule {
	rule := networkingv1.NetworkPolicyEgressRule{To: f.Access.APIServer}
	for _, number := range f.Access.APIServerPorts {
		rule.Ports = append(rule.Ports, port(intstr.FromInt32(number), corev1.ProtocolTCP))
	}
	return rule
}
