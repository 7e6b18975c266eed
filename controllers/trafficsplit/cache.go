// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"maps"
	"net/netip"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// CacheOptions limits what the manager keeps in memory of the kinds that this
// controller reads: of Pods and of the objects that belong to proxies only those
// with the label of a proxy, of the rest only the fields that are used.
//
// Deployments are the Rollout controller's to limit: it reads them all, and has
// to keep the managed fields of Serin's managers, by which routers tell drift.
func CacheOptions() map[client.Object]cache.ByObject {
	exists, err := labels.NewRequirement(traffic.LabelProxy, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	proxies := labels.NewSelector().Add(*exists)
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:                   {Label: proxies, Transform: transformPod},
		&corev1.ServiceAccount{}:        {Label: proxies, Transform: whole},
		&rbacv1.RoleBinding{}:           {Label: proxies, Transform: whole},
		&policyv1.PodDisruptionBudget{}: {Label: proxies, Transform: whole},
		&networkingv1.NetworkPolicy{}:   {Transform: transformPolicy},
		&corev1.Service{}:               {Transform: transformService},
		&discoveryv1.EndpointSlice{}:    {Transform: transformEndpointSlice},
		endpoints.Node():                {Transform: transformNode},

		&autoscalingv2.HorizontalPodAutoscaler{}: {Label: proxies, Transform: whole},
	}
}

// whole keeps everything. It is there so that a default of the cache does not
// take the managed fields, by which routers tell drift.
func whole(object any) (any, error) { return object, nil }

// transformPolicy keeps what the policies of proxies are derived from, and compared by.
func transformPolicy(object any) (any, error) {
	if policy, ok := object.(*networkingv1.NetworkPolicy); ok {
		policy.ManagedFields, policy.Annotations = nil, nil
	}
	return object, nil
}

// transformPod drops what no code reads: of a pod's spec only the node and the names of
// ports stay.
func transformPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	kept := corev1.PodSpec{NodeName: pod.Spec.NodeName}
	for _, c := range pod.Spec.Containers {
		kept.Containers = append(kept.Containers, corev1.Container{Ports: c.Ports})
	}
	pod.Spec = kept
	return object, nil
}

// transformNode keeps the labels of a node: where it is, and which pods select it. Of a
// whole node, which is not read for them, it keeps the addresses alone: those of its status,
// its networks of pods, and annotations that are one.
func transformNode(object any) (any, error) {
	switch node := object.(type) {
	case *metav1.PartialObjectMetadata:
		node.ManagedFields, node.Annotations = nil, nil
	case *corev1.Node:
		node.ManagedFields, node.Labels, node.Spec = nil, nil, corev1.NodeSpec{PodCIDRs: node.Spec.PodCIDRs}
		maps.DeleteFunc(node.Annotations, func(_, text string) bool { return !isAddress(text) })
		node.Status = corev1.NodeStatus{Addresses: node.Status.Addresses}
	}
	return object, nil
}

// isAddress is whether a text is an address, or one in its network.
func isAddress(text string) bool {
	text, _, _ = strings.Cut(text, "/")
	_, err := netip.ParseAddr(text)
	return err == nil
}

// transformService drops the copy that kubectl keeps of what it applied. Not of the
// Services of single versions, which other controllers write as a whole.
func transformService(object any) (any, error) {
	if service, ok := object.(*corev1.Service); ok {
		service.ManagedFields = nil
		if service.Labels[v1alpha1.LabelRollout] == "" && service.Labels[v1alpha1.LabelCanaryRelease] == "" {
			delete(service.Annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	return object, nil
}

// managedByKubernetes is who manages the EndpointSlices of Services with a selector.
const managedByKubernetes = "endpointslice-controller.k8s.io"

// restored reports whether a backup brought an EndpointSlice. Its endpoints are pods that are gone: Kubernetes
// has each Service own those that it makes for it, and deletes others of its own as soon as it sees them.
func restored(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == managedByKubernetes && metav1.GetControllerOfNoCopy(slice) == nil
}

// transformEndpointSlice keeps whose endpoints they are, whether they are ready, in
// which zone, and whether they have hints. Of the addresses one stays, to tell
// endpoints that are no pods apart. Those of proxies, which are written as a whole, it keeps. Of one that
// a backup brought it keeps no endpoints.
func transformEndpointSlice(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice.ManagedFields = nil
	if endpoints.Ours(slice) {
		return slice, nil
	}
	slice.Annotations = nil
	slice.Ports = nil
	if restored(slice) {
		slice.Endpoints = nil
	}
	zones := map[string]*string{} // of which there are few: endpoints share the names
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		kept := discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: workload.SharedBool(e.Conditions.Ready)},
			Zone:       sharedZone(zones, e.Zone), Hints: sharedHints(e.Hints),
		}
		switch {
		case e.TargetRef != nil:
			kept.TargetRef = &corev1.ObjectReference{Kind: e.TargetRef.Kind, Name: e.TargetRef.Name}
		case len(e.Addresses) > 0:
			kept.Addresses = e.Addresses[:1:1]
		}
		*e = kept
	}
	return slice, nil
}

// All endpoints of the cache share what no code changes. Of hints, only that
// there are some is kept: which they are, kube-proxy has to know.
var (
	zoneHint = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{}}}
	nodeHint = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{}}}
	bothHint = &discoveryv1.EndpointHints{ForZones: zoneHint.ForZones, ForNodes: nodeHint.ForNodes}
)

func sharedZone(known map[string]*string, zone *string) *string {
	if zone == nil {
		return nil
	}
	if known[*zone] == nil {
		known[*zone] = zone
	}
	return known[*zone]
}

func sharedHints(hints *discoveryv1.EndpointHints) *discoveryv1.EndpointHints {
	switch {
	case hints == nil || len(hints.ForZones)+len(hints.ForNodes) == 0:
		return nil
	case len(hints.ForNodes) == 0:
		return zoneHint
	case len(hints.ForZones) == 0:
		return nodeHint
	}
	return bothHint
}
