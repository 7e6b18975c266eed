// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// before returns what is observed when an action with that beginning is due next.
func (w *world) before(action string) Observation {
	for range 400 {
		w.now = w.now.Add(time.Second)
		for _, move := range []func(){w.operate, w.deploymentController, w.replicaSetController, w.router} {
			if o := w.observe(); does(Decide(o), action) {
				return o
			}
			move()
		}
	}
	w.Fatalf("it never does %q\n%s", action, w.history())
	return Observation{}
}

func does(d Decision, action string) bool {
	return slices.ContainsFunc(names(d.Actions), func(name string) bool { return strings.HasPrefix(name, action) })
}

// canaryOf and ownOf are the ReplicaSets of the only workload that change hands.
func canaryOf(o *Observation) *kit.ReplicaSet {
	return o.Workloads[0].find(func(r *kit.ReplicaSet) bool { return r.Marked })
}

func ownOf(o *Observation) *kit.ReplicaSet {
	return o.Workloads[0].find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && !r.Marked && r.Current })
}

func oldOf(o *Observation) *kit.ReplicaSet {
	return o.Workloads[0].find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && !r.Marked })
}

const (
	pauseWeb    = "pause Deployment web"
	goOnWeb     = "let Deployment web go on"
	callHelm    = "upgrade the Helm release"
	handOverAny = "hand ReplicaSet"
	scaleAny    = "scale ReplicaSet"
	returnWeb   = "set the canary's weights of web to 0 %"
	allToCanary = "set the canary's weights of web to 100 %"
)

func TestEachStepOfAnAdoptionWaitsForTheOneBefore(t *testing.T) {
	tests := []struct {
		name   string
		rolls  bool
		before string
		change func(*Observation)
		// does and not are beginnings of actions; "" is none.
		does, not string
	}{
		{"the Deployment is held before Helm is called", false, pauseWeb, func(*Observation) {}, pauseWeb, callHelm},
		{"a canary with one pod too many keeps the Deployment from being held", false, pauseWeb, func(o *Observation) { canaryOf(o).Existing++ }, "", pauseWeb},
		{"a canary with one pod too many keeps Helm from being called", false, callHelm, func(o *Observation) { canaryOf(o).Existing++ }, "", callHelm},
		{"a canary with one pod too many is not handed over", false, handOverAny, func(o *Observation) { canaryOf(o).Existing++ }, "", handOverAny},
		{"a canary with a pod that is not available is not handed over", false, handOverAny, func(o *Observation) { canaryOf(o).Available-- }, "", handOverAny},
		{"a canary that announces another scale announces the right one first", false, handOverAny, func(o *Observation) { canaryOf(o).Desired++ }, scaleAny, handOverAny},
		{"pods that read copies are replaced", false, handOverAny, func(o *Observation) { canaryOf(o).Rolls = true }, "", handOverAny},
		{"the Deployment makes pods of its own when it is not paused any more", false, handOverAny, func(o *Observation) { o.Workloads[0].Paused = false }, "", handOverAny},
		{"the Deployment is held until the last old pod is gone", false, goOnWeb, func(o *Observation) { oldOf(o).Existing = 1 }, "", goOnWeb},
		{"a Deployment that is scaled meanwhile is released, since it would keep both versions", false, goOnWeb, func(o *Observation) {
			oldOf(o).Existing, o.Workloads[0].Replicas = 1, 6
		}, goOnWeb, ""},
		{"the canary keeps its traffic until the Deployment's last pod is available", true, returnWeb, func(o *Observation) { ownOf(o).Available-- }, "", returnWeb},
		{"the canary keeps its traffic until the Deployment has settled", true, returnWeb, func(o *Observation) { o.Workloads[0].Settled = false }, "", returnWeb},
		{"traffic that went back to the Deployment stays there", true, scaleAny, func(o *Observation) { ownOf(o).Available-- }, "", allToCanary},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.rolls["web"] = test.rolls
			w.run(30)
			w.transition(v1alpha1.CanaryTransitionAdopted)
			if test.before == scaleAny { // the canary is scaled up before, too
				w.before(returnWeb)
			}
			o := w.before(test.before)
			test.change(&o)
			d := Decide(o)
			if test.does != "" && !does(d, test.does) || test.not != "" && does(d, test.not) {
				t.Errorf("it does %q, and should do %q and not %q", names(d.Actions), test.does, test.not)
			}
		})
	}
}

// Another actor un-pauses the Deployment and pauses it again before it has made a pod.
func TestPodsThatAreHandedOverAfterAllAreNotCalledTheDeploymentsOwn(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.transition(v1alpha1.CanaryTransitionAdopted)
	o := w.before(handOverAny)
	o.Workloads[0].Paused = false
	interrupted := Decide(o).Status
	if got := interrupted.Workloads[0].Rolled; got != rolledItself {
		t.Fatalf("rolled: %q, want %q", got, rolledItself)
	}
	o.Workloads[0].Paused = true
	o.CanaryRelease.Status = interrupted
	canaryOf(&o).Owner = kit.OwnerDeployment
	if got := Decide(o).Status.Workloads[0]; !got.HandedOver || got.Rolled != "" {
		t.Errorf("got %+v", got)
	}
}
