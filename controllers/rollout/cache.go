// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/workload"
)

// CacheOptions limits what the manager keeps in memory of the kinds that this
// controller reads. What is dropped is never written back: of these kinds only
// patches are written, and statuses, with which the API server takes no metadata.
//
// Pod templates of Deployments stay whole: canaries are made of them. Of those of ReplicaSets
// a digest stays, by which they are compared.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {Transform: transformDeployment},
		&appsv1.ReplicaSet{}: {Transform: transformReplicaSet},
		&v1alpha1.Rollout{}:  {Transform: transformRollout},
	}
}

// transformContent keeps what distinguishes an object and a copy. Only their metadata are
// ever watched.
func transformContent(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.ManagedFields, o.Annotations = nil, nil
		if o.Labels[v1alpha1.LabelRole] != v1alpha1.RoleConfiguration {
			o.Labels = nil
		}
	}
	return object, nil
}

// transformDeployment keeps of the managed fields only those of Serin's managers,
// which say who paused a Deployment, and whether a router's own one has drifted, and of the status
// what is read.
func transformDeployment(object any) (any, error) {
	if d, ok := object.(*appsv1.Deployment); ok {
		own := slices.DeleteFunc(d.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
			return !strings.HasPrefix(m.Manager, "serin-")
		})
		d.ManagedFields = slices.Clone(own) // the previous array has room for all of them
		delete(d.Annotations, corev1.LastAppliedConfigAnnotation)
		d.Status = workload.ReduceStatus(d.Status)
	}
	return object, nil
}

// transformReplicaSet reduces a ReplicaSet, and drops the annotations that the Deployment
// controller copies from the Deployment, but for those that are read.
func transformReplicaSet(object any) (any, error) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok { // an informer may hand over what it has already
		return object, nil
	}
	rs.ManagedFields = nil
	kept := map[string]string{}
	for _, key := range []string{
		workload.AnnotationDesiredReplicas, v1alpha1.AnnotationRolloutUID, v1alpha1.AnnotationRejected,
		v1alpha1.AnnotationCanaryReleaseUID, v1alpha1.AnnotationCanaryWorkload, v1alpha1.AnnotationCanaryRolls,
	} {
		if value, found := rs.Annotations[key]; found {
			kept[key] = value
		}
	}
	if revision, found := rs.Annotations[workload.AnnotationRevision]; found && kept[v1alpha1.AnnotationCanaryWorkload] != "" {
		kept[workload.AnnotationRevision] = revision
	}
	rs.Annotations = sharedScale(kept)
	return workload.Reduce(rs), nil
}

// scales are the annotations of ReplicaSets that have none but the scale of their Deployment,
// by that scale: nearly all have.
var scales sync.Map

// sharedScale is one map for all ReplicaSets with the same scale and nothing else.
func sharedScale(kept map[string]string) map[string]string {
	scale, found := kept[workload.AnnotationDesiredReplicas]
	if n, err := strconv.ParseInt(scale, 10, 32); !found || len(kept) != 1 || err != nil || n > maxSharedScale || strconv.FormatInt(n, 10) != scale {
		return kept
	}
	known, _ := scales.LoadOrStore(scale, kept)
	return known.(map[string]string) //nolint:forcetypeassert // of what is stored above
}

// maxSharedScale bounds how many maps are kept for ever.
const maxSharedScale = 1000

func transformRollout(object any) (any, error) {
	if ro, ok := object.(*v1alpha1.Rollout); ok {
		ro.ManagedFields = nil
		delete(ro.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}
