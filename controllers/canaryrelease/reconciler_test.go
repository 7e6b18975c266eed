// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

func TestACanaryIsServedAndAdoptedWithItsPods(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	if ready := c.ready(); ready.Status != "True" || ready.Reason != v1alpha1.ReasonServing {
		t.Fatalf("%+v\n%v", ready, c.writes)
	}
	weight := int32(40)
	c.change(func(s *v1alpha1.CanaryReleaseSpec) {
		s.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{
			{Port: 80, Protocol: v1alpha1.CanaryProtocolHTTP, Config: v1alpha1.CanaryPortConfig{Weight: &weight}}, {Port: 53},
		}}}
	})
	c.run(5)
	split := &splitv1.TrafficSplit{}
	c.must(c.Get(t.Context(), key("web"), split))
	if got, want := split.Annotations[splitv1.AnnotationRouting], `{"router":"nginx","ports":{"53/UDP":{"weights":{"web-canary":1,"web-stable":99}},"80/TCP":{"protocol":"HTTP","weights":{"web-canary":40,"web-stable":60}}}}`; got != want {
		t.Errorf("routing %s", got)
	}
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(20)
	cr := c.canaryRelease()
	if d := cr.Status.Decision; d == nil || d.EndedAt == nil || d.Transition != v1alpha1.CanaryTransitionAdopted || len(cr.Finalizers) > 0 {
		t.Fatalf("%+v %v\n%v", d, c.ready(), c.writes)
	}
	if w := cr.Status.Workloads; len(w) != 1 || !w[0].HandedOver || w[0].Rolled != "" || cr.Status.Release.AdoptedRevision != 5 {
		t.Errorf("%+v", cr.Status)
	}
	for _, rs := range c.sets() {
		if canary := isMarked(&rs, cr); canary != (*rs.Spec.Replicas == 2) {
			t.Errorf("%s has %d pods", rs.Name, *rs.Spec.Replicas)
		}
	}
	d := &appsv1.Deployment{}
	c.must(c.Get(t.Context(), key("web"), d))
	if d.Spec.Paused {
		t.Error("the Deployment is still paused")
	}
	c.wantNothingLeft()
	c.wantNoSecret()
}

// The cache may be behind the autoscaler that has scaled the Deployment.
func TestADeploymentThatWasScaledJustNowIsHandedNoCanary(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	behind := true
	c.r.options.Live = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := w.Get(ctx, k, o, opts...)
			if d, ok := o.(*appsv1.Deployment); ok && behind {
				d.Generation++
			}
			return err
		},
	})
	c.transition(v1alpha1.CanaryTransitionAdopted)
	handedOver := func() bool {
		return slices.ContainsFunc(c.sets(), func(rs appsv1.ReplicaSet) bool {
			return isMarked(&rs, c.canaryRelease()) && !strings.Contains(fmt.Sprint(rs.OwnerReferences), "Service")
		})
	}
	c.run(20)
	if handedOver() || c.helm.Deployed != 5 {
		t.Fatalf("revision %d is deployed, and %v written", c.helm.Deployed, c.writes)
	}
	behind = false
	c.run(20)
	if cr := c.canaryRelease(); !handedOver() || cr.Status.Decision.EndedAt == nil {
		t.Errorf("%+v %+v\n%v", cr.Status, c.ready(), c.writes)
	}
}

func (c *cluster) wantNothingLeft() {
	c.Helper()
	for name := range c.dump() {
		if strings.HasPrefix(name, "TrafficSplit/") || strings.HasPrefix(name, "Service/web-") || strings.HasPrefix(name, "Secret/") {
			c.Errorf("%s is left", name)
		}
	}
}

// wantNoSecret looks for the value in what users can read.
func (c *cluster) wantNoSecret() {
	c.Helper()
	text, err := json.Marshal(c.canaryRelease().Status)
	c.must(err)
	if strings.Contains(string(text), secretValue) {
		c.Errorf("the status shows a value: %s", text)
	}
	for {
		select {
		case e := <-c.events.Events:
			if strings.Contains(e, secretValue) {
				c.Errorf("an event shows a value: %s", e)
			}
		default:
			return
		}
	}
}

