// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func TestACanaryKeepsItsPodsWhileASplitThatLeadsToThemIsBeingDeleted(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	o := w.observe()
	o.CanaryRelease = o.CanaryRelease.DeepCopy()
	o.CanaryRelease.Spec.Transition = v1alpha1.CanaryTransitionDeprecated
	o.Services[0].Split.Deleting = true
	d := Decide(o)
	for _, a := range d.Actions {
		if _, scales := a.(kit.ScaleReplicaSet); scales {
			t.Errorf("it does %v", names(d.Actions))
		}
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(c.Message, "back at the Service web") {
		t.Errorf("it says %q", c.Message)
	}
}

func TestAFailedUpgradeIsTriedAgainLessAndLessOften(t *testing.T) {
	for newest, want := range map[int32]time.Duration{
		4: time.Minute, 5: time.Minute, 6: 2 * time.Minute, 8: 8 * time.Minute, 11: time.Hour, 2000: time.Hour,
	} {
		s := &snapshot{Observation: Observation{CanaryRelease: &v1alpha1.CanaryRelease{Spec: v1alpha1.CanaryReleaseSpec{Version: 4}}, Release: Release{Newest: newest}}}
		if got := retryAfter(s); got != want {
			t.Errorf("after revision %d: %s, want %s", newest, got, want)
		}
	}
}

func TestADeploymentThatWasHeldForAnAdoptionIsGivenBackWhenThatIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	o := w.observe()
	o.Workloads[0].Paused, o.Workloads[0].Held = true, true
	if d := Decide(o); !slices.Contains(names(d.Actions), SetHold{Workload: "web"}.String()) {
		t.Errorf("it does %v", names(d.Actions))
	}
}

func TestMoreThanTheStatusCanTellIsRefused(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	for name, test := range map[string]struct {
		edit func(*Observation)
		says string
	}{
		"Deployments": {func(o *Observation) {
			many, service := o.Workloads[0], o.Services[0]
			for range maxWorkloads {
				many.Name += "x"
				service.Name, service.Workload = many.Name, many.Name
				o.Workloads, o.Services = append(o.Workloads, many), append(o.Services, service)
			}
		}, "33 Deployments"},
		"copies": {func(o *Observation) { o.Copies = make([]Copy, maxCopies+1) }, "129 objects"},
	} {
		o := w.observe()
		test.edit(&o)
		c := meta.FindStatusCondition(Decide(o).Status.Conditions, v1alpha1.ConditionReady)
		if c.Reason != v1alpha1.ReasonRefused || !strings.Contains(c.Message, test.says) {
			t.Errorf("%s: %s: %s", name, c.Reason, c.Message)
		}
	}
}

// Helm may have deployed the canary when its records can't be read any more. To take the
// canary out then would leave the release upgraded, and call that going back.
func TestNothingIsDeprecatedWhileItIsNotKnownWhetherHelmHasDeployed(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*Observation)
		want v1alpha1.CanaryTransition
	}{
		"a deletion":                             {func(*Observation) {}, v1alpha1.CanaryTransitionAdopted},
		"a deletion that has waited long enough": {func(o *Observation) { o.Now = o.Now.Add(routerTimeout) }, v1alpha1.CanaryTransitionDeprecated},
		"a user who deprecates": {func(o *Observation) {
			o.CanaryRelease.DeletionTimestamp, o.CanaryRelease.Spec.Transition = nil, v1alpha1.CanaryTransitionDeprecated
		}, v1alpha1.CanaryTransitionAdopted},
		"Helm was never called": {func(o *Observation) { o.CanaryRelease.Status.Release.UpgradeTries = 0 }, v1alpha1.CanaryTransitionDeprecated},
		"the records can be read": {func(o *Observation) {
			o.Release = Release{Presence: kit.Present, Newest: o.CanaryRelease.Spec.Version, Deployed: o.CanaryRelease.Spec.Version, Status: "deployed"}
		}, v1alpha1.CanaryTransitionDeprecated},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(30)
			o := w.observe()
			o.CanaryRelease = o.CanaryRelease.DeepCopy()
			o.CanaryRelease.DeletionTimestamp = &metav1.Time{Time: o.Now}
			o.CanaryRelease.Status.Decision = &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionAdopted}
			o.CanaryRelease.Status.Release.UpgradeTries = 1
			o.Release = Release{Presence: kit.Unknown, Problem: "secrets is forbidden"}
			test.edit(&o)
			d := Decide(o)
			if got := d.Status.Decision.Transition; got != test.want {
				t.Errorf("decided %s, want %s", got, test.want)
			}
			if test.want == v1alpha1.CanaryTransitionAdopted && len(d.Actions) > 0 {
				t.Errorf("it does %v", names(d.Actions))
			}
			c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
			t.Logf("%s: %s", c.Reason, c.Message)
		})
	}
}
