// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"math/rand"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// randomTemplates are templates with all fields filled, of which some are empty.
func randomTemplates(seed int64) func() *corev1.PodTemplateSpec {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(runtime.NewScheme()))
	return func() *corev1.PodTemplateSpec {
		t := &corev1.PodTemplateSpec{}
		filler.Fill(t)
		t.ManagedFields = nil // a template has none
		return t
	}
}

func checkDigests(t *testing.T, what string, a, b *corev1.PodTemplateSpec) (same bool) {
	t.Helper()
	same = SameTemplate(a, b)
	if (TemplateDigest(a) == TemplateDigest(b)) != same {
		t.Errorf("%s: the same is %v, of digests %v", what, same, !same)
	}
	return same
}

// Every field of a template is taken from another one in turn.
func TestDigestsAreEqualForTheSameTemplates(t *testing.T) {
	next := randomTemplates(1)
	same, differs := 0, 0
	for range 10 {
		a, other := next(), next()
		checkDigests(t, "its copy", a, a.DeepCopy())
		for _, part := range []func(*corev1.PodTemplateSpec) reflect.Value{
			func(t *corev1.PodTemplateSpec) reflect.Value { return reflect.ValueOf(&t.ObjectMeta).Elem() },
			func(t *corev1.PodTemplateSpec) reflect.Value { return reflect.ValueOf(&t.Spec).Elem() },
			func(t *corev1.PodTemplateSpec) reflect.Value {
				if len(t.Spec.Containers) == 0 {
					t.Spec.Containers = []corev1.Container{{}}
				}
				return reflect.ValueOf(&t.Spec.Containers[0]).Elem()
			},
		} {
			for i := range part(a).NumField() {
				b := a.DeepCopy()
				part(b).Field(i).Set(part(other.DeepCopy()).Field(i))
				if checkDigests(t, part(a).Type().Field(i).Name, a, b) {
					same++
				} else {
					differs++
				}
			}
		}
	}
	if same == 0 || differs == 0 {
		t.Errorf("%d pairs are the same and %d differ: one of them was not tried", same, differs)
	}
}

func TestDigestsOfTemplatesThatAreWrittenInAnotherWay(t *testing.T) {
	with := func(change func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
		t := template("app:v1", map[string]string{"app": "website"})
		change(t)
		return t
	}
	memory := func(text string) *corev1.PodTemplateSpec {
		return with(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse(text)}
		})
	}
	for name, test := range map[string]struct {
		a, b *corev1.PodTemplateSpec
		same bool
	}{
		"quantities of one size":  {memory("1Gi"), memory("1024Mi"), true},
		"in decimals":             {memory("0.5"), memory("500m"), true},
		"of no size":              {memory("0"), memory("0Mi"), true},
		"and tenfold":             {memory("1"), memory("10"), false},
		"and negative":            {memory("1"), memory("-1"), false},
		"no map and an empty one": {with(func(*corev1.PodTemplateSpec) {}), with(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{} }), true},
		"a pointer to nothing":    {with(func(*corev1.PodTemplateSpec) {}), with(func(t *corev1.PodTemplateSpec) { t.Spec.SecurityContext = &corev1.PodSecurityContext{} }), false},
		"with a hash":             {with(func(*corev1.PodTemplateSpec) {}), with(func(t *corev1.PodTemplateSpec) { t.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "abc" }), true},
		"a word in two": {
			with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = []string{"ab"} }),
			with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = []string{"a", "b"} }), false,
		},
		"of another argument": {
			with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = []string{"a"} }),
			with(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Command = []string{"a"} }), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if same := checkDigests(t, name, test.a, test.b); same != test.same {
				t.Errorf("the same is %v, want %v", same, test.same)
			}
		})
	}
}

