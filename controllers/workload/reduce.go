// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// reducedPrefix begins the name of a template that was reduced, which its digest follows. The
// API takes no such name, and the name of a pod template means nothing.
const reducedPrefix = "digest:"

// ReduceTemplate replaces the template of a ReplicaSet by what is read of it: its labels,
// which contents of ConfigMaps its pods read, and a digest to compare it by. A cluster has
// many times more old ReplicaSets than Deployments, so that texts which many of them have are
// kept once.
func ReduceTemplate(rs *appsv1.ReplicaSet) {
	t := &rs.Spec.Template
	rs.Namespace, rs.Labels = unique.Make(rs.Namespace).Value(), interned(rs.Labels)
	reduced := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: reducedPrefix + TemplateDigest(t), Labels: shared(t.Labels, rs.Labels)}}
	if copies, found := t.Annotations[v1alpha1.AnnotationConfiguration]; found {
		reduced.Annotations = map[string]string{v1alpha1.AnnotationConfiguration: copies}
	}
	rs.Spec.Template = reduced
	if s := rs.Spec.Selector; s != nil {
		s.MatchLabels = shared(s.MatchLabels, rs.Labels)
	}
	for i := range rs.OwnerReferences {
		o := &rs.OwnerReferences[i]
		o.APIVersion, o.Kind, o.Name = unique.Make(o.APIVersion).Value(), unique.Make(o.Kind).Value(), unique.Make(o.Name).Value()
		o.UID = types.UID(unique.Make(string(o.UID)).Value())
	}
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

// IsReduced reports whether a ReplicaSet has no more than a digest of its template. All of the
// API have containers.
func IsReduced(rs *appsv1.ReplicaSet) bool {
	return strings.HasPrefix(rs.Spec.Template.Name, reducedPrefix) && len(rs.Spec.Template.Spec.Containers) == 0
}

// HasTemplate reports whether the pods of ReplicaSets, of a cache or not, mean the same as
// those of a template. A Deployment has many old ReplicaSets: the digest of its template is
// made once, when the first of them needs it.
func HasTemplate(t *corev1.PodTemplateSpec) func(*appsv1.ReplicaSet) bool {
	reduced := ""
	return func(rs *appsv1.ReplicaSet) bool {
		if !IsReduced(rs) {
			return SameTemplate(&rs.Spec.Template, t)
		}
		if reduced == "" {
			reduced = reducedPrefix + TemplateDigest(t)
		}
		return rs.Spec.Template.Name == reduced
	}
}
