// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// live gives the canary the traffic that the spec asks for.
func (p *pass) live() {
	if !p.establish() || !p.letGo() || !p.serve(false) {
		return
	}
	who := "spec.services"
	if d := p.CanaryRelease.Spec.Delegation; d != nil {
		who = fmt.Sprintf("the Rollout %q", d.Rollout)
	}
	p.say(v1alpha1.ReasonServing, "The canary gets what %s gives it: %s.", who, p.shares())
	p.state.ready = true
}

// establish sees to everything that has to be there before a canary gets traffic. It
// reports whether that is so.
func (p *pass) establish() bool {
	if p.uncertain() {
		return false
	}
	if why := p.refused(); why != nil {
		p.retreat(why)
		return false
	}
	if !p.finalizer() {
		p.do(AddFinalizer{})
	}
	if !p.settled() {
		return false
	}
	p.status.Release = p.comparedWith()
	p.status.ManifestDigest, p.status.Later = p.Proposal.Digest, p.later()
	for i := range p.Workloads {
		if w := &p.Workloads[i]; w.Candidate && p.exposed(w) {
			p.workloadStatus(w.Name) // it is looked after from now on, whatever becomes of the canary
		}
	}
	return p.dropCanaries(p.current) && p.dropServices(func(s *Service) bool { return s.Wanted }) &&
		p.prepare() && p.keepCopies()
}

// comparedWith is what is on record of the Helm release before it is upgraded. Tries to do
// that are forgotten with an adoption that was taken back.
func (p *pass) comparedWith() *v1alpha1.CanaryHelmRelease {
	release := &v1alpha1.CanaryHelmRelease{Revision: p.CanaryRelease.Spec.Version}
	if was := p.status.Release; was != nil && p.decided(v1alpha1.CanaryTransitionAdopted) {
		release.UpgradeTries, release.LastTryAt = was.UpgradeTries, was.LastTryAt
	}
	return release
}

// uncertain reports whether Helm could not say what the release is, or would be. Nothing
// is changed then.
func (p *pass) uncertain() bool {
	why := ""
	switch {
	case p.Release.Presence == Unknown:
		why = p.Release.Problem
	case p.Release.Deployed == p.CanaryRelease.Spec.Version && !p.Proposal.Known && !p.Proposal.Invalid:
		why = p.Proposal.Problem
	default:
		return false
	}
	p.wait(v1alpha1.ReasonObservationFailed, "Waiting: %s. Nothing is changed meanwhile.", why)
	return true
}

// retreat takes out what there is, since no canary can be made any more.
func (p *pass) retreat(why *refusal) {
	gone, left := p.takeDown(), ""
	if p.state.stalled { // a person has to act for that too
		left = p.state.message
	}
	p.say(why.reason, "%s. %s", strings.TrimSuffix(why.message, "."), left)
	p.state.stalled = gone || left != ""
	p.state.progress = !p.state.stalled
}

