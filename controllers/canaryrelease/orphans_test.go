// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// force removes the finalizer, and the CanaryRelease.
func (c *cluster) force() {
	c.Helper()
	cr := c.canaryRelease()
	cr.Finalizers = nil
	c.must(c.Update(c.Context(), cr))
	if err := c.Delete(c.Context(), cr); !apierrors.IsNotFound(err) {
		c.must(err)
	}
}

func TestACanaryReleaseThatGoesWithoutItsFinalizerLeavesNothing(t *testing.T) {
	for name, copies := range map[string]bool{"with copies": true, "without copies": false} {
		for _, looks := range []int{2, 3, 4, 5, 12} {
			c := newCluster(t)
			c.helm.copies = copies
			before := c.dump()
			c.run(looks)
			c.force()
			if looks%2 == 0 { // an operator that starts later
				c.r = New(c.r.client, c.events, c.r.options)
			}
			c.run(15)
			if diff := cmp.Diff(before, c.dump()); diff != "" {
				t.Errorf("%s, after %d looks, it differs (-before +after):\n%s\n%v", name, looks, diff, c.writes)
			}
		}
	}
}

func TestWhatLooksLeftOfACanaryReleaseIsNotTouchedWhileThereIsOne(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.CanaryRelease){
		"itself":      func(*v1alpha1.CanaryRelease) {},
		"a successor": func(cr *v1alpha1.CanaryRelease) { cr.UID = "successor" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.run(12)
			cr := c.canaryRelease()
			c.force()
			cr.ResourceVersion = ""
			change(cr)
			elsewhere := newCluster(t)
			c.must(elsewhere.Delete(t.Context(), elsewhere.canaryRelease()))
			c.must(elsewhere.Create(t.Context(), cr))
			c.r.options.Live = elsewhere.Client
			c.writes = nil
			c.run(3)
			if len(c.writes) > 0 {
				t.Errorf("written: %v", c.writes)
			}
		})
	}
}

func TestWhatAnEarlierCanaryReleaseOfTheSameNameLeftIsRemovedFirst(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	again := c.canaryRelease().DeepCopy()
	c.force()
	again.UID, again.ResourceVersion, again.Status = "again", "", v1alpha1.CanaryReleaseStatus{}
	c.must(c.Create(t.Context(), again))
	c.run(20)
	if again := c.canaryRelease(); again.Status.Release == nil || len(again.Status.Workloads) != 1 {
		t.Errorf("status %+v", again.Status)
	}
	if !slices.ContainsFunc(c.sets(), func(rs appsv1.ReplicaSet) bool { return isMarked(&rs, again) }) {
		t.Error("the new one has no canary")
	}
}
