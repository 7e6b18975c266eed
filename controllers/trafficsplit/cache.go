// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/traffic"
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
		&rbacv1.Role{}:                  {Label: proxies, Transform: whole},
		&rbacv1.RoleBinding{}:           {Label: proxies, Transform: whole},
		&policyv1.PodDisruptionBudget{}: {Label: proxies, Transform: whole},
		&corev1.Service{}:               {Transform: transformService},
		&discoveryv1.EndpointSlice{}:    {Transform: transformEndpointSlice},
	}
}

// whole keeps everything. It is there so that a default of the cache does not
// take the managed fields, by which routers tell drift.
func whole(object any) (any, error) { return object, nil }

// transformPod drops what nobody reads: of a pod's spec only the node stays.
func transformPod(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	}
	return object, nil
}

// transformService drops the copy that kubectl keeps of what it applied. Not of the
// Services of single versions, which the Rollout controller writes as a whole.
func transformService(object any) (any, error) {
	if service, ok := object.(*corev1.Service); ok {
		service.ManagedFields = nil
		if service.Labels[v1alpha1.LabelRollout] == "" {
			delete(service.Annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	return object, nil
}

// transformEndpointSlice keeps whose endpoints they are and whether they are
// ready. Of the addresses one stays, to tell endpoints that are no pods apart.
func transformEndpointSlice(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice.ManagedFields = nil
	slice.Annotations = nil
	slice.Ports = nil
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		kept := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: e.Conditions.Ready}}
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
