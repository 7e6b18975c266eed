// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/traffic"
)

// Derive returns the policies that the proxies of a split need, or why none would do: each
// refusal names a policy and the remedy.
func Derive(f Facts) (policies []*networkingv1.NetworkPolicy, refusals []string) {
	if !f.any(func(Service, Pod) bool { return true }) {
		f.Root.Pods = []Pod{f.expected()}
	}
	f.Policies = slices.DeleteFunc(slices.Clone(f.Policies), func(p *networkingv1.NetworkPolicy) bool {
		return !f.Concerns(p)
	})
	guard, refusals := f.guard()
	clients, more := f.clients()
	if refusals = append(refusals, more...); len(refusals) > 0 {
		return nil, refusals
	}
	if guard != nil {
		policies = append(policies, guard)
	}
	return slices.Concat(policies, f.backends(), clients), nil
}

// expected is a pod of the root Service while there is none: what its selector and its
// ports say of it.
func (f Facts) expected() Pod {
	pod := Pod{Labels: f.Root.Selector}
	for i, l := range f.Listeners {
		if t := f.Root.Targets[i]; t.Type == intstr.String {
			pod.Ports = append(pod.Ports, corev1.ContainerPort{Name: t.StrVal, ContainerPort: l.Number, Protocol: l.Protocol})
		}
	}
	return pod
}

// policy is an empty one that is made for the split. Of what is meant tells it from others.
func (f Facts) policy(namespace, what string) *networkingv1.NetworkPolicy {
	name := traffic.ProxyName(f.Split)
	if what != "" {
		sum := sha256.Sum256([]byte(f.Namespace + "/" + what))
		name += "-" + hex.EncodeToString(sum[:5])
	}
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{
			traffic.LabelProxy: f.Split, traffic.LabelProxyNamespace: f.Namespace,
			"app.kubernetes.io/managed-by": "serin", "app.kubernetes.io/component": "proxy",
		},
	}}
}

// owned makes the garbage collector delete a policy with the last of those that isolate the
// pods which it selects: alone it would isolate them itself.
func owned(policy *networkingv1.NetworkPolicy, by ...*networkingv1.NetworkPolicy) {
	for _, owner := range by {
		policy.OwnerReferences = append(policy.OwnerReferences, metav1.OwnerReference{
			APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy", Name: owner.Name, UID: owner.UID,
		})
	}
}

// proxies selects those of a split.
func proxies(split string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{traffic.LabelProxy: split}}
}

// port is one of a rule.
func port(target intstr.IntOrString, protocol corev1.Protocol) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Port: &target, Protocol: &protocol}
}

func (l Listener) port() networkingv1.NetworkPolicyPort {
	return port(intstr.FromInt32(l.Number), l.Protocol)
}

// text of a value distinguishes it from others.
func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // no type of a policy fails
	}
	return string(encoded)
}
