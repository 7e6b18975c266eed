// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LabelProxyNamespace on a NetworkPolicy names the namespace of the split that it was made for,
// which may be another one than its own.
const LabelProxyNamespace = "serin.dev/proxy-namespace"

// IndexPolicies is the index of the cache that has NetworkPolicies by PolicyKeys, whatever their
// namespace. The TrafficSplit controller makes it for all routers.
const IndexPolicies = "trafficsplit.serin.dev/policies"

// PoliciesOfClients are the NetworkPolicies that say where pods may send to.
const PoliciesOfClients = "clients"

// PoliciesFor are the NetworkPolicies that were made for a split.
func PoliciesFor(split types.NamespacedName) string { return "split/" + split.String() }

// PolicyKeys are the keys of a NetworkPolicy in IndexPolicies.
func PolicyKeys(policy *networkingv1.NetworkPolicy) []string {
	var keys []string
	if split, found := MadeFor(policy.Labels); found {
		keys = append(keys, PoliciesFor(split))
	}
	if len(policy.Spec.Egress) > 0 {
		keys = append(keys, PoliciesOfClients)
	}
	return keys
}

// MadeFor is the split that a NetworkPolicy with these labels was made for.
func MadeFor(labels map[string]string) (split types.NamespacedName, found bool) {
	split = types.NamespacedName{Namespace: labels[LabelProxyNamespace], Name: labels[LabelProxy]}
	return split, split.Namespace != "" && split.Name != ""
}