func TestACanaryWithCopiesIsAdoptedWithNewPods(t *testing.T) {
	c := newCluster(t)
	c.helm.copies = true
	c.run(12)
	secret := &corev1.Secret{}
	c.must(c.Get(t.Context(), key("settings-canary-1"), secret))
	if copies := c.canaryRelease().Status.Copies; len(copies) != 1 || copies[0].Name != secret.Name {
		t.Errorf("on record: %v", copies)
	}
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(25)
	cr := c.canaryRelease()
	if d := cr.Status.Decision; d == nil || d.EndedAt == nil || cr.Status.Workloads[0].HandedOver || cr.Status.Workloads[0].Rolled == "" {
		t.Fatalf("%+v %+v\n%v", cr.Status, c.ready(), c.writes)
	}
	for _, rs := range c.sets() {
		if isMarked(&rs, cr) {
			t.Errorf("%s is left", rs.Name)
		}
	}
	c.wantNothingLeft()
	c.wantNoSecret()
}

func TestAfterADeprecationEverythingIsAsBefore(t *testing.T) {
	for name, copies := range map[string]bool{"with copies": true, "without copies": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.helm.copies = copies
			before := c.dump()
			c.run(12)
			c.transition(v1alpha1.CanaryTransitionDeprecated)
			c.run(12)
			if d := c.canaryRelease().Status.Decision; d == nil || d.EndedAt == nil {
				t.Fatalf("%+v\n%v", c.ready(), c.writes)
			}
			if diff := cmp.Diff(before, c.dump()); diff != "" {
				t.Errorf("it differs (-before +after):\n%s", diff)
			}
			c.wantNoSecret()
		})
	}
}

func TestADeletionTakesTheCanaryOut(t *testing.T) {
	c := newCluster(t)
	before := c.dump()
	c.run(12)
	c.must(c.Delete(t.Context(), c.canaryRelease()))
	for range 12 {
		c.run(1)
		list := &v1alpha1.CanaryReleaseList{}
		c.must(c.List(t.Context(), list))
		if len(list.Items) == 0 {
			break
		}
	}
	if diff := cmp.Diff(before, c.dump()); diff != "" {
		t.Errorf("it differs (-before +after):\n%s", diff)
	}
}

func TestTheUpgradeOfAnotherUserEndsTheCanary(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.helm.Newest, c.helm.Deployed = 5, 5
	c.run(15)
	d := c.canaryRelease().Status.Decision
	if d == nil || d.EndedAt == nil || d.Reason != v1alpha1.ReasonReleaseChanged || !strings.Contains(d.Message, "revision 5 of release shop") {
		t.Fatalf("%+v", d)
	}
	c.wantNothingLeft()
}

func TestAnUpgradeThatFailsIsToldWithoutValues(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.helm.failure = releases.InvalidError{Field: "spec.config", Message: "a hook failed"}
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(12)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonUpgradeFailed || !strings.Contains(ready.Message, "a hook failed") {
		t.Fatalf("%+v", ready)
	}
	c.helm.failure = nil
	c.run(40)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopted {
		t.Fatalf("%+v", ready)
	}
	c.wantNoSecret()
}

func TestAnUpgradeThatWaitsForItsTurnIsNoFailure(t *testing.T) {
	c := newWaiting(t)
	was, calls := len(c.writes), c.names["helm upgrade"]
	c.run(20)
	if got := c.names["helm upgrade"] - calls; got > 0 || len(c.writes) != was {
		t.Errorf("while it waits it calls Helm %d times and writes %v", got, c.writes[was:])
	}
	for len(c.events.Events) > 0 {
		if e := <-c.events.Events; strings.HasPrefix(e, corev1.EventTypeWarning) {
			t.Error(e)
		}
	}
	var enqueued []types.NamespacedName
	c.r.enqueue = func(name types.NamespacedName) { enqueued = append(enqueued, name) }
	c.helm.failure = nil
	c.helm.turn()
	if diff := cmp.Diff([]types.NamespacedName{key("try")}, enqueued); diff != "" {
		t.Errorf("when its turn comes, these are looked at (-want +got):\n%s", diff)
	}
	c.run(20)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopted {
		t.Errorf("%+v", ready)
	}
}

