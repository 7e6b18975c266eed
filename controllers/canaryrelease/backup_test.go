// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/workload"
)

// restore brings a CanaryRelease back as Velero does it, in the place of the one that there is.
func (c *cluster) restore(change func(*v1alpha1.CanaryRelease)) {
	c.Helper()
	again := c.canaryRelease().DeepCopy()
	c.force()
	again.UID, again.ResourceVersion, again.Status = "again", "", v1alpha1.CanaryReleaseStatus{}
	change(again)
	c.must(c.Create(c.Context(), again))
}

func asItWas(*v1alpha1.CanaryRelease) {}

func TestASplitOfABackupThatComesLateIsRemovedToo(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	late := &splitv1.TrafficSplit{}
	c.must(c.Get(t.Context(), key("web"), late))
	c.force()
	c.run(15)
	c.must(c.Create(t.Context(), restored()))
	for c.canaryRelease().Status.Release == nil {
		c.run(1)
	}
	if err := c.Get(t.Context(), key("web"), &splitv1.TrafficSplit{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("it has a split already: %v", err)
	}
	late.UID, late.ResourceVersion, late.Status = "late", "", splitv1.TrafficSplitStatus{}
	c.must(c.Create(t.Context(), late))
	c.run(30)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
}

// What a backup brings after the CanaryRelease has ended goes too, and a Deployment that is held is left
// to the one that holds it.
func TestWhatABackupBringsBackAfterTheEndIsRemovedToo(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	late := &splitv1.TrafficSplit{}
	c.must(c.Get(t.Context(), key("web"), late))
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.runToEnd()
	c.restore(asItWas)
	c.runToEnd()
	held := applyappsv1.Deployment("web", "shop").WithSpec(applyappsv1.DeploymentSpec().WithPaused(true))
	c.must(c.r.client.Apply(t.Context(), held, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease), client.ForceOwnership))
	late.UID, late.ResourceVersion, late.Status = "late", "", splitv1.TrafficSplitStatus{}
	c.must(c.Create(t.Context(), late))
	c.run(5)
	if err := c.Get(t.Context(), key("web"), late); !apierrors.IsNotFound(err) {
		t.Errorf("the split of the backup is still there: %v", err)
	}
	d := &appsv1.Deployment{}
	if c.must(c.Get(t.Context(), key("web"), d)); !d.Spec.Paused {
		t.Error("the Deployment is not held any more")
	}
}

// restored is the CanaryRelease of the fixture as it comes back.
func restored() *v1alpha1.CanaryRelease {
	all := objects()
	cr := all[len(all)-1].(*v1alpha1.CanaryRelease)
	cr.UID = "again"
	return cr
}

// The account of the namespace has its rights back after the ConfigMaps and Secrets, and maybe after all
// else that is left was removed.
func TestCopiesOfABackupAreRemovedWhenTheAccountMayListThem(t *testing.T) {
	for name, restoredFirst := range map[string]bool{"the rest is removed first": false, "the CanaryRelease is restored first": true} {
		c := newCluster(t)
		c.helm.copies = true
		c.run(12)
		c.denied = "list v1.PartialObjectMetadataList"
		c.force()
		if restoredFirst {
			c.helm.unreadable = releases.InvalidError{Field: "spec.release", Message: "ServiceAccount serin-canary of namespace shop may not list secrets"}
			c.must(c.Create(t.Context(), restored()))
		}
		c.run(15)
		secrets := func() (owners []string) {
			list := &corev1.SecretList{}
			c.must(c.List(t.Context(), list))
			for i := range list.Items {
				owners = append(owners, list.Items[i].Annotations[v1alpha1.AnnotationCanaryReleaseUID])
			}
			return owners
		}
		if got := secrets(); len(got) != 1 || got[0] != "cr" {
			t.Fatalf("%s: without rights there are copies of %v", name, got)
		}
		if !restoredFirst {
			c.must(c.Create(t.Context(), restored()))
		}
		c.run(3)
		c.denied, c.helm.unreadable = "", nil
		c.run(30)
		if got := secrets(); len(got) != 1 || got[0] != "again" || c.ready().Reason != v1alpha1.ReasonServing {
			t.Errorf("%s: there are copies of %v; it says %s: %s", name, got, c.ready().Reason, c.ready().Message)
		}
	}
}

