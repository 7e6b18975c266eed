// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// live gives the canary the traffic that the spec asks for.
func live(d *draft) {
	if !establish(d) || !restoreAll(d) || !serve(d, false) {
		return
	}
	who := "spec.services"
	if d := d.CanaryRelease.Spec.Delegation; d != nil {
		who = fmt.Sprintf("the Rollout %q", d.Rollout)
	}
	d.Say(v1alpha1.ReasonServing, "The canary gets the traffic that %s gives it: %s.", who, shares(&d.snapshot))
	d.State.Ready = true
}

// guard keeps the CanaryRelease until Serin has removed the canary.
func guard(d *draft) {
	if !d.finalized() {
		d.Do(kit.AddFinalizer{})
	}
}

// establish sees to everything that has to be there before a canary gets traffic. It
// reports whether that is so.
func establish(d *draft) (done bool) {
	guard(d)
	d.status.Release = comparedWith(&d.snapshot)
	d.status.ManifestDigest, d.status.Later = d.Proposal.Digest, later(&d.snapshot)
	for _, w := range d.candidates() {
		workloadStatus(d, w.Name) // it is looked after from now on, whatever becomes of the canary
	}
	return dropCanaries(d, d.current) && dropServices(d, func(s *Service) bool { return s.Wanted }) &&
		prepare(d) && keepCopies(d)
}

// comparedWith is what is on record of the Helm release before it is upgraded. Tries to do
// that are forgotten with an adoption that was taken back.
func comparedWith(s *snapshot) *v1alpha1.CanaryHelmRelease {
	release := &v1alpha1.CanaryHelmRelease{Revision: s.CanaryRelease.Spec.Version}
	if was := s.status.Release; was != nil && s.decided(v1alpha1.CanaryTransitionAdopted) {
		release.UpgradeTries, release.LastTryAt = was.UpgradeTries, was.LastTryAt
	}
	return release
}

// doubt is why Helm can't say what the release is, or would be.
func doubt(s *snapshot) (why string, doubtful bool) {
	switch {
	case s.Release.Presence == kit.Unknown:
		return s.Release.Problem, true
	case s.Release.Deployed == s.CanaryRelease.Spec.Version && !s.Proposal.Known && !s.Proposal.Invalid:
		return s.Proposal.Problem, true
	}
	return "", false
}

// retreat removes what there is, since no canary can be made any more.
func retreat(d *draft, why *refusal) {
	gone, left := remove(d), ""
	if d.State.Stalled { // a user has to act for that too
		left = d.State.Message
	}
	d.Say(why.reason, "%s. %s", strings.TrimSuffix(why.message, "."), left)
	d.State.Stalled = gone || left != ""
	d.State.Progress = !d.State.Stalled
}

// later is what only an adoption changes: what the proposal says, and Deployments that no
// Service selects.
func later(s *snapshot) []string {
	out := slices.Clone(s.Proposal.Later)
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Candidate && !s.exposed(w) {
			out = append(out, "Deployment/"+w.Name)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > maxLater {
		out = append(out[:maxLater-1:maxLater-1], fmt.Sprintf("and %d more", len(out)-maxLater+1))
	}
	return out
}

const maxLater = 64

// unsettled is a Deployment that does not run what the release says, before anything is
// made; nil when there is none. Later it does not matter.
func unsettled(s *snapshot) *Workload {
	if s.begun() {
		return nil
	}
	for _, w := range s.candidates() {
		if stable := s.stable(w); !w.Settled || stable == nil || !stable.Current {
			return w
		}
	}
	return nil
}

// candidates are the workloads that get a canary.
func (s *snapshot) candidates() (out []*Workload) {
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Candidate && s.exposed(w) {
			out = append(out, w)
		}
	}
	return out
}

// current reports whether a canary is that of the proposal.
func (s *snapshot) current(w *Workload, r *kit.ReplicaSet) bool {
	return w.Candidate && r.Revision == w.Revision && !r.Deleting && s.exposed(w)
}

// canary is the ReplicaSet of the workload's candidate; nil when there is none.
func (s *snapshot) canary(w *Workload) *kit.ReplicaSet {
	return w.find(func(r *kit.ReplicaSet) bool { return r.Owner == kit.OwnerSerin && s.current(w, r) })
}

// prepare puts every Service under a split that sends the canary nothing, before the
// canary has pods.
func prepare(d *draft) bool {
	done := true
	for i := range d.Services {
		s := &d.Services[i]
		if s.Wanted {
			done = prepareService(d, s) && done
		}
	}
	return done
}

func prepareService(d *draft, s *Service) bool {
	w := d.workload(s.Workload)
	nothing := even(s.Ports, 0)
	if s.Split.Presence == kit.Present && s.Split.Deleting {
		d.Wait(v1alpha1.ReasonPreparing, "The TrafficSplit %s is being deleted; Serin makes it again once it is gone.", s.Name)
		return false
	}
	// The Service of the canary selects other pods only while it gets no traffic.
	if c := s.Canary; c.Presence == kit.Present && c.Revision != w.Revision && s.led() && !route(d, s, nothing) {
		return false
	}
	if !prepareBackends(d, s, w) {
		d.Wait(v1alpha1.ReasonPreparing, "Creating the Services of the individual versions of %s.", s.Name)
		return false
	}
	if s.Split.Presence == kit.Present && d.canary(w) != nil || route(d, s, nothing) {
		return true // serve writes the weights of a canary
	}
	d.State.Reason = v1alpha1.ReasonPreparing
	return false
}

