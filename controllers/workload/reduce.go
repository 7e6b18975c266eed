// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// reducedPrefix begins the name of a template that was reduced, which its digest follows. The
// API takes no such name, and the name of a pod template means nothing.
const reducedPrefix = "digest:"

// reduced is a ReplicaSet in a cache. An [appsv1.ReplicaSet] has room for a whole pod template,
// used or not, which is more than half of it.
type reduced struct {
	metav1.ObjectMeta

	replicas    *int32
	template    string // its name, which has the digest
	labels      map[string]string
	annotations map[string]string
	status      appsv1.ReplicaSetStatus
}

// GetObjectKind implements runtime.Object.
func (*reduced) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is the ReplicaSet, as readers of a cache are given it. What it points to is the
// cache's, which no reader of ReplicaSets changes: a namespace has many, and all are read at once.
func (r *reduced) DeepCopyObject() runtime.Object {
	rs := &appsv1.ReplicaSet{ObjectMeta: r.ObjectMeta, Status: r.status}
	rs.Spec.Replicas = r.replicas
	rs.Spec.Template.ObjectMeta = metav1.ObjectMeta{Name: r.template, Labels: r.labels, Annotations: r.annotations}
	return rs
}

// Reduce is what a cache keeps of a ReplicaSet: of its spec the scale, and of the template its
// labels, which contents of ConfigMaps its pods read, and a digest to compare it by. Only a copy
// of it is a ReplicaSet: a reader that asks the cache for no copy is given an error. A cluster has
// many times more old ReplicaSets than Deployments, so that texts which many of them have are kept
// once.
func Reduce(rs *appsv1.ReplicaSet) runtime.Object {
	t := &rs.Spec.Template
	r := &reduced{
		ObjectMeta: rs.ObjectMeta, replicas: rs.Spec.Replicas, template: reducedPrefix + TemplateDigest(t), status: rs.Status,
	}
	r.Namespace, r.Labels = unique.Make(rs.Namespace).Value(), interned(rs.Labels)
	r.labels = shared(t.Labels, r.Labels)
	if copies, found := t.Annotations[v1alpha1.AnnotationConfiguration]; found {
		r.annotations = map[string]string{v1alpha1.AnnotationConfiguration: copies}
	}
	for i := range r.OwnerReferences {
		o := &r.OwnerReferences[i]
		o.APIVersion, o.Kind, o.Name = unique.Make(o.APIVersion).Value(), unique.Make(o.Kind).Value(), unique.Make(o.Name).Value()
		o.UID = types.UID(unique.Make(string(o.UID)).Value())
	}
	return r
}

// interned is a map of texts that many objects have.
func interned(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[unique.Make(key).Value()] = unique.Make(value).Value()
	}
	return out
}

// shared is the second map where the first is equal to it.
func shared(m, known map[string]string) map[string]string {
	if maps.Equal(m, known) {
		return known
	}
	return interned(m)
}

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
			reduced = reducedPrefix + TemplateDigest(t)
		}
		return rs.Spec.Template.Name == reduced
	}
}