// A Secret that only looks like a copy is a user's.
func TestASecretThatNoCanaryReleaseMadeStays(t *testing.T) {
	c := newCluster(t)
	c.must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "mine", Labels: map[string]string{v1alpha1.LabelCanaryRelease: "try"},
	}}))
	c.run(30)
	if err := c.Get(t.Context(), key("mine"), &corev1.Secret{}); err != nil || c.ready().Reason != v1alpha1.ReasonServing {
		t.Errorf("the Secret: %v; it says %s: %s", err, c.ready().Reason, c.ready().Message)
	}
}

// Copies that the account may list and not delete are given up after ten minutes, once; until then it says
// what it waits for.
func TestCopiesThatCanNotBeRemovedDoNotStopACanaryRelease(t *testing.T) {
	c := newCluster(t)
	c.helm.copies = true
	c.run(12)
	c.denied = "delete v1.PartialObjectMetadata"
	c.force()
	c.must(c.Create(t.Context(), restored()))
	c.run(3)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonCleaningUp || !strings.Contains(ready.Message, "What an earlier CanaryRelease of the name left is removed first. ") {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
	for range 45 {
		c.clock.SetTime(c.clock.Now().Add(recheck))
		c.run(1)
	}
	c.run(12)
	if ready := c.ready(); ready.Reason == v1alpha1.ReasonCleaningUp {
		t.Errorf("after eleven minutes it says %s: %s", ready.Reason, ready.Message)
	}
	lists := c.names["list v1.PartialObjectMetadataList"]
	c.run(12)
	if got := c.names["list v1.PartialObjectMetadataList"]; got != lists {
		t.Errorf("it looks for copies %d times more", got-lists)
	}
}

// An old split that does not go keeps a canary from nothing.
func TestASplitOfAnEarlierCanaryReleaseThatDoesNotGoStopsNoCanary(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	old := &splitv1.TrafficSplit{}
	c.must(c.Get(t.Context(), key("web"), old))
	old.Name, old.UID, old.ResourceVersion, old.Finalizers = "old", "old", "", []string{"example.invalid/stuck"}
	old.Annotations[v1alpha1.AnnotationCanaryReleaseUID] = "before"
	c.must(c.Create(t.Context(), old))
	c.must(c.Delete(t.Context(), old))
	c.run(3)
	c.must(c.Delete(t.Context(), c.canaryRelease()))
	c.run(15)
	if err := c.Get(t.Context(), key("try"), &v1alpha1.CanaryRelease{}); !apierrors.IsNotFound(err) {
		t.Errorf("the CanaryRelease is not deleted: %v", err)
	}
}

func TestARestoredCanaryReleaseDoesNotEndOnWhatItCouldNotRead(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.runToEnd()
	c.restore(func(cr *v1alpha1.CanaryRelease) {
		cr.Spec.Config = ""
		cr.Spec.ConfigFrom = &v1alpha1.CanaryConfigSource{SecretKeyRef: v1alpha1.CanarySecretKey{Name: "values", Key: "values"}}
	})
	c.run(3)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonObservationFailed || !strings.Contains(ready.Message, `there is no Secret "values"; create it`) {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
	all := objects()
	config := all[len(all)-1].(*v1alpha1.CanaryRelease).Spec.Config
	c.must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "values"}, Data: map[string][]byte{"values": []byte(config)}}))
	c.runToEnd()
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopted {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
}

func TestARestoredCanaryReleaseKnowsItsAdoptionAgain(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.CanaryRelease)
		want   v1alpha1.Reason
	}{
		"the same":       {asItWas, v1alpha1.ReasonAdopted},
		"other values":   {func(cr *v1alpha1.CanaryRelease) { cr.Spec.Config = "token: another" }, v1alpha1.ReasonDeprecated},
		"not to adopt":   {func(cr *v1alpha1.CanaryRelease) { cr.Spec.Transition = "" }, v1alpha1.ReasonDeprecated},
		"of a sub-chart": {func(cr *v1alpha1.CanaryRelease) { cr.Spec.Path = "web" }, v1alpha1.ReasonDeprecated},
		"as its Rollout decided": {func(cr *v1alpha1.CanaryRelease) {
			cr.Spec.Transition = ""
			cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "web", By: "web", Transition: v1alpha1.CanaryTransitionAdopted}
		}, v1alpha1.ReasonAdopted},
		"as was decided, by a Rollout that is gone": {func(cr *v1alpha1.CanaryRelease) {
			cr.Spec.Transition = ""
			cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionAdopted}
		}, v1alpha1.ReasonAdopted},
	} {
		c := newCluster(t)
		c.run(12)
		c.transition(v1alpha1.CanaryTransitionAdopted)
		c.runToEnd()
		if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopted {
			t.Fatalf("it says %s: %s", ready.Reason, ready.Message)
		}
		calls := c.names["helm upgrade"]
		c.restore(test.change)
		c.runToEnd()
		if ready := c.ready(); ready.Reason != test.want || c.names["helm upgrade"] != calls {
			t.Errorf("%s: it says %s: %s", name, ready.Reason, ready.Message)
		}
	}
}

