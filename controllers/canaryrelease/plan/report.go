// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// decision puts the pass together.
func (p *pass) decision() Decision {
	st := &p.status
	st.ObservedGeneration = p.CanaryRelease.Generation
	if p.Unreadable == "" {
		p.reportWorkloads()
		p.reportServices()
		p.reportDelegation()
		p.reportCopies()
	}
	p.report(v1alpha1.ConditionReady, p.state.ready, true)
	p.report(v1alpha1.ConditionProgressing, p.state.progress, true)
	p.report(v1alpha1.ConditionReconciling, p.state.progress && !p.state.stalled, false)
	p.report(v1alpha1.ConditionStalled, p.state.stalled, false)
	d := Decision{Status: *st, Actions: p.actions, Events: p.events, After: p.after}
	p.withhold(&d)
	return d
}

// report sets a condition. One that is not always there goes when it is not true.
func (p *pass) report(kind string, is, always bool) {
	if !is && !always {
		meta.RemoveStatusCondition(&p.status.Conditions, kind)
		return
	}
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: p.state.reason, Message: shorten(p.state.message),
		ObservedGeneration: p.CanaryRelease.Generation, LastTransitionTime: metav1.NewTime(p.Now),
	}
	if is {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.status.Conditions, c)
}

// workloadStatus is the entry of a workload, which is made when there is none.
func (p *pass) workloadStatus(name string) *v1alpha1.CanaryWorkload {
	i := slices.IndexFunc(p.status.Workloads, func(w v1alpha1.CanaryWorkload) bool { return w.Name == name })
	if i < 0 {
		p.status.Workloads = append(slices.Clip(p.status.Workloads), v1alpha1.CanaryWorkload{Name: name})
		i = len(p.status.Workloads) - 1
	}
	return &p.status.Workloads[i]
}

// reportWorkloads says how many pods the canaries have. Entries stay when it has ended,
// for what became of the pods.
func (p *pass) reportWorkloads() {
	for i := range p.status.Workloads {
		p.status.Workloads[i].Replicas, p.status.Workloads[i].ReadyReplicas = 0, 0
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		for _, r := range w.ReplicaSets {
			if !r.Marked || p.ended() {
				continue
			}
			s := p.workloadStatus(w.Name)
			s.Replicas += r.Replicas
			s.ReadyReplicas += r.Available
		}
	}
	if p.decided(v1alpha1.CanaryTransitionDeprecated) && p.ended() {
		p.status.Workloads = nil
	}
	slices.SortFunc(p.status.Workloads, func(a, b v1alpha1.CanaryWorkload) int { return strings.Compare(a.Name, b.Name) })
}

const maxServices = 64

func (p *pass) reportServices() {
	p.status.Services = nil
	for i := range p.Services {
		s := &p.Services[i]
		if !s.led() || p.ended() || len(p.status.Services) == maxServices {
			continue
		}
		entry := v1alpha1.CanaryServiceStatus{Service: s.Name, Programmed: s.Split.InEffect && s.Split.Requested != nil, Proxies: s.Split.Proxies}
		for _, w := range s.Split.Requested {
			entry.Ports = append(entry.Ports, v1alpha1.CanaryPortStatus{Port: w.Port, Weight: w.Weight})
		}
		if entry.Programmed {
			entry.Traffic = s.Traffic
		}
		p.status.Services = append(p.status.Services, entry)
	}
}

// reportCopies keeps on record what exists, and what is about to be made.
func (p *pass) reportCopies() {
	var names []v1alpha1.CanaryCopy
	for _, c := range p.Copies {
		making := slices.ContainsFunc(p.actions, func(a Action) bool {
			k, ok := a.(KeepCopy)
			return ok && k.Kind == c.Kind && k.Name == c.Name
		})
		if making || c.Presence == Unknown || c.Presence == Present && c.Ours {
			names = append(names, v1alpha1.CanaryCopy{Kind: c.Kind, Name: c.Name})
		}
	}
	p.status.Copies = names
}