// Its turn is gone then, and no other one comes by itself.
func TestAnUpgradeWhoseCanaryIsChangedWhileItsValuesAreComparedAsksAgain(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.helm.meanwhile = func() {
		c.helm.meanwhile = nil
		c.change(func(*v1alpha1.CanaryReleaseSpec) {}) // the generation is another one
	}
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(20)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopted || c.names["helm upgrade"] != 2 {
		t.Errorf("after %d calls of Helm it says %+v", c.names["helm upgrade"], ready)
	}
}

// Nothing is decided, and after a minute the status says why.
func TestValuesThatWaitToBeRenderedAreRenderedInTheirTurn(t *testing.T) {
	c := newCluster(t)
	c.helm.exceeded = releases.BusyError("Helm renders other releases")
	c.run(20)
	if len(c.writes) > 0 || c.helm.renderTurn == nil {
		t.Errorf("before a minute is over it writes %v", c.writes)
	}
	c.run(1)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonObservationFailed || !strings.Contains(ready.Message, "Helm renders other releases") {
		t.Errorf("after a minute it says %+v", ready)
	}
	for len(c.events.Events) > 0 {
		if e := <-c.events.Events; strings.HasPrefix(e, corev1.EventTypeWarning) {
			t.Error(e)
		}
	}
	var enqueued []types.NamespacedName
	c.r.enqueue = func(name types.NamespacedName) { enqueued = append(enqueued, name) }
	c.helm.renderTurn()
	if diff := cmp.Diff([]types.NamespacedName{key("try")}, enqueued); diff != "" {
		t.Errorf("when their turn comes, these are looked at (-want +got):\n%s", diff)
	}
	c.helm.exceeded = nil
	c.run(12)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing {
		t.Errorf("%+v", ready)
	}
}

func TestWhatWasRefusedStaysSoWhileItWaitsToBeRenderedAgain(t *testing.T) {
	c := newCluster(t)
	c.helm.refused = []string{"the Job web would run twice"}
	c.run(3)
	was := c.ready()
	if was.Reason != v1alpha1.ReasonRefused {
		t.Fatalf("%+v", was)
	}
	c.helm.exceeded = releases.BusyError("Helm renders other releases")
	c.run(60)
	if diff := cmp.Diff(was, c.ready()); diff != "" || c.helm.renderTurn == nil {
		t.Errorf("it changes (-was +is):\n%s", diff)
	}
	c.helm.exceeded, c.helm.refused = nil, nil
	c.run(12)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing {
		t.Errorf("%+v", ready)
	}
}

