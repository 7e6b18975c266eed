// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// Decide returns what to do about a Rollout, given what was observed.
func Decide(o Observation) Decision {
	p := &pass{Observation: o, status: *o.Rollout.Status.DeepCopy()}
	p.clearOutbox()
	p.recognise()
	p.run()
	return p.decision()
}

// pass is one decision in the making. It is created by Decide and never leaves
// it.
type pass struct {
	Observation
	settings

	status  v1alpha1.RolloutStatus
	actions []Action
	events  []Event
	state   state
	after   time.Duration
	next    time.Time // when the release goes on; zero when it waits for something else
	measure bool
	// leaving is whether the traffic returns to the root Service, and no weight is in
	// effect any more.
	leaving bool
	verdict judge.Result
	// failed is whether the analysis failed, whatever is done about it.
	failed    bool
	questions []Question
	// refusal is why the Rollout can't be served; nil when it can.
	refusal *state

	// canary is the ReplicaSet of the workload's present template and revision its
	// name, once it has one. Set by release.
	canary   *ReplicaSet
	revision string
}

func (p *pass) run() {
	switch {
	case p.Unreadable != "":
		p.say(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", p.Unreadable)
	case !p.Rollout.DeletionTimestamp.IsZero():
		p.delete()
	case p.refused():
		p.retreat()
	default:
		if !slices.Contains(p.Rollout.Finalizers, v1alpha1.Finalizer) {
			p.do(AddFinalizer{})
		}
		p.live()
	}
}

// converge finds out which of the situations of a living Rollout this is.
func (p *pass) converge() {
	if p.paired() {
		p.convergePair()
		return
	}
	if p.delegated() {
		p.convergeDelegated()
		return
	}
	stable := p.stable()
	switch {
	case p.leavePath():
	case p.promoted() != nil:
		p.adopt(p.promoted())
	case stable == nil && p.stableLost():
	case stable == nil:
		p.firstDeployment()
	case p.disturbed(), p.usurped(stable):
	case stable.Current:
		p.settle(stable)
	case p.idle():
		p.withoutPods()
	case p.residue():
		p.cleanUp()
	default:
		p.release(stable)
	}
}

// stable is the ReplicaSet of the stable version, nil when none is known.
func (p *pass) stable() *ReplicaSet {
	if p.status.Stable == nil {
		return nil
	}
	return p.find(func(r *ReplicaSet) bool {
		return r.Owner == OwnerDeployment && r.Revision == p.status.Stable.Revision
	})
}

// promoted is the ReplicaSet that was promoted and handed over, until it is
// recorded as stable.
func (p *pass) promoted() *ReplicaSet {
	if !p.decided(v1alpha1.ActionPromote) || !p.status.Decision.HandedOver {
		return nil
	}
	return p.find(func(r *ReplicaSet) bool {
		return r.Owner != OwnerRollout && r.Revision == p.status.Decision.Revision
	})
}

// slipped is a ReplicaSet that the Deployment controller brought up past Serin:
// the template was changed while nothing held the Deployment.
func (p *pass) slipped() *ReplicaSet {
	return p.find(func(r *ReplicaSet) bool {
		return r.Owner == OwnerDeployment && r.Current && !r.gone() && r.Revision != p.status.Stable.Revision
	})
}

// residue reports whether objects of an earlier release are still in place.
func (p *pass) residue() bool {
	return !p.begun() && (p.StableService.Presence == Present && p.StableService.Revision != p.status.Stable.Revision || p.Split.Deleting)
}

func (p *pass) find(match func(*ReplicaSet) bool) *ReplicaSet {
	for i := range p.ReplicaSets {
		if match(&p.ReplicaSets[i]) {
			return &p.ReplicaSets[i]
		}
	}
	return nil
}

func (p *pass) decided(a v1alpha1.DecisionAction) bool {
	return p.status.Decision != nil && p.status.Decision.Action == a
}

func (p *pass) do(a ...Action) { p.actions = append(p.actions, a...) }

// say sets the sentence of this decision; it returns true for the sake of its
// callers, which say why they stop.
func (p *pass) say(reason v1alpha1.Reason, format string, args ...any) bool {
	p.state.reason, p.state.message = reason, strings.TrimSpace(fmt.Sprintf(format, args...))
	return true
}

func (p *pass) note(warning bool, reason, format string, args ...any) {
	p.events = append(p.events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// goesOn says when the release goes on if nothing else happens, and asks to be
// called then.
func (p *pass) goesOn(t time.Time) {
	if t.IsZero() {
		return
	}
	p.next = t
	p.wake(t)
}

// wake asks to be called again at t at the latest.
func (p *pass) wake(t time.Time) {
	d := max(t.Sub(p.Now), time.Millisecond)
	if p.after == 0 || d < p.after {
		p.after = d
	}
}

// micro is now as the status stores it, rounded up: what began before it must
// not seem to have begun after.
func (p *pass) micro() metav1.MicroTime {
	t := p.Now.Truncate(time.Microsecond)
	if t.Before(p.Now) {
		t = t.Add(time.Microsecond)
	}
	return metav1.NewMicroTime(t)
}

func target(r *ReplicaSet) Target {
	return Target{Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion}
}
