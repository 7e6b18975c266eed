// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// observeServices finds the Services that select pods of a canary, and those that have
// objects of this CanaryRelease.
func (s *observation) observeServices() {
	names := map[string]bool{}
	for name, service := range s.services {
		if isMarked(service, s.CanaryRelease) {
			names[rootOf(service)] = true
		} else if len(s.selected(service)) > 0 {
			names[name] = true
		}
	}
	for name, split := range s.splits {
		if isMarked(split, s.CanaryRelease) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s.Services = append(s.Services, s.observeService(name))
	}
}

// rootOf is the name of the root Service of a backend.
func rootOf(backend *corev1.Service) string {
	return strings.TrimSuffix(backend.Name, "-"+backend.Labels[v1alpha1.LabelRole])
}

// selected are the workloads of the observation whose pods a root Service selects, those
// of candidates and canaries.
func (s *observation) selected(root *corev1.Service) []string {
	selector := traffic.DeclaredSelector(root)
	if len(selector) == 0 || root.Spec.Type == corev1.ServiceTypeExternalName || root.Labels[v1alpha1.LabelRole] != "" {
		return nil
	}
	matches := labels.SelectorFromSet(selector).Matches
	names := map[string]bool{}
	if s.proposal != nil {
		for _, c := range s.proposal.Canaries {
			if matches(labels.Set(c.Template.Labels)) {
				names[c.Name] = true
			}
		}
	}
	for i := range s.replicaSets {
		if rs := &s.replicaSets[i]; isMarked(rs, s.CanaryRelease) && matches(labels.Set(rs.Spec.Template.Labels)) {
			names[rs.Annotations[v1alpha1.AnnotationCanaryWorkload]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (s *observation) observeService(name string) helmrelease.Service {
	out := helmrelease.Service{Name: name, Presence: kit.Absent}
	root := s.services[name]
	if root != nil && root.DeletionTimestamp.IsZero() {
		out.Presence = kit.Present
		selected := s.selected(root)
		if len(selected) == 1 {
			out.Workload = selected[0]
		}
		out.Wanted = slices.ContainsFunc(selected, func(w string) bool { return s.candidate(w) != nil })
		for _, p := range root.Spec.Ports {
			out.Ports = append(out.Ports, helmrelease.Port{Number: p.Port, Transport: string(cmp.Or(p.Protocol, corev1.ProtocolTCP))})
		}
		out.Problem = s.problem(root, selected)
	}
	out.Split = s.observeSplit(name, root)
	out.Stable, out.Canary = s.observeBackend(root, name, v1alpha1.RoleStable), s.observeBackend(root, name, v1alpha1.RoleCanary)
	if out.Workload == "" {
		out.Workload = s.recorded(name)
	}
	if out.Wanted {
		out.Taken = s.taken(name)
	}
	return out
}

// recorded is the workload that the objects of a Service were made for.
func (s *observation) recorded(name string) string {
	if split := s.splits[name]; split != nil && isMarked(split, s.CanaryRelease) {
		return split.Annotations[v1alpha1.AnnotationCanaryWorkload]
	}
	for _, role := range []string{v1alpha1.RoleStable, v1alpha1.RoleCanary} {
		if b := s.services[workload.BackendName(name, role)]; b != nil && isMarked(b, s.CanaryRelease) {
			return b.Annotations[v1alpha1.AnnotationCanaryWorkload]
		}
	}
	return ""
}

// problem says why the traffic of a Service can't be shared by versions of one Deployment;
// "" when it can.
func (s *observation) problem(root *corev1.Service, selected []string) string {
	if root.Spec.ClusterIP == corev1.ClusterIPNone {
		return fmt.Sprintf("The Service %q is headless, so its clients choose among pods themselves, and config changes these pods; give the Service a cluster IP, or upgrade the release instead", root.Name)
	}
	matches := labels.SelectorFromSet(traffic.DeclaredSelector(root)).Matches
	owners := map[string]bool{}
	for _, name := range selected {
		owners[name] = true
	}
	for name, d := range s.deployments {
		if d.Labels[traffic.LabelProxy] == "" && matches(labels.Set(d.Spec.Template.Labels)) {
			owners[name] = true
		}
	}
	if len(owners) > 1 {
		return fmt.Sprintf("The Service %q selects pods of several Deployments (%s), so its traffic can't be split between versions of one of them; give each Deployment a Service of its own",
			root.Name, strings.Join(slices.Sorted(maps.Keys(owners)), ", "))
	}
	if len(selected) != 1 || root.Spec.Selector[traffic.LabelProxy] != "" {
		return ""
	}
	return s.otherPod(root, selected[0])
}

// otherPod says which pod of another owner a Service selects; "" when there is none.
func (s *observation) otherPod(root *corev1.Service, workload string) string {
	for _, pod := range slices.Sorted(maps.Keys(s.readyPods(root.Name))) {
		// Proxies have the labels of the pods, and are endpoints before traffic goes through them.
		if !s.belongs(pod, workload) && !strings.HasPrefix(pod, traffic.ProxyName(root.Name)+"-") {
			return fmt.Sprintf("The Service %q also selects the pod %q, which does not belong to the Deployment %q; give each a Service of its own", root.Name, pod, workload)
		}
	}
	return ""
}

// readyPods are the pods that are ready endpoints of a Service.
func (s *observation) readyPods(service string) map[string]bool {
	pods := map[string]bool{}
	for _, slice := range s.slices[service] {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) && e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				pods[e.TargetRef.Name] = true
			}
		}
	}
	return pods
}

// taken says which other object shares the traffic of a Service already, or has a name
// that is needed; "" when none does.
func (s *observation) taken(name string) string {
	for _, other := range slices.Sorted(maps.Keys(s.splits)) {
		split := s.splits[other]
		root, err := traffic.RootName(split)
		if isMarked(split, s.CanaryRelease) || err != nil || root != name && split.Name != name {
			continue
		}
		return fmt.Sprintf("The TrafficSplit %q splits the Service %q already, and this CanaryRelease needs a split of its own", split.Name, root)
	}
	for i := range s.rollouts {
		if ro := &s.rollouts[i]; ro.Spec.Service == name && !names(ro, s.CanaryRelease) {
			return fmt.Sprintf("The Rollout %q releases versions of the Service %q already, so this CanaryRelease can't use that Service", ro.Name, name)
		}
	}
	return s.takenBackend(name)
}

// takenBackend says which Service has the name of a version's; "" when none does.
func (s *observation) takenBackend(name string) string {
	for _, role := range []string{v1alpha1.RoleStable, v1alpha1.RoleCanary} {
		backend := workload.BackendName(name, role)
		if live := s.services[backend]; live != nil && !isMarked(live, s.CanaryRelease) {
			return fmt.Sprintf("The Service %q does not belong to this CanaryRelease, which needs the name for a version of %q; rename or delete that Service", backend, name)
		}
	}
	return ""
}

// names reports whether a Rollout releases the CanaryRelease itself. Whether it may is
// nothing that the traffic depends on: without the consent it writes nothing.
func names(ro *v1alpha1.Rollout, cr *v1alpha1.CanaryRelease) bool {
	ref := ro.Spec.WorkloadRef
	return ref.Kind == v1alpha1.KindCanaryRelease && ref.Name == cr.Name
}

func (s *observation) observeBackend(root *corev1.Service, name, role string) kit.Backend {
	live := s.services[workload.BackendName(name, role)]
	if live == nil || !live.DeletionTimestamp.IsZero() {
		return kit.Backend{Presence: kit.Absent}
	}
	revision := live.Spec.Selector[revisionLabel]
	b := kit.Backend{Object: shell.ObjectOf(live), Presence: kit.Present, Ours: isMarked(live, s.CanaryRelease), Revision: revision}
	if root != nil {
		b.UpToDate = workload.BackendUpToDate(live, s.makeBackend(root, role, revision, ""))
	}
	for pod := range s.readyPods(live.Name) {
		if s.ofRevision(pod, revision) {
			b.Ready++
		}
	}
	return b
}

// ofRevision reports whether a pod is one of a revision, by its name.
func (s *observation) ofRevision(pod, revision string) bool {
	for i := range s.replicaSets {
		if rs := &s.replicaSets[i]; rs.Labels[revisionLabel] == revision && strings.HasPrefix(pod, podsOf(rs.Name)) {
			return true
		}
	}
	return false
}

// selectorFor is what selects the pods of a version: what the root Service declares, or
// what the Service of the version has already where the root Service was changed so that
// it does not select them any more.
func (s *observation) selectorFor(root *corev1.Service, role, revision string) map[string]string {
	declared := traffic.DeclaredSelector(root)
	live := s.services[workload.BackendName(root.Name, role)]
	if live == nil || !isMarked(live, s.CanaryRelease) {
		return declared
	}
	for i := range s.replicaSets {
		rs := &s.replicaSets[i]
		if rs.Labels[revisionLabel] == revision && live.Spec.Selector[revisionLabel] == revision &&
			labels.SelectorFromSet(live.Spec.Selector).Matches(labels.Set(rs.Spec.Template.Labels)) &&
			!labels.SelectorFromSet(declared).Matches(labels.Set(rs.Spec.Template.Labels)) {
			return live.Spec.Selector
		}
	}
	return declared
}

func (s *observation) makeBackend(root *corev1.Service, role, revision, of string) *corev1.Service {
	svc := workload.MakeBackend(root, s.selectorFor(root, role, revision), role, revision)
	mark(svc, s.CanaryRelease, of)
	return svc
}
