// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/shell"
)

// backup are the objects of a release as they come back: the Deployment controls the canary, and
// the Rollout is another one of its name.
func backup() (again *v1alpha1.Rollout, all []client.Object) {
	ro, all := released()
	d := all[0].(*appsv1.Deployment)
	d.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3}
	for _, o := range all {
		if rs, ok := o.(*appsv1.ReplicaSet); ok {
			rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		}
		if split, ok := o.(*splitv1.TrafficSplit); ok {
			split.Status = splitv1.TrafficSplitStatus{}
		}
	}
	again = ro.DeepCopy()
	again.UID = "again"
	return again, without(all, ro)
}

func TestACanaryThatABackupBroughtBackLosesItsPodsAndStableKeepsThem(t *testing.T) {
	again, all := backup()
	r, c, _ := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
	for range 20 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if d := deploymentOf(t, c); !d.Spec.Paused {
			t.Fatal("the new version is rolled out")
		}
		move(t, c)
		if ro := rolloutOf(t, c); ro.Status.Stable != nil {
			break
		}
	}
	if ro := rolloutOf(t, c); ro.Status.Stable == nil || ro.Status.Stable.Revision != "1" {
		t.Errorf("stable is %+v", ro.Status.Stable)
	}
	sets := &appsv1.ReplicaSetList{}
	if err := c.List(t.Context(), sets); err != nil {
		t.Fatal(err)
	}
	for _, rs := range sets.Items {
		if want := map[string]int32{"website-1": 2, "website-2": 0}[rs.Name]; *rs.Spec.Replicas != want {
			t.Errorf("%s has %d replicas, want %d", rs.Name, *rs.Spec.Replicas, want)
		}
	}
}

func TestWhatABackupBringsBackLateIsRestoredToo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.Rollout, []client.Object)
		want   bool
	}{
		"between releases": {func(*v1alpha1.Rollout, []client.Object) {}, true},
		"in the middle of a release": {func(ro *v1alpha1.Rollout, _ []client.Object) {
			ro.Status.Weight = &v1alpha1.WeightStatus{}
		}, false},
		"of the same Rollout": {func(ro *v1alpha1.Rollout, _ []client.Object) { ro.UID = "ro" }, false},
		"of another Rollout": {func(_ *v1alpha1.Rollout, all []client.Object) {
			for _, o := range all {
				o.SetLabels(map[string]string{v1alpha1.LabelRollout: "shop"})
			}
		}, false},
		"of a user": {func(_ *v1alpha1.Rollout, all []client.Object) {
			for _, o := range all {
				o.SetAnnotations(nil)
			}
		}, false},
	} {
		again, all := backup()
		again.Status.Stable = &v1alpha1.VersionStatus{Revision: "1"}
		test.change(again, all)
		r, _, _ := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
		s, err := r.observe(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.leftEarlier(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	again, all := backup()
	again.Status.Stable = &v1alpha1.VersionStatus{Revision: "1"}
	r, c, _ := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
	for range 10 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		move(t, c)
	}
	split := &splitv1.TrafficSplit{}
	if err := c.Get(t.Context(), request.NamespacedName, split); err == nil && split.Annotations[v1alpha1.AnnotationRolloutUID] != "again" {
		t.Errorf("the split of the backup is still there")
	}
}

// What is restored last is the split, at which the Deployment may be restored already, and the
// version that is stable now carries the marks of the earlier Rollout's canary.
func TestAVersionThatADeploymentAdoptedLosesNoPodForASplitThatABackupBringsBackLate(t *testing.T) {
	again, all := backup()
	again.Status.Stable = &v1alpha1.VersionStatus{Revision: "2"}
	d, v1 := all[0].(*appsv1.Deployment), all[1].(*appsv1.ReplicaSet)
	d.Annotations, d.Spec.Paused, v1.Spec.Replicas = nil, false, new(int32(0))
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
	settled(t, r, c, writes)
	split, v2 := &splitv1.TrafficSplit{}, &appsv1.ReplicaSet{}
	if err := c.Get(t.Context(), request.NamespacedName, split); err == nil {
		t.Error("the split of the backup is still there")
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "website-2"}, v2); err != nil || *v2.Spec.Replicas != 1 {
		t.Errorf("the stable version: error %v, replicas %v", err, v2.Spec.Replicas)
	}
}

