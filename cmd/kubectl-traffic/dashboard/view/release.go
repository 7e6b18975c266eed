// SPDX-License-Identifier: Apache-2.0

package view

import (
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/schedule"
)

// Sources are what a release was read from.
type Sources struct {
	rolloutview.Snapshot
	// Events of the Rollout, oldest first.
	Events []corev1.Event
	// Freezes that concern the namespace.
	Freezes []v1alpha1.Freeze
	Rights  Rights
	// Missing says what could not be read, and why.
	Missing []string
	Now     time.Time
}

// Release is a Rollout on a page of its own.
type Release struct {
	Row
	Workload string `json:"workload"`
	Service  string `json:"service"`
	Router   string `json:"router,omitempty"`
	Strategy string `json:"strategy"`
	Paused   bool   `json:"paused"`
	// TimeZone is that of the schedule.
	TimeZone    string                   `json:"timeZone,omitempty"`
	Explanation []string                 `json:"explanation"`
	Steps       []Step                   `json:"steps"`
	Versions    []Version                `json:"versions"`
	Analysis    *v1alpha1.AnalysisStatus `json:"analysis,omitempty"`
	// Measured is the window that was judged last, while a release goes on.
	Measured      *Point                  `json:"measured,omitempty"`
	Decision      *v1alpha1.Decision      `json:"decision,omitempty"`
	Conditions    []metav1.Condition      `json:"conditions"`
	Events        []Event                 `json:"events"`
	Interventions []v1alpha1.Intervention `json:"interventions,omitempty"`
	History       []v1alpha1.HistoryEntry `json:"history"`
	Actions       []Action                `json:"actions"`
	Missing       []string                `json:"missing,omitempty"`
}

// Step is a step of the timeline.
type Step struct {
	rolloutview.Planned
	// Began is when the weight of a step that is over became live, if an event still says so.
	Began *time.Time `json:"began,omitempty"`
}

// Event is an event of a Rollout.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

// maxEvents are the latest that are shown.
const maxEvents = 50

// MakeRelease puts a page together.
func MakeRelease(s Sources) Release {
	ro := s.Rollout
	r := Release{
		Row: MakeRow(ro), Service: ro.Spec.Service, Router: string(ro.Spec.Router), Strategy: strategyOf(ro), Paused: ro.Spec.Paused,
		Workload: workloadOf(ro), Explanation: rolloutview.Explain(ro, nil)[1:], Versions: versionsOf(s.Snapshot), Analysis: ro.Status.Analysis.DeepCopy(), Measured: liveOf(ro),
		Decision: ro.Status.Decision, Conditions: append([]metav1.Condition{}, ro.Status.Conditions...), Events: eventsOf(s.Events),
		Interventions: ro.Status.Interventions, History: append([]v1alpha1.HistoryEntry{}, ro.Status.History...),
		Actions: MakeActions(ro, s.Rights), Missing: s.Missing,
	}
	if r.Analysis != nil {
		r.Analysis.State = "" // for Serin alone
	}
	if ro.Spec.Schedule != nil {
		r.TimeZone = ro.Spec.Schedule.TimeZone
	}
	var err error
	if r.Steps, err = stepsOf(s); err != nil {
		r.Missing = append(r.Missing, "The steps are left out: "+err.Error())
	}
	return r
}

func strategyOf(ro *v1alpha1.Rollout) string {
	if ro.Spec.Strategy.Type == "" {
		return string(v1alpha1.StrategyCanary)
	}
	return string(ro.Spec.Strategy.Type)
}

func workloadOf(ro *v1alpha1.Rollout) string {
	if pair := ro.Spec.Services; pair != nil {
		return "Services " + pair.Stable + " and " + pair.Canary
	}
	return ro.Spec.WorkloadRef.Kind + " " + ro.Spec.WorkloadRef.Name
}

// stepsOf is the timeline: of the release in progress, or of one that began now.
func stepsOf(s Sources) ([]Step, error) {
	calendar, err := schedule.Parse(s.Rollout.Spec.Schedule, s.Freezes)
	if err != nil {
		return []Step{}, err
	}
	planned, err := rolloutview.Plan(s.Rollout, calendar, s.Now)
	if err != nil {
		return []Step{}, err
	}
	began := begunAt(s)
	steps := make([]Step, 0, len(planned))
	for _, p := range planned {
		step := Step{Planned: p}
		if t, known := began[p.Index]; known && p.State == rolloutview.Done {
			step.Began = &t
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// liveStep is how the event begins that the weight of a step is live.
var liveStep = regexp.MustCompile(`^Step (\d+)/\d+:`)

// begunAt finds in the events when the steps of the release in progress became live.
func begunAt(s Sources) map[int]time.Time {
	times := map[int]time.Time{}
	canary := s.Rollout.Status.Canary
	if canary == nil || canary.StartedAt == nil {
		return times
	}
	for _, e := range s.Events {
		match := liveStep.FindStringSubmatch(e.Message)
		at := rolloutview.EventTime(e)
		if match == nil || at.Before(canary.StartedAt.Time) {
			continue
		}
		if number, err := strconv.Atoi(match[1]); err == nil {
			times[number-1] = at
		}
	}
	return times
}

// eventsOf are the latest events, newest first.
func eventsOf(events []corev1.Event) []Event {
	list := make([]Event, 0, min(len(events), maxEvents))
	for i := len(events) - 1; i >= 0 && len(list) < maxEvents; i-- {
		e := events[i]
		list = append(list, Event{Time: rolloutview.EventTime(e), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count})
	}
	return list
}