func prepareBackends(d *draft, s *Service, w *Workload) bool {
	ready := follow(d, s, d.stable(w))
	if c := s.Canary; !c.Selects(w.Revision) || !c.UpToDate {
		d.Do(kit.ApplyBackend{Version: kit.Version{Service: s.Name, Role: v1alpha1.RoleCanary}, Revision: w.Revision})
		return false
	}
	return ready
}

func (s *snapshot) workload(name string) *Workload {
	for i := range s.Workloads {
		if s.Workloads[i].Name == name {
			return &s.Workloads[i]
		}
	}
	return &Workload{Name: name}
}

// keepCopies makes what pods of the canary read. One of an earlier proposal is replaced.
// The names are on record before they are made.
func keepCopies(d *draft) bool {
	if !dropCopies(d, func(c Copy) bool { return c.Wanted && c.Current }) {
		return false
	}
	done := true
	for _, c := range d.Copies {
		if c.Wanted && c.Presence == kit.Absent {
			done = false
			d.Do(KeepCopy{Kind: c.Kind, Name: c.Name})
		}
		if c.Wanted && c.Presence == kit.Unknown {
			done = false
		}
	}
	if !done {
		d.Wait(v1alpha1.ReasonPreparing, "Creating what the canary's pods read.")
	}
	return done
}

// serve scales the canaries and writes the weights; all traffic and all pods when full.
// It reports whether all of that is live.
func serve(d *draft, full bool) bool {
	done := true
	for _, w := range d.candidates() {
		done = serveWorkload(d, w, full) && done
	}
	return done
}

func serveWorkload(d *draft, w *Workload, full bool) bool {
	want := d.replicas(w, full)
	c := d.canary(w)
	if c == nil {
		d.Do(CreateCanary{Workload: w.Name, Replicas: want})
		d.Wait(v1alpha1.ReasonWaitingForPods, "Making %d pods of the canary of Deployment %s.", want, w.Name)
		return false
	}
	versions.Scale(&d.Draft, c, max(want, c.Replicas), w.Replicas)
	ready := c.Replicas >= want && c.Available >= want
	routed := true
	for _, s := range d.servicesOf(w.Name) {
		if s.Wanted {
			routed = serveService(d, s, c, ready, full) && routed
		}
	}
	switch {
	case !routed:
		return false
	case !ready:
		sayPods(d, w, c, want)
		return false
	case c.Replicas > want:
		versions.Scale(&d.Draft, c, want, w.Replicas)
		d.Wait(v1alpha1.ReasonWaitingForPods, "Scaling the canary of Deployment %s to %d pods.", w.Name, want)
		return false
	}
	return true
}

// serveService writes the weights of one Service. They grow only when all pods are
// available, and are taken back when none is.
func serveService(d *draft, s *Service, c *kit.ReplicaSet, ready, full bool) bool {
	target := d.wanted(s)
	if full {
		target = even(s.Ports, fullWeight)
	}
	switch {
	case c.Available == 0:
		return route(d, s, even(s.Ports, 0)) // said with the pods
	case !grows(s.Split.Requested, target), ready && s.Canary.Ready > 0:
		return route(d, s, target)
	case s.Split.Requested == nil: // the edit of another user or tool is not ours
		return route(d, s, even(s.Ports, 0)) && ready
	case ready:
		d.Wait(v1alpha1.ReasonWaitingForPods, "Waiting until the Service of the canary of %s has ready endpoints.", s.Name)
		return false
	}
	return true // said with the pods
}

func sayPods(d *draft, w *Workload, c *kit.ReplicaSet, want int32) {
	d.Wait(v1alpha1.ReasonWaitingForPods, "%d of the canary's %d pods of Deployment %s are available.", c.Available, want, w.Name)
	if c.Available == 0 {
		d.State.Message += " It gets no traffic."
	}
	if c.Failure != "" {
		d.State.Message = kit.Shorten(d.State.Message + " Its pods can't be created: " + c.Failure)
	}
}

// replicas are the pods that the canary of a workload needs.
func (s *snapshot) replicas(w *Workload, full bool) int32 {
	if full {
		return w.Replicas
	}
	if n := s.CanaryRelease.Spec.Replicas; n != nil {
		return *n
	}
	var most int32
	for _, svc := range s.servicesOf(w.Name) {
		if svc.Wanted {
			most = max(most, largest(s.wanted(svc)))
		}
	}
	share := (int64(w.Replicas)*int64(most) + fullWeight - 1) / fullWeight
	return int32(max(share, 1)) //nolint:gosec // at most as many as the Deployment has
}

// shares say what the canary gets of each Service.
func shares(s *snapshot) string {
	var parts []string
	for i := range s.Services {
		if svc := &s.Services[i]; svc.Wanted {
			parts = append(parts, fmt.Sprintf("%s of Service %s", text(svc.Split.Requested), svc.Name))
		}
	}
	return strings.Join(parts, ", ")
}