func TestAReplicaSetOfACacheIsComparedByItsDigest(t *testing.T) {
	whole := func() *appsv1.ReplicaSet {
		labels := func() map[string]string { return map[string]string{"app": "website", "pod-template-hash": "abc"} }
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "website-abc", Labels: labels(), Annotations: map[string]string{"team": "web"}}}
		rs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "website", UID: "d"}}
		rs.Spec.Replicas, rs.Status.AvailableReplicas = new(int32(3)), 2
		rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels()}
		rs.Spec.Template = *template("app:v1", labels())
		rs.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationConfiguration: "ConfigMap/app=app-1", "team": "web"}
		return rs
	}
	reduced, ok := Reduce(whole()).DeepCopyObject().(*appsv1.ReplicaSet)
	if !ok {
		t.Fatal("a copy is no ReplicaSet")
	}
	wanted := whole().Spec.Template
	changed := *wanted.DeepCopy()
	changed.Spec.Containers[0].Image = "app:v2"
	for _, rs := range []*appsv1.ReplicaSet{whole(), reduced} {
		if !HasTemplate(&wanted)(rs) || HasTemplate(&changed)(rs) || HasTemplate(&corev1.PodTemplateSpec{})(rs) {
			t.Errorf("it is compared wrongly: %+v", rs)
		}
	}
	want := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Name: nameOf(TemplateDigest(&wanted)), Labels: wanted.Labels, Annotations: map[string]string{v1alpha1.AnnotationConfiguration: "ConfigMap/app=app-1"},
	}}
	if diff := cmp.Diff(want, reduced.Spec.Template); diff != "" {
		t.Errorf("kept of the template (-want +got):\n%s", diff)
	}
	rest := whole()
	rest.Spec.Template, rest.Spec.Selector = reduced.Spec.Template, nil
	if diff := cmp.Diff(rest, reduced); diff != "" {
		t.Errorf("kept of the rest (-want +got):\n%s", diff)
	}
	forged := whole()
	forged.Spec.Template = changed
	forged.Spec.Template.Name = reduced.Spec.Template.Name
	if HasTemplate(&wanted)(forged) {
		t.Error("a name that a user wrote stands for the template")
	}
}

// Watchers are given what the cache keeps, and readers a copy of it.
func TestMetadataOfACachedReplicaSetAreThoseOfTheAPI(t *testing.T) {
	owner := func(uid types.UID, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "website", UID: uid, Controller: controller, BlockOwnerDeletion: controller}
	}
	hash := map[string]string{"app": "website", "pod-template-hash": "abc"}
	for name, change := range map[string]func(*appsv1.ReplicaSet){
		"no label and no owner":         func(*appsv1.ReplicaSet) {},
		"labels":                        func(rs *appsv1.ReplicaSet) { rs.Labels, rs.Spec.Template.Labels = hash, maps.Clone(hash) },
		"labels of the template alone":  func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Labels = hash },
		"other labels of the template":  func(rs *appsv1.ReplicaSet) { rs.Labels, rs.Spec.Template.Labels = hash, map[string]string{"app": "x"} },
		"a controller":                  func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = []metav1.OwnerReference{owner("a", new(true))} },
		"an owner that does not own it": func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = []metav1.OwnerReference{owner("a", new(false))} },
		"an owner that says nothing":    func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = []metav1.OwnerReference{owner("a", nil)} },
		"two owners": func(rs *appsv1.ReplicaSet) {
			rs.OwnerReferences = []metav1.OwnerReference{owner("a", new(true)), owner("b", nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "website-abc", Namespace: "shop", UID: "rs", ResourceVersion: "7"}}
			change(whole)
			kept := Reduce(whole.DeepCopy())
			watched, err := meta.Accessor(kept)
			if err != nil {
				t.Fatal(err)
			}
			copied, ok := kept.DeepCopyObject().(*appsv1.ReplicaSet)
			if !ok {
				t.Fatal("a copy is no ReplicaSet")
			}
			if diff := cmp.Diff(whole.Spec.Template.Labels, copied.Spec.Template.Labels); diff != "" {
				t.Errorf("labels of the template (-want +got):\n%s", diff)
			}
			for _, got := range []metav1.Object{watched, watched.(metav1.ObjectMetaAccessor).GetObjectMeta(), copied} {
				if diff := cmp.Diff(whole.Labels, got.GetLabels()); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(whole.OwnerReferences, got.GetOwnerReferences()); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(metav1.GetControllerOf(whole), metav1.GetControllerOf(got)); diff != "" {
					t.Errorf("controller (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestTextsQuantitiesAndMapsHaveOneDigest(t *testing.T) {
	of := func(name, image string) Digest {
		return TemplateDigest(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}})
	}
	if of("ab", "c") == of("a", "bc") {
		t.Error("a text that ends later makes no difference")
	}
	memory := func(amount string) *corev1.PodTemplateSpec {
		pod := template("app", nil)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
		return pod
	}
	if !checkDigests(t, "a quantity", memory("1Gi"), memory("1073741824")) {
		t.Error("the same quantity in another unit is another template")
	}
	labels := map[string]string{}
	for i := range 16 {
		labels[string(rune('a'+i))] = "x"
	}
	first := TemplateDigest(template("app", labels))
	for range 16 {
		if TemplateDigest(template("app", maps.Clone(labels))) != first {
			t.Fatal("the order of a map makes a difference")
		}
	}
}
