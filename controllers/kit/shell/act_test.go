// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
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
