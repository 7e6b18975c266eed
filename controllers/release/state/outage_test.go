// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func TestAnOutageBefallsBothVersions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	interrupted := func(ago time.Duration) *v1alpha1.StepStatus {
		return &v1alpha1.StepStatus{InterruptedAt: new(metav1.NewMicroTime(now.Add(-ago)))}
	}
	for name, test := range map[string]struct {
		change                          func(*Snapshot)
		outage, recovering, unreported  bool
		befellEarlier, befellAMinuteAgo bool
	}{
		"stable has pods":       {change: func(s *Snapshot) { s.StableDown = false }},
		"the canary has a pod":  {change: func(s *Snapshot) { s.Canary.Available = 1 }},
		"there is no canary":    {change: func(s *Snapshot) { s.Canary = nil }},
		"it gets no traffic":    {change: func(s *Snapshot) { s.Split.Observed = 0 }},
		"neither has a pod":     {change: func(*Snapshot) {}, outage: true, recovering: true, befellEarlier: true, befellAMinuteAgo: true},
		"stable is back, now":   {change: func(s *Snapshot) { s.StableDown, s.OutageAt = false, now }, recovering: true, befellEarlier: true, befellAMinuteAgo: true},
		"stable is back for 59": {change: func(s *Snapshot) { s.StableDown, s.OutageAt = false, now.Add(-59*time.Second) }, recovering: true, befellAMinuteAgo: true},
		"stable is back for 60": {change: func(s *Snapshot) { s.StableDown, s.OutageAt = false, now.Add(-time.Minute) }, befellAMinuteAgo: true},
		"stable is back for 75": {change: func(s *Snapshot) { s.StableDown, s.OutageAt = false, now.Add(-75*time.Second) }},
		"the canary ran":        {change: func(s *Snapshot) { s.StableDown, s.CanaryExcused = false, true }, unreported: true},
		"the canary ran before its step": {change: func(s *Snapshot) {
			s.StableDown, s.CanaryExcused, s.Status.Step = false, true, nil
		}, unreported: true},
		"the canary ran, and is away for 59": {change: func(s *Snapshot) {
			s.StableDown, s.CanaryExcused, s.Status.Step = false, true, interrupted(59*time.Second)
		}, unreported: true},
		"the canary ran, and is away for 60": {change: func(s *Snapshot) {
			s.StableDown, s.CanaryExcused, s.Status.Step = false, true, interrupted(time.Minute)
		}},
	} {
		s := &Snapshot{Observation: Observation{Now: now}, Facts: Facts{Canary: &Canary{}, StableDown: true}}
		s.Split.Presence, s.Split.Observed, s.Status.Step = kit.Present, 10, &v1alpha1.StepStatus{}
		test.change(s)
		_, recovering := s.Recovering()
		if s.Outage() != test.outage || recovering != test.recovering || s.Unreported() != test.unreported {
			t.Errorf("%s: outage %v, recovering %v, unreported %v", name, s.Outage(), recovering, s.Unreported())
		}
		if s.Befell(now.Add(-time.Second)) != test.befellEarlier || s.Befell(now.Add(-time.Minute)) != test.befellAMinuteAgo {
			t.Errorf("%s: a window of before: %v, of a minute ago: %v", name, s.Befell(now.Add(-time.Second)), s.Befell(now.Add(-time.Minute)))
		}
	}
}
