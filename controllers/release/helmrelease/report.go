// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/debounce"
)

// decision puts the draft together.
func decision(d *draft) Decision {
	st := &d.status
	st.ObservedGeneration = d.CanaryRelease.Generation
	if d.Unreadable == "" {
		reportWorkloads(d)
		reportServices(d)
		reportDelegation(d)
		reportCopies(d)
	}
	report(d, v1alpha1.ConditionReady, d.State.Ready, true)
	report(d, v1alpha1.ConditionProgressing, d.State.Progress, true)
	report(d, v1alpha1.ConditionReconciling, d.State.Progress && !d.State.Stalled, false)
	report(d, v1alpha1.ConditionStalled, d.State.Stalled, false)
	if at := d.overdueAt(); !d.ended() && d.Now.Before(at) {
		d.WakeIn(at.Sub(d.Now))
	}
	return debounced(&d.snapshot, Decision{Status: *st, Actions: d.Actions, Events: d.Events, After: d.After})
}

// report sets a condition. One that is not always there goes when it is not true.
func report(d *draft, kind string, is, always bool) {
	if !is && !always {
		meta.RemoveStatusCondition(&d.status.Conditions, kind)
		return
	}
	c := kit.Condition(kind, is, d.State.Reason, d.State.Message)
	c.ObservedGeneration, c.LastTransitionTime = d.CanaryRelease.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.status.Conditions, c)
}

// workloadStatus is the entry of a workload, which is made when there is none.
func workloadStatus(d *draft, name string) *v1alpha1.CanaryWorkload {
	i := slices.IndexFunc(d.status.Workloads, func(w v1alpha1.CanaryWorkload) bool { return w.Name == name })
	if i < 0 {
		d.status.Workloads = append(slices.Clip(d.status.Workloads), v1alpha1.CanaryWorkload{Name: name})
		i = len(d.status.Workloads) - 1
	}
	return &d.status.Workloads[i]
}

// reportWorkloads says how many pods the canaries have. Entries stay when it has ended,
// for what became of the pods.
func reportWorkloads(d *draft) {
	for i := range d.status.Workloads {
		d.status.Workloads[i].Replicas, d.status.Workloads[i].ReadyReplicas = 0, 0
	}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		for _, r := range w.ReplicaSets {
			if !r.Marked || d.ended() {
				continue
			}
			s := workloadStatus(d, w.Name)
			s.Replicas += r.Replicas
			s.ReadyReplicas += r.Available
		}
	}
	if d.decided(v1alpha1.CanaryTransitionDeprecated) && d.ended() {
		d.status.Workloads = nil
	}
	slices.SortFunc(d.status.Workloads, func(a, b v1alpha1.CanaryWorkload) int { return strings.Compare(a.Name, b.Name) })
}

const maxServices = 64

func reportServices(d *draft) {
	d.status.Services = nil
	for i := range d.Services {
		s := &d.Services[i]
		if !s.led() || d.ended() || len(d.status.Services) == maxServices {
			continue
		}
		entry := v1alpha1.CanaryServiceStatus{Service: s.Name, Programmed: s.Split.Programmed && s.Split.Requested != nil, Proxies: s.Split.Proxies}
		for _, w := range s.Split.Requested {
			entry.Ports = append(entry.Ports, v1alpha1.CanaryPortStatus{Port: w.Port, Weight: w.Weight})
		}
		if entry.Programmed {
			entry.Traffic = s.Traffic
		}
		d.status.Services = append(d.status.Services, entry)
	}
}

// reportCopies keeps on record what exists, and what is about to be made.
func reportCopies(d *draft) {
	var names []v1alpha1.CanaryCopy
	for _, c := range d.Copies {
		making := slices.ContainsFunc(d.Actions, func(a kit.Action) bool {
			k, ok := a.(KeepCopy)
			return ok && k.Kind == c.Kind && k.Name == c.Name
		})
		if making || c.Presence == kit.Unknown || c.Presence == kit.Present && c.Ours {
			names = append(names, v1alpha1.CanaryCopy{Kind: c.Kind, Name: c.Name})
		}
	}
	d.status.Copies = names
}

// figuresEvery is how far apart writes of the status are that tell of nothing but what the
// versions answered. No decision depends on that, and it is different each time.
const figuresEvery = 15 * time.Second

// debounced puts such a write off, if the status was written not long ago.
func debounced(s *snapshot, d Decision) Decision {
	now := &s.CanaryRelease.Status
	left := debounce.Left(s.ReportedAt, figuresEvery, s.Now)
	if left <= 0 || apiequality.Semantic.DeepEqual(*now, d.Status) ||
		!apiequality.Semantic.DeepEqual(withoutFigures(now), withoutFigures(&d.Status)) {
		return d
	}
	d.Status = *now.DeepCopy()
	if d.After == 0 || left < d.After {
		d.After = left
	}
	return d
}

func withoutFigures(s *v1alpha1.CanaryReleaseStatus) *v1alpha1.CanaryReleaseStatus {
	out := s.DeepCopy()
	for i := range out.Services {
		out.Services[i].Traffic = nil
	}
	return out
}
