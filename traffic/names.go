// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Finalizer on a TrafficSplit lets its controller restore the root Service before the split
// is gone. Who makes a split for a router of the operator makes it with the finalizer, which
// saves the controller a write.
const Finalizer = "serin.dev/trafficsplit"

// FieldManager owns the fields that the controller of TrafficSplits and its routers write.
const FieldManager = "serin-trafficsplit"

// LabelProxy on an object says that it belongs to the proxy of the TrafficSplit
// that it names. As a key of a root Service's selector it keeps the pods of the app from being
// endpoints, which have no such label, so that the proxies alone are.
const LabelProxy = "serin.dev/proxy"

// ProxyName is the name of every object of a split's proxy. Its pods' names begin with it
// and a hyphen.
func ProxyName(split string) string { return "serin-proxy-" + split }

// SharedProxyName is the name of every object that the proxies of all splits of a namespace
// share. Its label LabelProxy is empty.
const SharedProxyName = "serin-proxy"

// IndexProxy is the index of the cache that has the pods and ReplicaSets of a split's proxies by
// the name of the split. The TrafficSplit controller makes it for all routers.
const IndexProxy = "trafficsplit.serin.dev/proxy-of"

// IndexEndpoints is the index of the cache that has EndpointSlices by the name of their Service.
const IndexEndpoints = "trafficsplit.serin.dev/service"

// unmatchedPrefix begins the names of these Services.
const unmatchedPrefix = "serin-unmatched-"

// UnmatchedName is the name of the Service for a split's requests that match none.
func UnmatchedName(split string) string {
	name := unmatchedPrefix + split
	if len(name) <= validation.DNS1035LabelMaxLength && !strings.Contains(name, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(split))
	return unmatchedPrefix + hex.EncodeToString(sum[:8])
}

// LabelProxyNamespace on a NetworkPolicy names the namespace of the split that it was made for,
// which may be another one than its own.
const LabelProxyNamespace = "serin.dev/proxy-namespace"

// IndexPolicies is the index of the cache that has NetworkPolicies by PolicyKeys, whatever their
// namespace. The TrafficSplit controller makes it for all routers.
const IndexPolicies = "trafficsplit.serin.dev/policies"

// PoliciesOfClients are the NetworkPolicies that say where pods may send to.
const PoliciesOfClients = "clients"

// PoliciesForAll are the NetworkPolicies that each split of their namespace may depend on.
const PoliciesForAll = "all"

// PoliciesFor are the NetworkPolicies that were made for a split.
func PoliciesFor(split types.NamespacedName) string { return "split/" + split.String() }

// PolicyKeys are the keys of a NetworkPolicy in IndexPolicies.
func PolicyKeys(policy *networkingv1.NetworkPolicy) []string {
	var keys []string
	if split, found := MadeFor(policy); found {
		keys = append(keys, PoliciesFor(split))
	}
	if len(policy.Spec.Egress) > 0 {
		keys = append(keys, PoliciesOfClients)
	}
	if !OfProxiesAlone(policy) {
		keys = append(keys, PoliciesForAll)
	}
	return keys
}

// OfProxiesAlone is true for a NetworkPolicy that was made for a split and says nothing but who
// reaches its proxies. No other split depends on it.
func OfProxiesAlone(policy *networkingv1.NetworkPolicy) bool {
	_, found := MadeFor(policy)
	_, proxies := policy.Spec.PodSelector.MatchLabels[LabelProxy]
	return found && proxies && !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
}

// MadeFor is the split that a NetworkPolicy was made for, by its labels. That of the proxies themselves
// is in their namespace, also where a backup was restored as another namespace than the label says.
func MadeFor(policy metav1.Object) (split types.NamespacedName, found bool) {
	labels := policy.GetLabels()
	split = types.NamespacedName{Namespace: labels[LabelProxyNamespace], Name: labels[LabelProxy]}
	if split.Namespace == "" || split.Name == "" {
		return types.NamespacedName{}, false
	}
	if policy.GetName() == ProxyName(split.Name) {
		split.Namespace = policy.GetNamespace()
	}
	return split, true
}

// Fields of a split beyond the specification, as messages name them.
const (
	FieldRouting        = "metadata.annotations[" + splitv1.AnnotationRouting + "]"
	FieldRouter         = FieldRouting + ".router"
	FieldDefaultBackend = FieldRouting + ".defaultBackend"
	FieldRoutes         = FieldRouting + ".routes"
	FieldMirror         = FieldRouting + ".mirror"
	FieldStickyCookie   = FieldRouting + ".stickyCookie"
	FieldPorts          = FieldRouting + ".ports"
	FieldProxyPods      = FieldRouting + ".proxyPods"
)