func TestValuesThatAreNotToBeRenderedAnyMoreGiveUpTheirTurn(t *testing.T) {
	for name, stop := range map[string]func(*cluster){
		"deprecated": func(c *cluster) { c.transition(v1alpha1.CanaryTransitionDeprecated) },
		"gone":       func(c *cluster) { c.must(c.Delete(t.Context(), c.canaryRelease())) },
		"without a Secret": func(c *cluster) {
			c.change(func(s *v1alpha1.CanaryReleaseSpec) {
				s.Config, s.ConfigFrom = "", &v1alpha1.CanaryConfigSource{SecretKeyRef: v1alpha1.CanarySecretKey{Name: "none", Key: "x"}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.helm.exceeded = releases.BusyError("Helm renders other releases")
			c.run(2)
			if c.helm.renderTurn == nil {
				t.Fatal("it does not wait")
			}
			stop(c)
			c.run(2)
			if c.helm.renderTurn != nil {
				t.Error("it waits still")
			}
		})
	}
}

// newWaiting has an upgrade whose turn has not come.
func newWaiting(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.run(12)
	c.helm.failure = releases.BusyError("Helm upgrades other releases")
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(12)
	c.wantWaiting()
	return c
}

func (c *cluster) wantWaiting() {
	c.Helper()
	r := c.canaryRelease().Status.Release
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonAdopting || !strings.Contains(ready.Message, "waits for its turn: Helm upgrades other releases") || r.UpgradeTries != 0 || r.LastTryAt != nil {
		c.Errorf("it says %+v, on record is %+v", ready, r)
	}
}

func TestAnUpgradeThatWaitedSaysSoAfterARestartOfTheOperator(t *testing.T) {
	c := newWaiting(t)
	c.r = New(c.r.client, c.events, c.r.options)
	for range 3 {
		c.reconcile()
		if ready := c.ready(); ready.Reason == v1alpha1.ReasonUpgradeFailed {
			t.Errorf("%+v", ready)
		}
	}
	c.wantWaiting()
}

func TestAnUpgradeThatIsWithdrawnWhileItWaitsIsNotMade(t *testing.T) {
	c := newWaiting(t)
	was := c.helm.Newest
	c.helm.failure = nil
	c.transition(v1alpha1.CanaryTransitionDeprecated)
	c.run(20)
	if c.names["helm upgrade"] != 1 || c.helm.Newest != was || c.helm.turn != nil {
		t.Errorf("Helm was called %d times, and made revision %d", c.names["helm upgrade"], c.helm.Newest)
	}
	if d := c.canaryRelease().Status.Decision; d == nil || d.EndedAt == nil {
		t.Errorf("%+v", d)
	}
	c.wantNothingLeft()
}

func TestAnUpgradeThatIsWithdrawnWhileItsValuesAreComparedIsNotMade(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	was := c.helm.Newest
	c.helm.meanwhile = func() { c.transition(v1alpha1.CanaryTransitionDeprecated) }
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(20)
	if c.names["helm upgrade"] != 1 || c.helm.Newest != was {
		t.Errorf("Helm was called %d times, and made revision %d", c.names["helm upgrade"], c.helm.Newest)
	}
	if d := c.canaryRelease().Status.Decision; d == nil || d.EndedAt == nil {
		t.Errorf("%+v", d)
	}
	c.wantNothingLeft()
}

func TestAFailedUpgradeIsNotTriedAtOnceByAnOperatorThatWasRestarted(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.helm.failure = releases.InvalidError{Field: "spec.config", Message: "a hook failed"}
	c.transition(v1alpha1.CanaryTransitionAdopted)
	c.run(12)
	calls := c.names["helm upgrade"]
	if calls != 1 {
		t.Fatalf("it called Helm %d times\n%v", calls, c.writes)
	}
	for range 5 {
		c.r = New(c.r.client, c.events, c.r.options)
		c.run(1)
	}
	if got := c.names["helm upgrade"]; got != calls {
		t.Errorf("it called Helm %d times more", got-calls)
	}
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonUpgradeFailed {
		t.Errorf("%+v", ready)
	}
	c.clock.SetTime(c.clock.Now().Add(time.Minute))
	c.helm.failure = nil
	c.run(20)
	if r := c.canaryRelease().Status.Release; r.AdoptedRevision != 5 || r.UpgradeTries != 0 {
		t.Errorf("%+v %+v", r, c.ready())
	}
	c.wantNoSecret()
}

func TestWithNothingToDoNothingIsWritten(t *testing.T) {
	c := newCluster(t)
	c.helm.copies = true
	c.run(15)
	was := len(c.writes)
	c.run(5)
	if len(c.writes) != was {
		t.Errorf("it wrote %v", c.writes[was:])
	}
	c.transition(v1alpha1.CanaryTransitionDeprecated)
	c.run(15)
	was = len(c.writes)
	calls := c.calls
	c.run(5)
	// It is read, and the three kinds of which an earlier one of its name may have left something.
	if len(c.writes) != was || c.calls-calls != 5*4 {
		t.Errorf("it wrote %v and made %d calls after the end", c.writes[was:], c.calls-calls)
	}
}

// Whatever fails once, it ends as it would have without: in each life every kind of call
// fails at its n-th time.
func TestAnyCallMayFail(t *testing.T) {
	for _, transition := range []v1alpha1.CanaryTransition{v1alpha1.CanaryTransitionAdopted, v1alpha1.CanaryTransitionDeprecated} {
		t.Run(string(transition), func(t *testing.T) {
			var want map[string]int
			for _, fails := range []int{0, 1, 2, 4} {
				c := newCluster(t)
				c.helm.copies, c.fails = true, fails
				c.run(8)
				c.transition(transition)
				c.runToEnd()
				d := c.canaryRelease().Status.Decision
				if d == nil || d.EndedAt == nil || d.Transition != transition {
					t.Fatalf("with failures at time %d it ends with %+v, %+v\n%v", fails, d, c.ready(), c.writes)
				}
				if fails == 0 {
					want = kinds(c.dump())
				}
				if diff := cmp.Diff(want, kinds(c.dump())); diff != "" {
					t.Fatalf("with failures at time %d other objects are left:\n%s", fails, diff)
				}
			}
		})
	}
}

// kinds are the names of objects, of which those that controllers number are alike.
func kinds(dump map[string]any) map[string]int {
	out := map[string]int{}
	for name := range dump {
		if strings.HasPrefix(name, "ReplicaSet/web-own") {
			name = "ReplicaSet/web-own"
		}
		out[name]++
	}
	return out
}

func TestValuesComeFromASecretToo(t *testing.T) {
	from := &v1alpha1.CanaryConfigSource{SecretKeyRef: v1alpha1.CanarySecretKey{Name: "values", Key: "values.yaml"}}
	c := newCluster(t)
	c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Config, s.ConfigFrom = "", from })
	c.run(2)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(ready.Message, `no Secret "values"`) {
		t.Errorf("%+v", ready)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "values", Namespace: "shop"}, Data: map[string][]byte{"other": []byte("a: b")}}
	c.must(c.Create(t.Context(), secret))
	c.run(2)
	if ready := c.ready(); !strings.Contains(ready.Message, `no key "values.yaml"`) {
		t.Errorf("%+v", ready)
	}
	secret.Data["values.yaml"] = []byte("token: " + secretValue)
	c.must(c.Update(t.Context(), secret))
	c.run(12)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing || string(c.helm.request.Config) != "token: "+secretValue {
		t.Errorf("%+v %s", ready, c.helm.request.Config)
	}
	c.wantNoSecret()
}

