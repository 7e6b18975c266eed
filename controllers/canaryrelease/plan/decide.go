// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const maxMessage = 1024

// Decision is what to do now.
type Decision struct {
	// Status is the status to write before any action. Where it equals the observed one,
	// nothing is written.
	Status v1alpha1.CanaryReleaseStatus
	// Actions in order; the first error stops the rest.
	Actions []Action
	// Events tell people of transitions, after the status was written.
	Events []Event
	// After is when to look again if nothing changes; 0 means only on a change.
	After time.Duration
}

// Event is a note for people on the CanaryRelease.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

// state is the one sentence about the situation, with what kstatus wants to know.
type state struct {
	ready, stalled, progress bool
	reason                   v1alpha1.Reason
	message                  string
}

// pass is one decision in the making. It is created by Decide and never leaves it.
type pass struct {
	Observation
	status  v1alpha1.CanaryReleaseStatus
	actions []Action
	events  []Event
	state   state
	after   time.Duration
}

// Decide returns what to do about a CanaryRelease, given what was observed.
func Decide(o Observation) Decision {
	p := &pass{Observation: o, status: *o.CanaryRelease.Status.DeepCopy()}
	p.run()
	return p.decision()
}

func (p *pass) run() {
	if p.Unreadable != "" {
		p.say(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", p.Unreadable)
		return
	}
	p.conclude()
	switch {
	case p.ended():
		p.rest()
	case p.decided(v1alpha1.CanaryTransitionDeprecated):
		p.deprecate()
	case p.decided(v1alpha1.CanaryTransitionAdopted):
		p.adopt()
	default:
		p.live()
	}
}

// conclude decides how the CanaryRelease ends, as soon as that is certain. A decision to
// deprecate sticks; one to adopt can be taken back until Helm was called.
func (p *pass) conclude() {
	if p.ended() || p.decided(v1alpha1.CanaryTransitionDeprecated) || p.adoptedRevision() > 0 {
		return
	}
	reason, why := p.changed()
	want, by := p.transition()
	switch {
	case p.upgraded(): // it is seen through: what Helm has deployed can't be deprecated any more
		if p.status.Decision == nil {
			p.decide(v1alpha1.CanaryTransitionAdopted, v1alpha1.ReasonRequested, "it was asked for")
		}
	case p.inDoubt():
	case !p.CanaryRelease.DeletionTimestamp.IsZero():
		p.decide(v1alpha1.CanaryTransitionDeprecated, v1alpha1.ReasonDeleting, "the CanaryRelease is being deleted")
	case want == v1alpha1.CanaryTransitionDeprecated:
		p.decide(v1alpha1.CanaryTransitionDeprecated, v1alpha1.ReasonRequested, by)
	case why != "":
		p.decide(v1alpha1.CanaryTransitionDeprecated, reason, why)
	case p.status.Decision != nil && want != v1alpha1.CanaryTransitionAdopted && !p.Release.Ours:
		p.status.Decision = nil
	case p.status.Decision == nil && (want == v1alpha1.CanaryTransitionAdopted && p.begun() || p.Release.Ours):
		p.decide(v1alpha1.CanaryTransitionAdopted, v1alpha1.ReasonRequested, by)
	}
}

// inDoubt reports whether Helm may have deployed what this CanaryRelease tried: it was
// called, and its records can't be read. Who went back now would leave a release that is
// upgraded. A deletion waits for an answer as long as it waits for a router.
func (p *pass) inDoubt() bool {
	r := p.status.Release
	called := p.decided(v1alpha1.CanaryTransitionAdopted) && r != nil && r.UpgradeTries > 0
	return called && p.Release.Presence == Unknown && !p.overdue()
}

// changed says who changed what the canary is compared with; "" when nobody did.
func (p *pass) changed() (reason v1alpha1.Reason, why string) {
	r, spec := p.Release, p.CanaryRelease.Spec
	if r.Ours || r.Presence == Unknown {
		return "", ""
	}
	switch {
	case r.Newest > spec.Version:
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("revision %d of release %s was made by somebody else", r.Newest, spec.Release)
	case !p.begun():
		return "", ""
	case r.Presence == Absent, r.Newest == spec.Version && strings.HasPrefix(r.Status, "uninstall"):
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("release %s was uninstalled by somebody else", spec.Release)
	case r.Newest < spec.Version:
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("release %s was installed anew by somebody else", spec.Release)
	}
	for i := range p.Workloads {
		if w := &p.Workloads[i]; p.drifted(w) {
			return v1alpha1.ReasonWorkloadChanged, fmt.Sprintf("the pods of Deployment %s were changed by somebody else", w.Name)
		}
	}
	return "", ""
}

// drifted reports whether the Deployment of a canary has other pods than those that its
// Services are pinned to.
func (p *pass) drifted(w *Workload) bool {
	if w.Presence != Present || w.Deleting {
		return false
	}
	for _, s := range p.servicesOf(w.Name) {
		if s.Stable.Presence != Present || !s.Stable.Ours || s.Split.Presence != Present {
			continue
		}
		current := w.find(func(r *ReplicaSet) bool {
			return r.Owner == OwnerDeployment && r.Current && r.Revision == s.Stable.Revision
		})
		if current == nil {
			return true
		}
	}
	return false
}

// upgraded reports whether Helm has deployed what this CanaryRelease tried.
func (p *pass) upgraded() bool {
	r := p.Release
	return r.Presence == Present && r.Ours && r.Newest > 0 && r.Deployed == r.Newest
}

func (p *pass) adoptedRevision() int32 {
	if p.status.Release == nil {
		return 0
	}
	return p.status.Release.AdoptedRevision
}

// begun reports whether anything was made for the CanaryRelease.
func (p *pass) begun() bool { return p.status.Release != nil }

func (p *pass) ended() bool { return p.status.Decision != nil && p.status.Decision.EndedAt != nil }

func (p *pass) decided(t v1alpha1.CanaryTransition) bool {
	return p.status.Decision != nil && p.status.Decision.Transition == t
}

// decide records how it ends. That is written before it is acted on.
func (p *pass) decide(t v1alpha1.CanaryTransition, reason v1alpha1.Reason, why string) {
	p.status.Decision = &v1alpha1.CanaryDecision{Transition: t, Reason: reason, Message: shorten(why), Time: p.micro()}
	warning := reason != v1alpha1.ReasonRequested && reason != v1alpha1.ReasonDeleting
	if t == v1alpha1.CanaryTransitionAdopted {
		p.note(warning, v1alpha1.ReasonAdopting, "Release %s is being made what the canary is", p.CanaryRelease.Spec.Release)
		return
	}
	p.note(warning, v1alpha1.ReasonDeprecating, "The canary of release %s is being taken out: %s", p.CanaryRelease.Spec.Release, why)
}

// end records that nothing is left to do.
func (p *pass) end() {
	d := p.status.Decision
	at := p.micro()
	d.EndedAt = &at
	if d.Transition == v1alpha1.CanaryTransitionAdopted {
		p.note(false, v1alpha1.ReasonAdopted, "Release %s is revision %d, which is what the canary was", p.CanaryRelease.Spec.Release, p.adoptedRevision())
	} else {
		p.note(false, v1alpha1.ReasonDeprecated, "The canary of release %s is gone", p.CanaryRelease.Spec.Release)
	}
	p.rest()
}

// rest says how it ended.
func (p *pass) rest() {
	if p.finalizer() {
		p.do(RemoveFinalizer{})
	}
	d := p.status.Decision
	if d.Transition == v1alpha1.CanaryTransitionAdopted {
		p.say(v1alpha1.ReasonAdopted, "Release %s was upgraded to revision %d.%s", p.CanaryRelease.Spec.Release, p.adoptedRevision(), p.rolled())
		p.state.ready = true
		return
	}
	p.say(v1alpha1.ReasonDeprecated, "The canary is gone and left no trace: %s.", d.Message)
	p.state.ready = d.Reason == v1alpha1.ReasonRequested || d.Reason == v1alpha1.ReasonDeleting
	p.state.stalled = !p.state.ready
}

// rolled says which pods were not those of the canary.
func (p *pass) rolled() string {
	var b strings.Builder
	for _, w := range p.status.Workloads {
		if w.Rolled != "" {
			fmt.Fprintf(&b, " Deployment %s made pods of its own, %s.", w.Name, w.Rolled)
		}
	}
	if b.Len() == 0 {
		return " The canary's pods are its pods now."
	}
	return b.String()
}

func (p *pass) finalizer() bool {
	return slices.Contains(p.CanaryRelease.Finalizers, v1alpha1.FinalizerCanaryRelease)
}

func (p *pass) do(a ...Action) { p.actions = append(p.actions, a...) }

// say sets the sentence of this decision.
func (p *pass) say(reason v1alpha1.Reason, format string, args ...any) {
	p.state.reason, p.state.message = reason, strings.TrimSpace(fmt.Sprintf(format, args...))
}

// wait says what is under way.
func (p *pass) wait(reason v1alpha1.Reason, format string, args ...any) {
	p.say(reason, format, args...)
	p.state.progress = true
}

func (p *pass) note(warning bool, reason, format string, args ...any) {
	p.events = append(p.events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// wake asks to be called again after d at the latest.
func (p *pass) wake(d time.Duration) {
	if d = max(d, time.Millisecond); p.after == 0 || d < p.after {
		p.after = d
	}
}

// micro is now as the status stores it.
func (p *pass) micro() metav1.MicroTime { return *p.microOf(p.Now) }

func (p *pass) microOf(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

func target(r *ReplicaSet) Target {
	return Target{Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion}
}

// find returns the first ReplicaSet that matches, or nil.
func (w *Workload) find(match func(*ReplicaSet) bool) *ReplicaSet {
	for i := range w.ReplicaSets {
		if match(&w.ReplicaSets[i]) {
			return &w.ReplicaSets[i]
		}
	}
	return nil
}

// servicesOf are the Services of a workload.
func (p *pass) servicesOf(workload string) []*Service {
	var out []*Service
	for i := range p.Services {
		if p.Services[i].Workload == workload {
			out = append(out, &p.Services[i])
		}
	}
	return out
}

func shorten(s string) string { return shortenTo(s, maxMessage) }

func shortenTo(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
