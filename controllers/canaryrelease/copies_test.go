// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

func TestWithoutRightsTheRestIsTakenOutAndSerinGoesOnWhenTheyAreBack(t *testing.T) {
	for verb, call := range map[string]string{"get": "get v1.PartialObjectMetadata", "delete": "delete v1.PartialObjectMetadata"} {
		t.Run("may not "+verb, func(t *testing.T) {
			c := newCluster(t)
			c.helm.copies = true
			before := kinds(c.dump())
			c.run(12)
			c.denied = call
			c.helm.unreadable = releases.InvalidError{Field: "spec.release", Message: "ServiceAccount serin-canary of namespace shop may not list secrets"}
			c.transition(v1alpha1.CanaryTransitionDeprecated)
			c.run(15)
			left := kinds(c.dump())
			delete(left, "Secret/settings-canary-1")
			if len(left) != len(before) {
				t.Errorf("what needs no right is left: %v", left)
			}
			ready := c.ready()
			for _, part := range []string{"the Secret settings-canary-1", "ServiceAccount serin-canary of namespace shop may not " + verb + " secrets", "RoleBinding"} {
				if !strings.Contains(ready.Message, part) {
					t.Errorf("%q is not in %q", part, ready.Message)
				}
			}
			if cr := c.canaryRelease(); !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionStalled) || cr.Status.Decision.EndedAt != nil {
				t.Errorf("%+v", cr.Status)
			}
			c.denied, c.helm.unreadable = "", nil
			c.run(3)
			if d := c.canaryRelease().Status.Decision; d.EndedAt == nil {
				t.Errorf("it does not go on: %+v", c.ready())
			}
			c.wantNothingLeft()
		})
	}
}

func TestARightThatIsLackingForLongIsNoErrorEachTime(t *testing.T) {
	c := newCluster(t)
	c.helm.copies = true
	c.run(12)
	c.denied = "delete v1.PartialObjectMetadata"
	c.transition(v1alpha1.CanaryTransitionDeprecated)
	c.run(15)
	was := len(c.events.Events)
	statuses := c.names["update status v1alpha1.CanaryRelease"]
	c.run(5)
	if more := len(c.events.Events) - was; more > 0 || c.names["update status v1alpha1.CanaryRelease"] != statuses {
		t.Errorf("%d events more, and %d writes of the status", more, c.names["update status v1alpha1.CanaryRelease"]-statuses)
	}
}