func TestHelmIsAskedForTheSameThingOnce(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.helm.request = releases.Request{}
	c.run(5)
	if c.helm.request.Release != "" {
		t.Error("Helm was called again")
	}
	c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Config = "other: value" })
	c.run(1)
	if string(c.helm.request.Config) != "other: value" {
		t.Errorf("Helm was called with %+v", c.helm.request)
	}
}

func TestTheOlderOfTwoCanariesOfAReleaseGoesFirst(t *testing.T) {
	c := newCluster(t)
	rival := c.canaryRelease()
	rival.Name, rival.UID, rival.ResourceVersion, rival.CreationTimestamp = "first", "first", "", metav1.Time{Time: time.Unix(1, 0)}
	own := c.canaryRelease()
	own.CreationTimestamp = metav1.Time{Time: time.Unix(2, 0)}
	c.must(c.Update(t.Context(), own))
	c.must(c.Create(t.Context(), rival))
	c.run(3)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonConflict || !strings.Contains(ready.Message, `"first"`) {
		t.Errorf("%+v", ready)
	}
}

func TestALimitThatAChartMeetsIsNamedAndNotMetAgainAtOnce(t *testing.T) {
	c := newCluster(t)
	c.helm.exceeded = releases.LimitError("Helm needs more memory than its limit of 160 MiB: make the chart or its values smaller")
	c.run(20)
	if n := c.names["helm propose"]; n != 1 {
		t.Errorf("Helm was called %d times within a minute", n)
	}
	if ready := c.ready(); ready.Status == metav1.ConditionTrue || !strings.Contains(ready.Message, "Helm needs more memory than its limit of 160 MiB: make the chart or its values smaller") {
		t.Errorf("%+v", ready)
	}
	c.clock.SetTime(c.clock.Now().Add(limitRetry))
	c.helm.exceeded = nil
	c.run(20)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing {
		t.Errorf("after the node has time again: %+v", ready)
	}
}

func TestOtherValuesAreTriedAtOnceAfterALimit(t *testing.T) {
	c := newCluster(t)
	c.helm.exceeded = releases.LimitError("Helm takes longer than its time limit of 30s: make the chart or its values simpler")
	c.run(2)
	c.helm.exceeded = nil
	cr := c.canaryRelease()
	cr.Spec.Config, cr.Generation = "token: other", cr.Generation+1
	c.must(c.Update(t.Context(), cr))
	c.run(2)
	if n := c.names["helm propose"]; n != 2 {
		t.Errorf("Helm was called %d times", n)
	}
}