// Of a Deployment that was held for an upgrade by Helm, nothing but its own fields tells after a
// restore.
func TestADeploymentThatWasHeldForAnUpgradeGoesOnInARestoredBackup(t *testing.T) {
	for name, test := range map[string]struct {
		manager, release string
		want             bool
	}{
		"by Serin":                    {v1alpha1.FieldManagerCanaryRelease, "shop", false},
		"by a user":                   {"kubectl", "shop", true},
		"by Serin of another release": {v1alpha1.FieldManagerCanaryRelease, "blog", true},
	} {
		c := newCluster(t)
		c.run(12)
		c.transition(v1alpha1.CanaryTransitionAdopted)
		c.runToEnd()
		held := &appsv1.Deployment{}
		c.must(c.Get(t.Context(), key("web"), held))
		held.Annotations = map[string]string{annotationRelease: test.release}
		c.must(c.Update(t.Context(), held, client.FieldOwner("helm")))
		paused := applyappsv1.Deployment("web", "shop").WithSpec(applyappsv1.DeploymentSpec().WithPaused(true))
		c.must(c.r.client.Apply(t.Context(), paused, client.FieldOwner(test.manager), client.ForceOwnership))
		c.restore(asItWas)
		c.runToEnd()
		c.must(c.Get(t.Context(), key("web"), held))
		if held.Spec.Paused != test.want {
			t.Errorf("held %s: paused %v; it says %s: %s", name, held.Spec.Paused, c.ready().Reason, c.ready().Message)
		}
	}
}

func TestACanaryReleaseGoesWithItsNamespaceAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		doomed, namespacedOnly, want bool
	}{
		"the namespace stays":              {false, false, false},
		"the namespace goes":               {true, false, true},
		"namespaces are not read, as ever": {true, true, false},
	} {
		c := newCluster(t)
		c.helm.copies = true
		c.r.options.NamespacedOnly = test.namespacedOnly
		c.run(12)
		namespace := &corev1.Namespace{}
		namespace.Name, namespace.Finalizers = "shop", []string{"kubernetes"}
		c.must(c.Create(t.Context(), namespace))
		if test.doomed {
			c.must(c.Delete(t.Context(), namespace))
		}
		c.denied = "get v1.PartialObjectMetadata"
		c.must(c.Delete(t.Context(), c.canaryRelease()))
		c.run(15)
		err := c.Get(t.Context(), key("try"), &v1alpha1.CanaryRelease{})
		if client.IgnoreNotFound(err) != nil || err != nil != test.want {
			t.Errorf("%s: the CanaryRelease: %v", name, err)
		}
	}
}

// TestACanaryThatWasLostIsToldFromTheVersionsOfItsDeployment, which has had the template of each of them.
func TestACanaryThatWasLostIsToldFromTheVersionsOfItsDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a version":                  {map[string]string{workload.AnnotationRevision: "1"}, false},
		"a canary that was adopted":  {map[string]string{v1alpha1.AnnotationCanaryWorkload: "web", workload.AnnotationRevision: "2"}, false},
		"a canary that was lost":     {map[string]string{v1alpha1.AnnotationCanaryWorkload: "web"}, true},
		"a canary of another's name": {map[string]string{v1alpha1.AnnotationCanaryWorkload: "db"}, false},
	} {
		s := observationOf(t)
		controller := metav1.NewControllerRef(s.deployments["web"], appsv1.SchemeGroupVersion.WithKind("Deployment"))
		s.replicaSets = []appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Annotations: test.annotations, OwnerReferences: []metav1.OwnerReference{*controller}}}}
		if w, err := s.observeWorkload("web"); err != nil || len(w.ReplicaSets) != 1 || w.ReplicaSets[0].Unpromoted != test.want {
			t.Errorf("%s: %+v, %v", name, w.ReplicaSets, err)
		}
	}
}