// A backup brings a CanaryRelease back before its Rollout, and without a status. That it was adopted for
// its Rollout is known by what that decided.
func TestWhatARolloutDecidedOfACanaryReleaseStaysUntilThatKnowsItsContent(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.CanaryRelease)
		stays  bool
	}{
		"nothing is known":             {func(cr *v1alpha1.CanaryRelease) { cr.Status = v1alpha1.CanaryReleaseStatus{} }, true},
		"Helm's records can't be read": {func(cr *v1alpha1.CanaryRelease) { cr.Status = v1alpha1.CanaryReleaseStatus{ObservedGeneration: 3} }, true},
		"it is served":                 {func(cr *v1alpha1.CanaryRelease) { cr.Spec.Delegation.Transition = "" }, false},
		"it has ended": {func(cr *v1alpha1.CanaryRelease) {
			now := metav1.NowMicro()
			cr.Status = v1alpha1.CanaryReleaseStatus{ObservedGeneration: 3, Decision: &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionAdopted, Time: now, EndedAt: &now}}
		}, false},
	} {
		cr := canary(0)
		cr.Spec.Delegation.Transition = v1alpha1.CanaryTransitionAdopted
		test.change(cr)
		r, _, writes := newReconcilerOf(t, func(string) error { return nil }, objects()[2], cr)
		r.options.CanaryReleases = true
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if stays := len(*writes) == 0; stays != test.stays {
			t.Errorf("%s: it writes %v", name, *writes)
		}
	}
}

func TestADeploymentIsRestoredOnlyWhenItsControllerHasSeenIt(t *testing.T) {
	_, all := backup()
	d := all[0].(*appsv1.Deployment)
	d.Generation = 1
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, all[0])
	for observed, want := range []bool{false, true} {
		d := deploymentOf(t, c)
		d.Status.ObservedGeneration = int64(observed)
		if err := c.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		settled(t, r, c, writes)
		if _, marked := deploymentOf(t, c).Annotations[v1alpha1.AnnotationRollout]; marked == want {
			t.Errorf("observed generation %d: marked %v", observed, marked)
		}
	}
}

func TestNothingIsRestoredWhileTheCacheDoesNotShowTheNewRolloutYet(t *testing.T) {
	again, all := backup()
	r, _, writes := newReconcilerOf(t, func(string) error { return nil }, all...)
	r.options.Live = readerFunc(func(out *v1alpha1.Rollout) error { again.DeepCopyInto(out); return nil })
	if _, err := r.Reconcile(t.Context(), request); err != nil || len(*writes) > 0 {
		t.Errorf("error %v, written %v", err, *writes)
	}
}

func TestAVersionThatIsMadeTheCanaryAgainIsNotPromotedYet(t *testing.T) {
	again, all := backup()
	rs := all[1].(*appsv1.ReplicaSet)
	rs.Labels[v1alpha1.LabelRollout], rs.Labels[v1alpha1.LabelPromotion] = again.Name, "1"
	r, c, _ := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
	unpromoted := func() bool {
		s, err := r.observe(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range s.ReplicaSets {
			if v.Name == rs.Name {
				return v.Unpromoted
			}
		}
		t.Fatal("it is not observed")
		return false
	}
	if unpromoted() {
		t.Error("one that was promoted is not")
	}
	s, err := r.observe(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	live := &appsv1.ReplicaSet{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}, live); err != nil {
		t.Fatal(err)
	}
	if err := r.claim(t.Context(), s, shell.ObjectOf(live)); err != nil {
		t.Fatal(err)
	}
	if !unpromoted() {
		t.Error("the promotion of an earlier release counts")
	}
}
