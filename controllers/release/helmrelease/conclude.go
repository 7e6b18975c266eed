// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// ending is how a CanaryRelease ends, and why.
type ending struct {
	transition v1alpha1.CanaryTransition
	reason     v1alpha1.Reason
	why        string
}

// conclusion is how the CanaryRelease ends, as soon as that is certain and differs from the
// record; nil when nothing changes. The empty one says that an adoption was taken back. A
// decision to deprecate sticks; one to adopt can be taken back until Helm was called.
func conclusion(s *snapshot) *ending {
	switch {
	case final(s), inDoubt(s):
		return nil
	case s.upgraded(): // what Helm has deployed can't be deprecated any more
		return &ending{v1alpha1.CanaryTransitionAdopted, v1alpha1.ReasonRequested, "the adoption was requested"}
	}
	if e := deprecation(s); e != nil {
		return e
	}
	return adoption(s)
}

// final reports whether what is on record of the end can't change any more.
func final(s *snapshot) bool {
	return s.decided(v1alpha1.CanaryTransitionDeprecated) || s.adoptedRevision() > 0 || s.upgraded() && s.status.Decision != nil
}

// adoption is that the canary has to be adopted, or not any more; nil when neither changes.
func adoption(s *snapshot) *ending {
	want, by := s.transition()
	adopt, decided := want == v1alpha1.CanaryTransitionAdopted, s.status.Decision != nil
	switch {
	case decided && !adopt && !s.Release.Ours:
		return &ending{}
	case !decided && (adopt && s.begun() || s.Release.Ours):
		return &ending{v1alpha1.CanaryTransitionAdopted, v1alpha1.ReasonRequested, by}
	}
	return nil
}

// deprecation is why the canary has to be deprecated; nil when it does not.
func deprecation(s *snapshot) *ending {
	const t = v1alpha1.CanaryTransitionDeprecated
	if s.deleting() {
		return &ending{t, v1alpha1.ReasonDeleting, "the CanaryRelease is being deleted"}
	}
	if want, by := s.transition(); want == t {
		return &ending{t, v1alpha1.ReasonRequested, by}
	}
	if reason, why := changed(s); why != "" {
		return &ending{t, reason, why}
	}
	return nil
}

// inDoubt reports whether Helm may have deployed what this CanaryRelease tried: it was
// called, and its records can't be read. To deprecate now would leave a release that is
// upgraded. A deletion waits for an answer as long as it waits for a router.
func inDoubt(s *snapshot) bool {
	r := s.status.Release
	called := s.decided(v1alpha1.CanaryTransitionAdopted) && r != nil && r.UpgradeTries > 0
	return called && s.Release.Presence == kit.Unknown && !s.overdue() && !s.Doomed
}

// changed says what changed of that which the canary is compared with; "" when nothing did.
func changed(s *snapshot) (reason v1alpha1.Reason, why string) {
	r, spec := s.Release, s.CanaryRelease.Spec
	if r.Ours || r.Presence == kit.Unknown {
		return "", ""
	}
	switch {
	case r.Newest > spec.Version:
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("revision %d of release %s was not made by this CanaryRelease", r.Newest, spec.Release)
	case !s.begun():
		return "", ""
	case r.Presence == kit.Absent, r.Newest == spec.Version && strings.HasPrefix(r.Status, "uninstall"):
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("release %s was uninstalled", spec.Release)
	case r.Newest < spec.Version:
		return v1alpha1.ReasonReleaseChanged, fmt.Sprintf("release %s was installed again", spec.Release)
	}
	for i := range s.Workloads {
		if w := &s.Workloads[i]; s.drifted(w) {
			return v1alpha1.ReasonWorkloadChanged, fmt.Sprintf("the pod template of Deployment %s was changed outside of this CanaryRelease", w.Name)
		}
	}
	return "", ""
}

// drifted reports whether the Deployment of a canary has other pods than those that its
// Services are pinned to. That no version of it is seen shows nothing: a ReplicaSet that was deleted
// is made again.
func (s *snapshot) drifted(w *Workload) bool {
	if w.Presence != kit.Present || w.Deleting {
		return false
	}
	for _, svc := range s.servicesOf(w.Name) {
		if svc.Stable.Presence != kit.Present || !svc.Stable.Ours || svc.Split.Presence != kit.Present {
			continue
		}
		current := w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerDeployment && r.Current })
		pinned := w.find(func(r *kit.ReplicaSet) bool {
			return r.Owner == kit.OwnerDeployment && r.Revision == svc.Stable.Revision
		})
		if current != pinned {
			return true
		}
	}
	return false
}

// upgraded reports whether Helm has deployed what this CanaryRelease tried.
func (s *snapshot) upgraded() bool {
	r := s.Release
	return r.Presence == kit.Present && r.Ours && r.Newest > 0 && r.Deployed == r.Newest
}

// conclude puts on record how it ends, before that is acted on.
func conclude(d *draft) {
	e := conclusion(&d.snapshot)
	if e.transition == v1alpha1.CanaryTransitionNone {
		d.status.Decision = nil
		return
	}
	d.status.Decision = &v1alpha1.CanaryDecision{Transition: e.transition, Reason: e.reason, Message: kit.Shorten(e.why), Time: d.micro()}
	warning := e.reason != v1alpha1.ReasonRequested && e.reason != v1alpha1.ReasonDeleting
	if e.transition == v1alpha1.CanaryTransitionAdopted {
		d.Note(warning, v1alpha1.ReasonAdopting, "Release %s is being upgraded to what the canary runs", d.CanaryRelease.Spec.Release)
		return
	}
	d.Note(warning, v1alpha1.ReasonDeprecating, "The canary of release %s is being removed: %s", d.CanaryRelease.Spec.Release, e.why)
}

// end records that nothing is left to do.
func end(d *draft) {
	at := d.micro()
	d.status.Decision.EndedAt = &at
	if d.decided(v1alpha1.CanaryTransitionAdopted) {
		d.Note(false, v1alpha1.ReasonAdopted, "Release %s is at revision %d, which runs what the canary ran", d.CanaryRelease.Spec.Release, d.adoptedRevision())
	} else {
		d.Note(false, v1alpha1.ReasonDeprecated, "The canary of release %s is gone", d.CanaryRelease.Spec.Release)
	}
}

// rest says how it ended.
func rest(d *draft) {
	if d.finalized() {
		d.Do(kit.RemoveFinalizer{})
	}
	made := d.status.Decision
	if made.Transition == v1alpha1.CanaryTransitionAdopted {
		d.Say(v1alpha1.ReasonAdopted, "Release %s was upgraded to revision %d.%s", d.CanaryRelease.Spec.Release, d.adoptedRevision(), rolled(&d.snapshot))
		d.State.Ready = true
		return
	}
	d.Say(v1alpha1.ReasonDeprecated, "The canary and all that belonged to it are gone: %s.", made.Message)
	d.State.Ready = made.Reason == v1alpha1.ReasonRequested || made.Reason == v1alpha1.ReasonDeleting
	d.State.Stalled = !d.State.Ready
}

// rolled says which pods were not those of the canary.
func rolled(s *snapshot) string {
	var b strings.Builder
	for _, w := range s.status.Workloads {
		if w.Rolled != "" {
			fmt.Fprintf(&b, " Deployment %s made pods of its own, %s.", w.Name, w.Rolled)
		}
	}
	if b.Len() == 0 {
		return " The canary's pods are its pods now."
	}
	return b.String()
}
