// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/workload"
)

func TestTheCacheKeepsWhatIsUsed(t *testing.T) {
	meta := func(annotations ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: "website", Labels: map[string]string{"app": "website"}, Annotations: map[string]string{}}
		for _, a := range annotations {
			m.Annotations[a] = "x"
		}
		return m
	}
	managed := func(managers ...string) (out []metav1.ManagedFieldsEntry) {
		for _, m := range managers {
			out = append(out, metav1.ManagedFieldsEntry{Manager: m})
		}
		return out
	}
	with := func(m metav1.ObjectMeta, managers ...string) metav1.ObjectMeta {
		m.ManagedFields = managed(managers...)
		return m
	}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
	const applied = corev1.LastAppliedConfigAnnotation
	for name, test := range map[string]struct {
		object client.Object
		want   runtime.Object
	}{
		"of a Deployment the template, and what Serin's managers own": {
			object: &appsv1.Deployment{
				ObjectMeta: with(meta(applied, v1alpha1.AnnotationRollout, "team"), "kubectl", v1alpha1.FieldManager, "serin-trafficsplit", "kube-controller-manager"),
				Spec:       appsv1.DeploymentSpec{Template: template},
			},
			want: &appsv1.Deployment{
				ObjectMeta: with(meta(v1alpha1.AnnotationRollout, "team"), v1alpha1.FieldManager, "serin-trafficsplit"),
				Spec:       appsv1.DeploymentSpec{Template: template},
			},
		},
		"of a ReplicaSet what the template is compared by, and the annotations that are read": {
			object: &appsv1.ReplicaSet{
				ObjectMeta: with(meta(workload.AnnotationDesiredReplicas, v1alpha1.AnnotationRolloutUID, v1alpha1.AnnotationRejected, "team", workload.AnnotationRevision), v1alpha1.FieldManager),
				Spec:       appsv1.ReplicaSetSpec{Template: template},
			},
			want: workload.Reduce(&appsv1.ReplicaSet{
				ObjectMeta: meta(workload.AnnotationDesiredReplicas, v1alpha1.AnnotationRolloutUID, v1alpha1.AnnotationRejected),
				Spec:       appsv1.ReplicaSetSpec{Template: template},
			}).DeepCopyObject(),
		},
		"of a canary's ReplicaSet also whether the Deployment had its template": {
			object: &appsv1.ReplicaSet{
				ObjectMeta: meta(v1alpha1.AnnotationCanaryWorkload, workload.AnnotationRevision, "team"),
				Spec:       appsv1.ReplicaSetSpec{Template: template},
			},
			want: workload.Reduce(&appsv1.ReplicaSet{
				ObjectMeta: meta(v1alpha1.AnnotationCanaryWorkload, workload.AnnotationRevision),
				Spec:       appsv1.ReplicaSetSpec{Template: template},
			}).DeepCopyObject(),
		},
		"of a Rollout all but the copy of kubectl": {
			object: &v1alpha1.Rollout{ObjectMeta: with(meta(applied, "team"), "kubectl"), Spec: v1alpha1.RolloutSpec{Service: "website"}},
			want:   &v1alpha1.Rollout{ObjectMeta: meta("team"), Spec: v1alpha1.RolloutSpec{Service: "website"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := transform(t, test.object).(client.Object)
			if !ok {
				t.Fatal("watchers are given no object")
			}
			if diff := cmp.Diff(test.object.GetLabels(), got.GetLabels()); diff != "" {
				t.Errorf("labels for watchers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got.DeepCopyObject()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// An informer may hand over an object that it has already.
func TestAReducedReplicaSetStaysAsItIs(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
	once := transform(t, &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: *template.DeepCopy()}})
	again, err := transformReplicaSet(once)
	if err != nil || again != once {
		t.Fatalf("%v, %v", again, err)
	}
	if rs, ok := once.(client.Object).DeepCopyObject().(*appsv1.ReplicaSet); !ok || !workload.HasTemplate(&template)(rs) {
		t.Errorf("it has another template: %+v", rs)
	}
}

// transform applies the options for the kind of an object.
func transform(t *testing.T, o client.Object) any {
	t.Helper()
	for kind, options := range CacheOptions() {
		if reflect.TypeOf(kind) == reflect.TypeOf(o) {
			got, err := options.Transform(o)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
	}
	t.Fatalf("no options for %T", o)
	return nil
}

func TestATombstonePassesTheTransforms(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/website"}
	for object, options := range CacheOptions() {
		if got, err := options.Transform(tombstone); err != nil || got != tombstone {
			t.Errorf("%T: %v, error %v", object, got, err)
		}
	}
}
