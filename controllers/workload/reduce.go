// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// reducedPrefix begins the name of a template that was reduced, which its digest follows. The
// API takes no such name, and the name of a pod template means nothing.
const reducedPrefix = "digest:"

// reduced is a ReplicaSet in a cache. An [appsv1.ReplicaSet] has room for a whole pod template,
// used or not, which is more than half of it. The metadata are without the labels, and without
// the owner where there is one.
type reduced struct {
	metav1.ObjectMeta

	owner                  unique.Handle[metav1.OwnerReference]
	labels, templateLabels []label
	replicas               *int32
	template               Digest
	annotations            map[string]string // of the template
	status                 appsv1.ReplicaSetStatus
}

// label is one of a few: a map has room for eight at least.
type label struct{ key, value string }

// GetObjectKind implements runtime.Object.
func (*reduced) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r *reduced) GetObjectMeta() metav1.Object { return r }

// GetLabels makes those of the ReplicaSet.
func (r *reduced) GetLabels() map[string]string { return made(r.labels) }

// GetOwnerReferences makes those of the ReplicaSet.
func (r *reduced) GetOwnerReferences() []metav1.OwnerReference {
	if r.owner == (unique.Handle[metav1.OwnerReference]{}) {
		return r.OwnerReferences
	}
	return []metav1.OwnerReference{r.owner.Value()}
}

// DeepCopyObject is the ReplicaSet, as readers of a cache are given it. What it points to is the
// cache's, which no reader of ReplicaSets changes: a namespace has many, and all are read at once.
func (r *reduced) DeepCopyObject() runtime.Object {
	rs := &appsv1.ReplicaSet{ObjectMeta: r.ObjectMeta, Status: r.status}
	rs.Labels, rs.OwnerReferences = r.GetLabels(), r.GetOwnerReferences()
	rs.Spec.Replicas = r.replicas
	rs.Spec.Template.ObjectMeta = metav1.ObjectMeta{Name: nameOf(r.template), Labels: rs.Labels, Annotations: r.annotations}
	if !slices.Equal(r.labels, r.templateLabels) {
		rs.Spec.Template.Labels = made(r.templateLabels)
	}
	return rs
}

// Reduce is what a cache keeps of a ReplicaSet: of its spec the scale, of its status the pods that
// there are and why others can't be made, and of the template its labels, which contents of ConfigMaps
// its pods read, and a digest to compare it by. Only a copy of it is a ReplicaSet: a reader that asks
// the cache for no copy is given an error. A cluster has many times more old ReplicaSets than
// Deployments, so that texts which many of them have are kept once.
func Reduce(rs *appsv1.ReplicaSet) runtime.Object {
	t := &rs.Spec.Template
	r := &reduced{ObjectMeta: rs.ObjectMeta, replicas: rs.Spec.Replicas, template: TemplateDigest(t), status: reduceStatus(rs.Status)}
	r.Namespace, r.Labels = unique.Make(rs.Namespace).Value(), nil
	r.labels, r.templateLabels = interned(rs.Labels), interned(t.Labels)
	if slices.Equal(r.labels, r.templateLabels) {
		r.templateLabels = r.labels
	}
	if copies, found := t.Annotations[v1alpha1.AnnotationConfiguration]; found {
		r.annotations = map[string]string{v1alpha1.AnnotationConfiguration: copies}
	}
	if len(rs.OwnerReferences) == 1 {
		owner := rs.OwnerReferences[0]
		owner.Controller, owner.BlockOwnerDeletion = SharedBool(owner.Controller), SharedBool(owner.BlockOwnerDeletion)
		r.owner, r.OwnerReferences = unique.Make(owner), nil
	}
	return r
}

// interned are texts that many objects have, in order.
func interned(m map[string]string) []label {
	out := make([]label, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, label{unique.Make(key).Value(), unique.Make(m[key]).Value()})
	}
	return out
}

// made is the map of labels.
func made(labels []label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	out := make(map[string]string, len(labels))
	for _, l := range labels {
		out[l.key] = l.value
	}
	return out
}

var isTrue, isFalse = true, false

// SharedBool is the same for equal values, so that objects of a cache take less memory, and owners
// with them are equal. No code may change what it points to.
func SharedBool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &isTrue
	}
	return &isFalse
}

// nameOf is the name of a template that was reduced.
func nameOf(d Digest) string { return reducedPrefix + base64.RawStdEncoding.EncodeToString(d[:]) }

// isReduced reports whether a ReplicaSet has no more than a digest of its template. All of the
// API have containers.
func isReduced(rs *appsv1.ReplicaSet) bool {
	return strings.HasPrefix(rs.Spec.Template.Name, reducedPrefix) && len(rs.Spec.Template.Spec.Containers) == 0
}

// HasTemplate reports whether the pods of ReplicaSets, of a cache or not, mean the same as
// those of a template. A Deployment has many old ReplicaSets: the digest of its template is
// made once, when the first of them needs it.
func HasTemplate(t *corev1.PodTemplateSpec) func(*appsv1.ReplicaSet) bool {
	reduced := ""
	return func(rs *appsv1.ReplicaSet) bool {
		if !isReduced(rs) {
			return SameTemplate(&rs.Spec.Template, t)
		}
		if reduced == "" {
			reduced = nameOf(TemplateDigest(t))
		}
		return rs.Spec.Template.Name == reduced
	}
}
