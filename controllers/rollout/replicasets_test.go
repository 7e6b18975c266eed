// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
)

// A ReplicaSet that changes hands while it is looked for is not taken for deleted: its release would
// be rolled back.
func TestAReplicaSetThatChangesHandsMeanwhileIsFound(t *testing.T) {
	owned := objects()[1].GetOwnerReferences()
	for change, owners := range map[string][2][]metav1.OwnerReference{"adopted": {nil, owned}, "released": {owned, nil}} {
		for before := range 3 {
			t.Run(fmt.Sprintf("%s before list %d", change, before+1), func(t *testing.T) {
				existing := objects()
				existing[1].SetOwnerReferences(owners[0])
				lists := 0
				var c client.Client
				r, c, _ := newReconcilerOf(t, func(call string) error {
					if call != "list ReplicaSetList" {
						return nil
					}
					lists++
					if lists != before+1 {
						return nil
					}
					rs := &appsv1.ReplicaSet{}
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(existing[1]), rs); err != nil {
						return err
					}
					rs.OwnerReferences = owners[1]
					return c.Update(t.Context(), rs)
				}, existing...)
				ro := &v1alpha1.Rollout{}
				if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
					t.Fatal(err)
				}
				s, err := r.observe(t.Context(), ro)
				if err != nil {
					t.Fatal(err)
				}
				if len(s.ReplicaSets) != 1 || !slices.Contains([]kit.Owner{kit.OwnerNone, kit.OwnerDeployment}, s.ReplicaSets[0].Owner) {
					t.Errorf("found %+v", s.ReplicaSets)
				}
			})
		}
	}
}

// A cache that does not follow shows no canary.
func TestACanaryThatTheCacheLacksIsNotTakenForDeleted(t *testing.T) {
	canary := objects()[1].(*appsv1.ReplicaSet)
	canary.Name, canary.UID, canary.OwnerReferences = "website-2", "canary", nil
	canary.Labels["pod-template-hash"], canary.Labels[v1alpha1.LabelRollout] = "2", "website"
	for name, test := range map[string]struct {
		live []client.Object
		want string
	}{
		"it is there":    {[]client.Object{canary}, `the cache lacks the ReplicaSet "website-2"`},
		"it was deleted": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, c, _ := newReconciler(t, func(string) error { return nil })
			_, live, _ := newReconcilerOf(t, func(string) error { return nil }, test.live...)
			r.options.Live = live
			ro := &v1alpha1.Rollout{}
			if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
				t.Fatal(err)
			}
			now := metav1.NewMicroTime(time.Unix(1e9, 0))
			ro.Status.Canary = &v1alpha1.VersionStatus{Revision: "2", StartedAt: &metav1.Time{Time: now.Time}}
			ro.Status.Step = &v1alpha1.StepStatus{Weight: 10, ProgrammedAt: &now}
			s, err := r.observe(t.Context(), ro)
			if s.Unreadable != test.want || (err != nil) != (test.want != "") {
				t.Errorf("unreadable %q: %v, want %q", s.Unreadable, err, test.want)
			}
		})
	}
}

// The cache of the operator may be behind the autoscaler that has scaled the Deployment.
func TestADeploymentThatWasScaledJustNowIsHandedNoCanary(t *testing.T) {
	r, c, writes := newReconciler(t, func(string) error { return nil })
	canary := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website-2", UID: "canary"}}
	if err := c.Create(t.Context(), canary); err != nil {
		t.Fatal(err)
	}
	scaled := objects()[0].(*appsv1.Deployment)
	scaled.Generation++
	_, r.options.Live, _ = newReconcilerOf(t, func(string) error { return nil }, scaled)
	s := snapshot{deployment: objects()[0].(*appsv1.Deployment)}
	s.Rollout = &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}}
	*writes = nil
	if err := r.apply(t.Context(), s, kit.ReleaseCanary{Object: shell.ObjectOf(canary)}); !apierrors.IsConflict(err) || len(*writes) > 0 {
		t.Errorf("%v, written: %v", err, *writes)
	}
	s.deployment = scaled
	if err := r.apply(t.Context(), s, kit.ReleaseCanary{Object: shell.ObjectOf(canary)}); err != nil || len(*writes) != 1 {
		t.Errorf("%v, written: %v", err, *writes)
	}
}
