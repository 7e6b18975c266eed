// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestOneReadyPodBehindTheCanarysServiceCanAnswer(t *testing.T) {
	for ready, want := range map[int32]bool{0: false, 1: true, 2: true} {
		s := snapshot{Observation: Observation{Rollout: &v1alpha1.Rollout{}, Pair: Pair{CanaryRevision: "v2", CanaryReady: ready}}}
		s.Rollout.Spec.Services = &v1alpha1.ServicePair{Stable: "web-v1", Canary: "web-v2"}
		s.facts = servicePair{}.observe(&s)
		if got := s.ready(1); got != want {
			t.Errorf("with %d ready pods: %v", ready, got)
		}
	}
}

func TestAWindowIsJudgedOnceAndOnlyInItsRelease(t *testing.T) {
	start := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	window := func(from, to time.Duration) analysis.Window {
		return analysis.Window{Start: start.Add(from), End: start.Add(to), Weight: 10}
	}
	first := window(0, 5*time.Second)
	state, result := judge.Defaults().Next(judge.State{}, first)
	if !state.End().Equal(first.End) {
		t.Fatalf("the first window was not judged: %+v", result)
	}
	s := snapshot{}
	began := metav1.NewTime(start)
	s.status.Canary = &v1alpha1.VersionStatus{StartedAt: &began}
	for name, test := range map[string]struct {
		window analysis.Window
		want   bool
	}{
		"the last one that was judged":             {first, true},
		"the one after it":                         {window(5*time.Second, 10*time.Second), false},
		"one that began before the release":        {window(-time.Second, 10*time.Second), true},
		"one that began and ended before":          {window(-10*time.Second, -time.Second), true},
		"one that ended before the last one ended": {window(0, 4*time.Second), true},
	} {
		if got := known(&s, state, test.window); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestATimeOfTheStatusIsRoundedUp(t *testing.T) {
	at := time.Date(2030, 1, 2, 12, 0, 0, 1500, time.UTC)
	s := snapshot{Observation: Observation{Now: at}}
	if got := s.micro(); !got.Time.Equal(at.Truncate(time.Microsecond).Add(time.Microsecond)) {
		t.Errorf("%v is written as %v", at, got)
	}
}
