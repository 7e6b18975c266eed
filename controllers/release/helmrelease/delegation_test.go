// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func init() {
	scenarios = append(scenarios, delegated...)
}

// delegates lets a Rollout decide.
func (w *world) delegates() {
	w.cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "website"}
	w.cr.Generation++
}

// delegate is what the Rollout applies, about a content.
func (w *world) delegate(digest string, weight int32, t v1alpha1.CanaryTransition) {
	w.cr.Spec.Delegation = &v1alpha1.CanaryDelegation{Rollout: "website", By: "website", Weight: &weight, Transition: t, ManifestDigest: digest}
	w.cr.Generation++
	w.say("Rollout: weight %d, transition %q for %s", weight, t, digest)
}

// most is the largest live weight.
func (w *world) most() int32 {
	if sp := w.services["web"].split; sp != nil {
		return largest(sp.served)
	}
	return 0
}

var delegated = []scenario{
	{"a Rollout takes a canary to its adoption", func(w *world) {
		w.delegates()
		w.run(30)
		for _, weight := range []int32{10, 50, 100} {
			w.delegate("d1", weight, "")
			w.run(20)
		}
		w.delegate("d1", 100, v1alpha1.CanaryTransitionAdopted)
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"a Rollout rolls a canary back", func(w *world) {
		w.delegates()
		w.run(30)
		w.delegate("d1", 50, "")
		w.run(20)
		w.delegate("d1", 0, v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"config is changed while a Rollout has the canary adopted", func(w *world) {
		w.delegates()
		w.run(30)
		w.delegate("d1", 100, "")
		w.run(20)
		w.digest, w.proposed["web"] = "d2", "unjudged"
		w.delegate("d1", 100, v1alpha1.CanaryTransitionAdopted)
		w.run(60)
		if w.helm.newest != 4 {
			w.Fatalf("what was not judged was adopted\n%s", w.history())
		}
		if w.rand == nil && w.most() != 0 {
			w.Fatalf("%d %% of the traffic goes to what was not judged\n%s", w.most(), w.history())
		}
		w.delegate("d1", 0, v1alpha1.CanaryTransitionDeprecated)
		w.run(20)
		if w.cr.Status.Decision != nil {
			w.Fatalf("another content was deprecated\n%s", w.history())
		}
		w.delegate("d2", 0, v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"a Rollout clears its fields in the middle, and a user deprecates", func(w *world) {
		w.delegates()
		w.run(30)
		w.delegate("d1", 50, "")
		w.run(20)
		w.delegates()
		w.run(20)
		if w.rand == nil && w.most() != 0 {
			w.Fatalf("%d %% of the traffic goes to a canary that is not watched\n%s", w.most(), w.history())
		}
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
}

func delegatedSnapshot(services []v1alpha1.CanaryService, delegate *v1alpha1.CanaryDelegation, person v1alpha1.CanaryTransition) *snapshot {
	cr := &v1alpha1.CanaryRelease{Spec: v1alpha1.CanaryReleaseSpec{Services: services, Delegation: delegate, Transition: person}}
	return &snapshot{Observation: Observation{CanaryRelease: cr, Proposal: Proposal{Known: true, Digest: "d1"}}}
}

func TestWeightsThatARolloutDecides(t *testing.T) {
	service := &Service{Name: "web", Ports: []Port{{80, "TCP"}, {53, "UDP"}}}
	one := []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{port(80, "", 30), port(53, "", 0)}}}
	of := func(digest string, weight ...int32) *v1alpha1.CanaryDelegation {
		d := &v1alpha1.CanaryDelegation{Rollout: "website", By: "website", ManifestDigest: digest}
		if len(weight) > 0 {
			d.Weight = &weight[0]
		}
		return d
	}
	written := func(by string, d *v1alpha1.CanaryDelegation) *v1alpha1.CanaryDelegation {
		d.By = by
		return d
	}
	for _, test := range []struct {
		name     string
		services []v1alpha1.CanaryService
		delegate *v1alpha1.CanaryDelegation
		want     string
	}{
		{"without a Rollout the spec decides", one, nil, "53/UDP=0 %, 80/TCP=30 %"},
		{"before the Rollout has written anything, nothing", one, of(""), "0 %"},
		{"a port with a share gets the Rollout's weight, one with 0 keeps it", one, of("d1", 60), "53/UDP=0 %, 80/TCP=60 %"},
		{"no Services are named: every port gets it", nil, of("d1", 60), "60 %"},
		{"without a weight, nothing", nil, of("d1"), "0 %"},
		{"what was written for other content is nothing", nil, of("d0", 60), "0 %"},
		{"what was written for no content is nothing", nil, of("", 60), "0 %"},
		{"what another Rollout wrote is nothing", nil, written("another", of("d1", 60)), "0 %"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := text(delegatedSnapshot(test.services, test.delegate, "").wanted(service)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatUsersDecideGoesBeforeTheRollout(t *testing.T) {
	const adopted, deprecated = v1alpha1.CanaryTransitionAdopted, v1alpha1.CanaryTransitionDeprecated
	for _, test := range []struct {
		name              string
		person, delegated v1alpha1.CanaryTransition
		digest            string
		want              v1alpha1.CanaryTransition
		by                string
	}{
		{"no decision", "", "", "d1", "", ""},
		{"the Rollout promotes", "", adopted, "d1", adopted, `the Rollout "website" has promoted it`},
		{"the Rollout rolls back", "", deprecated, "d1", deprecated, `the Rollout "website" has rolled it back`},
		{"the Rollout means other content", "", adopted, "d0", "", ""},
		{"a user deprecates what the Rollout promotes", deprecated, adopted, "d1", deprecated, "spec.transition is Deprecated"},
		{"a user adopts what the Rollout rolls back", adopted, deprecated, "d1", adopted, "spec.transition is Adopted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			delegate := &v1alpha1.CanaryDelegation{Rollout: "website", By: "website", Transition: test.delegated, ManifestDigest: test.digest}
			got, by := delegatedSnapshot(nil, delegate, test.person).transition()
			if got != test.want || got != "" && by != test.by {
				t.Errorf("got %q, since %s", got, by)
			}
		})
	}
}

// TestAnEndThatMayMeanOtherContentWaits changes config to what can't be read in the moment in
// which the Rollout decides.
func TestAnEndThatMayMeanOtherContentWaits(t *testing.T) {
	delegate := &v1alpha1.CanaryDelegation{Rollout: "website", By: "website", Transition: v1alpha1.CanaryTransitionDeprecated, ManifestDigest: "d1"}
	p := delegatedSnapshot(nil, delegate, "")
	p.CanaryRelease.Spec.Version, p.Release = 4, Release{Presence: kit.Present, Newest: 4, Deployed: 4}
	p.status.ManifestDigest = "d1"
	if got, _ := p.transition(); got != v1alpha1.CanaryTransitionDeprecated {
		t.Errorf("of content that is known: %q", got)
	}
	p.Proposal = Proposal{}
	if got, _ := p.transition(); got != "" {
		t.Errorf("of content that is not known: %q", got)
	}
}

func TestTheStatusSaysWhichOfTheRolloutsWeightsIsLive(t *testing.T) {
	w := newWorld(t)
	w.delegates()
	if w.operate(); w.cr.Status.Delegation != nil {
		t.Errorf("before a split leads the Service: %+v", w.cr.Status.Delegation)
	}
	want := func(when string, weight int32, programmed bool) {
		t.Helper()
		if diff := cmp.Diff(&v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: programmed}, w.cr.Status.Delegation); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", when, diff, w.history())
		}
	}
	w.run(30)
	want("before the Rollout decides", 0, true)
	w.delegate("d1", 40, "")
	w.routerLag = 20
	w.run(8)
	want("on the way", 0, false)
	w.run(30)
	want("live", 40, true)
	w.services["web"].split.requested[0].Weight = 77
	w.operate()
	want("after an edit by another user", 40, false)
	w.cr.Spec.Delegation = nil
	w.run(20)
	if w.cr.Status.Delegation != nil {
		t.Errorf("without a Rollout: %+v", w.cr.Status.Delegation)
	}
}

func TestARolloutThatCouldGiveTheCanaryNothingIsRefused(t *testing.T) {
	w := newWorld(t)
	w.delegates()
	w.weigh(0)
	w.cr.Spec.Services[0].Ports[1].Config.Weight = new(int32)
	w.run(5)
	for _, c := range w.cr.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && !strings.HasPrefix(c.Message, "spec.services: gives the canary no share of any port") {
			t.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
}