// later is what only an adoption changes: what the proposal says, and Deployments that no
// Service selects.
func (p *pass) later() []string {
	out := slices.Clone(p.Proposal.Later)
	for i := range p.Workloads {
		if w := &p.Workloads[i]; w.Candidate && !p.exposed(w) {
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

// settled reports whether every Deployment runs what the release says, before anything is
// made. Later it does not matter.
func (p *pass) settled() bool {
	if p.begun() {
		return true
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if !w.Candidate || !p.exposed(w) {
			continue
		}
		if s := p.stable(w); !w.Settled || s == nil || !s.Current {
			p.wait(v1alpha1.ReasonDeploying, "Waiting until the Deployment %s has all its pods as the release says.", w.Name)
			return false
		}
	}
	return true
}

// current reports whether a canary is that of the proposal.
func (p *pass) current(w *Workload, r *ReplicaSet) bool {
	return w.Candidate && r.Revision == w.Revision && !r.Deleting && p.exposed(w)
}

// canary is the ReplicaSet of the workload's candidate; nil when there is none.
func (p *pass) canary(w *Workload) *ReplicaSet {
	return w.find(func(r *ReplicaSet) bool { return r.Owner == OwnerCanary && p.current(w, r) })
}

// prepare puts every Service under a split that sends the canary nothing, before the
// canary has pods.
func (p *pass) prepare() bool {
	done := true
	for i := range p.Services {
		s := &p.Services[i]
		if s.Wanted {
			done = p.prepareService(s) && done
		}
	}
	return done
}

func (p *pass) prepareService(s *Service) bool {
	w := p.workload(s.Workload)
	nothing := even(s.Ports, 0)
	canary := p.canary(w)
	if s.Split.Presence == Present && s.Split.Deleting {
		p.wait(v1alpha1.ReasonPreparing, "Somebody deleted the TrafficSplit %s; it is made again when it is gone.", s.Name)
		return false
	}
	// The Service of the canary selects other pods only while it gets no traffic.
	if c := s.Canary; c.Presence == Present && c.Revision != w.Revision && s.led() && !p.route(s, nothing) {
		return false
	}
	ready := p.follow(s, p.stable(w))
	if c := s.Canary; c.Presence != Present || c.Revision != w.Revision || !c.UpToDate {
		p.do(ApplyBackend{Service: s.Name, Role: v1alpha1.RoleCanary, Revision: w.Revision})
		ready = false
	}
	if !ready {
		p.wait(v1alpha1.ReasonPreparing, "Making the Services of the single versions of %s.", s.Name)
		return false
	}
	if s.Split.Presence == Present && canary != nil {
		return true // serve writes its weights
	}
	if p.route(s, nothing) {
		return true
	}
	p.state.reason = v1alpha1.ReasonPreparing
	return false
}

func (p *pass) workload(name string) *Workload {
	for i := range p.Workloads {
		if p.Workloads[i].Name == name {
			return &p.Workloads[i]
		}
	}
	return &Workload{Name: name}
}

// keepCopies makes what pods of the canary read. One of an earlier proposal is replaced.
// The names are on record before they are made.
func (p *pass) keepCopies() bool {
	if !p.dropCopies(func(c Copy) bool { return c.Wanted && c.Current }) {
		return false
	}
	done := true
	for _, c := range p.Copies {
		if c.Wanted && c.Presence == Absent {
			done = false
			p.do(KeepCopy{Kind: c.Kind, Name: c.Name})
		}
		if c.Wanted && c.Presence == Unknown {
			done = false
		}
	}
	if !done {
		p.wait(v1alpha1.ReasonPreparing, "Making what the canary's pods read.")
	}
	return done
}

// serve scales the canaries and writes the weights; all traffic and all pods when full.
// It reports whether everything is in effect.
func (p *pass) serve(full bool) bool {
	done := true
	for i := range p.Workloads {
		if w := &p.Workloads[i]; w.Candidate && p.exposed(w) {
			done = p.serveWorkload(w, full) && done
		}
	}
	return done
}

func (p *pass) serveWorkload(w *Workload, full bool) bool {
	want := p.replicas(w, full)
	c := p.canary(w)
	if c == nil {
		p.do(CreateCanary{Workload: w.Name, Replicas: want})
		p.wait(v1alpha1.ReasonWaitingForPods, "Making %d pods of the canary of Deployment %s.", want, w.Name)
		return false
	}
	if c.Replicas < want || c.Desired != w.Replicas {
		p.do(ScaleReplicaSet{Target: target(c), Replicas: max(want, c.Replicas), Desired: w.Replicas})
	}
	ready := c.Replicas >= want && c.Available >= want
	routed := true
	for _, s := range p.servicesOf(w.Name) {
		if s.Wanted {
			routed = p.serveService(s, c, ready, full) && routed
		}
	}
	switch {
	case !routed:
		return false
	case !ready:
		p.sayPods(w, c, want)
		return false
	case c.Replicas > want:
		p.do(ScaleReplicaSet{Target: target(c), Replicas: want, Desired: w.Replicas})
		p.wait(v1alpha1.ReasonWaitingForPods, "Scaling the canary of Deployment %s to %d pods.", w.Name, want)
		return false
	}
	return true
}

// serveService writes the weights of one Service. They grow only when all pods are
// available, and are taken back when none is.
func (p *pass) serveService(s *Service, c *ReplicaSet, ready, full bool) bool {
	target := p.wanted(s)
	if full {
		target = even(s.Ports, fullWeight)
	}
	switch {
	case c.Available == 0:
		return p.route(s, even(s.Ports, 0)) // said with the pods
	case !grows(s.Split.Requested, target), ready && s.Canary.Ready > 0:
		return p.route(s, target)
	case s.Split.Requested == nil: // somebody else's edit is never taken for ours
		return p.route(s, even(s.Ports, 0)) && ready
	case ready:
		p.wait(v1alpha1.ReasonWaitingForPods, "Waiting until the Service of the canary of %s has ready endpoints.", s.Name)
		return false
	}
	return true // said with the pods
}

func (p *pass) sayPods(w *Workload, c *ReplicaSet, want int32) {
	p.wait(v1alpha1.ReasonWaitingForPods, "%d of the canary's %d pods of Deployment %s are available.", c.Available, want, w.Name)
	if c.Available == 0 {
		p.state.message += " It gets no traffic."
	}
	if c.Failure != "" {
		p.state.message = shorten(p.state.message + " Its pods can't be created: " + c.Failure)
	}
}

// replicas are the pods that the canary of a workload needs.
func (p *pass) replicas(w *Workload, full bool) int32 {
	if full {
		return w.Replicas
	}
	if n := p.CanaryRelease.Spec.Replicas; n != nil {
		return *n
	}
	var most int32
	for _, s := range p.servicesOf(w.Name) {
		if s.Wanted {
			most = max(most, largest(p.wanted(s)))
		}
	}
	share := (int64(w.Replicas)*int64(most) + fullWeight - 1) / fullWeight
	return int32(max(share, 1)) //nolint:gosec // at most as many as the Deployment has
}

// shares say what the canary gets of each Service.
func (p *pass) shares() string {
	var parts []string
	for i := range p.Services {
		if s := &p.Services[i]; s.Wanted {
			parts = append(parts, fmt.Sprintf("%s of Service %s", text(s.Split.Requested), s.Name))
		}
	}
	return strings.Join(parts, ", ")
}
