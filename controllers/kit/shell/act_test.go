// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/workload"
)

// A version says that it was rejected from the write that takes its pods until it gets some again.
func TestARejectedReplicaSetSaysWhyUntilItIsScaledAgain(t *testing.T) {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website-2", Annotations: map[string]string{"theirs": "stays"}}}
	w := Writer{Client: fake.NewClientBuilder().WithObjects(rs).Build(), Namespace: "shop"}
	for _, step := range []struct {
		action kit.ScaleReplicaSet
		want   string
		found  bool
	}{
		{kit.ScaleReplicaSet{Replicas: 1}, "", false},
		{kit.ScaleReplicaSet{Rejected: "WorseThanStable: it fails"}, "WorseThanStable: it fails", true},
		{kit.ScaleReplicaSet{Replicas: 2}, "", false},
	} {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(rs), rs); err != nil {
			t.Fatal(err)
		}
		step.action.Object = ObjectOf(rs)
		if err := w.Apply(t.Context(), step.action); err != nil {
			t.Fatal(err)
		}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(rs), rs); err != nil {
			t.Fatal(err)
		}
		got, found := rs.Annotations[v1alpha1.AnnotationRejected]
		if got != step.want || found != step.found || *rs.Spec.Replicas != step.action.Replicas || rs.Annotations["theirs"] != "stays" {
			t.Errorf("after %+v: %d replicas, annotations %v", step.action, *rs.Spec.Replicas, rs.Annotations)
		}
		if ReplicaSets(nil)(rs).Rejected != step.want {
			t.Errorf("after %+v it is observed as %+v", step.action, ReplicaSets(nil)(rs))
		}
	}
}

// The cache may not show yet that the Deployment was scaled or changed, or that it is another one.
func TestACanaryIsHandedOverToTheDeploymentThatWasObserved(t *testing.T) {
	seen := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website", UID: "d", Generation: 3}}
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		refuse func(error) bool
	}{
		"as it was observed":                    {func(*appsv1.Deployment) {}, nil},
		"its controller has written its status": {func(d *appsv1.Deployment) { d.ResourceVersion = "9" }, nil},
		"scaled just now":                       {func(d *appsv1.Deployment) { d.Generation++ }, apierrors.IsConflict},
		"another of its name":                   {func(d *appsv1.Deployment) { d.UID = "e" }, apierrors.IsConflict},
		"deleted just now":                      {func(d *appsv1.Deployment) { d.Name = "other" }, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			now, rs := seen.DeepCopy(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "website-2", Labels: map[string]string{"app": "website"},
				OwnerReferences: []metav1.OwnerReference{workload.CanaryController(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "website", UID: "s"}})},
			}}
			test.change(now)
			w := Writer{Client: fake.NewClientBuilder().WithObjects(rs).Build(), Namespace: "shop"}
			read := func() {
				t.Helper()
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(rs), rs); err != nil {
					t.Fatal(err)
				}
			}
			read()
			err := w.HandOver(t.Context(), fake.NewClientBuilder().WithObjects(now).Build(), seen, kit.ReleaseCanary{Object: ObjectOf(rs), Promotion: "7"})
			read()
			if test.refuse != nil {
				if !test.refuse(err) || len(rs.OwnerReferences) != 1 || rs.Labels[v1alpha1.LabelPromotion] != "" {
					t.Errorf("%v: owners %v, labels %v", err, rs.OwnerReferences, rs.Labels)
				}
				return
			}
			if err != nil || len(rs.OwnerReferences) != 0 || rs.Labels[v1alpha1.LabelPromotion] != "7" || rs.Labels["app"] != "website" {
				t.Errorf("%v: owners %v, labels %v", err, rs.OwnerReferences, rs.Labels)
			}
		})
	}
}
