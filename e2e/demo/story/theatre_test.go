// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

const replicas = 2

// theatre is a simulated demo. Applying a file queues what then happens, one
// change a second; when nothing is queued the state stays as it is.
type theatre struct {
	now     time.Time
	state   state
	queue   []func(*state)
	scripts map[string][]func(*state)
	applied []string
	killed  []Target
	shown   []Frame
	said    []string
}

// state is what the simulated cluster holds.
type state struct {
	rollout *serinv1alpha1.Rollout
	split   *splitv1alpha4.TrafficSplit
	pods    []Pod
	load    *generator.Report
	problem string
}

func newTheatre() *theatre {
	return &theatre{now: time.Unix(0, 0).UTC(), scripts: map[string][]func(*state){
		"website.yaml":    {addPods(First, OwnerDeployment), ready()},
		"load.yaml":       {answer(First, 300, 0), answer(First, 300, 0)},
		"website-v2.yaml": goodScript(),
		"website-v3.yaml": badScript(),
	}}
}

// goodScript promotes v2.
func goodScript() []func(*state) {
	return []func(*state){
		takeOver(), addPods(Good, OwnerCanary), step(Good, 0, 10), answer(Good, 20, 0), step(Good, 1, 50), answer(Good, 100, 0),
		weight(Good, 100), reason(serinv1alpha1.ReasonPromoting), adopt(Good), removePods(First), giveBack(),
		outcome(Good, serinv1alpha1.OutcomePromoted), ready(),
	}
}

// badScript rolls v3 back.
func badScript() []func(*state) {
	return []func(*state){
		takeOver(), addPods(Bad, OwnerCanary), step(Bad, 0, 10), answer(Bad, 20, 3), reason(serinv1alpha1.ReasonRollingBack),
		weight(Bad, 0), removePods(Bad), giveBack(), outcome(Bad, serinv1alpha1.OutcomeRolledBack), reason(serinv1alpha1.ReasonRolledBack),
	}
}

func (t *theatre) story(faults ...Fault) *Story {
	return &Story{Scenes: Scenes(replicas), Stage: t, Observer: t, View: t, Faults: faults}
}

func (t *theatre) Install(context.Context) error { return nil }

func (t *theatre) Apply(_ context.Context, file string) error {
	t.applied = append(t.applied, file)
	t.queue = append(t.queue, t.scripts[file]...)
	return nil
}

func (t *theatre) Kill(_ context.Context, target Target) error {
	t.killed = append(t.killed, target)
	return nil
}

func (t *theatre) Show(frame Frame) { t.shown = append(t.shown, frame) }

func (t *theatre) Say(line string) { t.said = append(t.said, line) }

func (t *theatre) Next(context.Context) (Snapshot, error) {
	t.now = t.now.Add(time.Second)
	if len(t.queue) > 0 {
		t.queue[0](&t.state)
		t.queue = t.queue[1:]
	}
	s := Snapshot{Time: t.now, Split: t.state.split, Pods: append([]Pod(nil), t.state.pods...), Problem: t.state.problem}
	if t.state.rollout != nil {
		s.Rollout = t.state.rollout.DeepCopy()
	}
	if t.state.load != nil {
		load := *t.state.load
		load.Time = t.now
		load.Versions = append([]generator.VersionReport(nil), load.Versions...)
		s.Load = &load
	}
	return s, nil
}

// The changes that scripts are made of.

func addPods(version string, owner Owner) func(*state) {
	return func(s *state) {
		for n := range replicas {
			name := fmt.Sprintf("website-%s-%d", version, n)
			s.pods = append(s.pods, Pod{Name: name, UID: types.UID(name), Version: version, Revision: "hash-" + version, Ready: true, Owner: owner})
		}
	}
}

func removePods(version string) func(*state) {
	return func(s *state) {
		var left []Pod
		for _, pod := range s.pods {
			if pod.Version != version {
				left = append(left, pod)
			}
		}
		s.pods = left
	}
}

func adopt(version string) func(*state) {
	return func(s *state) {
		for i := range s.pods {
			if s.pods[i].Version == version {
				s.pods[i].Owner = OwnerDeployment
			}
		}
	}
}

func takeOver() func(*state) {
	return func(s *state) { s.split = &splitv1alpha4.TrafficSplit{} }
}

func giveBack() func(*state) {
	return func(s *state) {
		s.split = nil
		s.rollout.Status.Weight, s.rollout.Status.Step, s.rollout.Status.Canary = nil, nil, nil
	}
}

func setReady(s *state, status metav1.ConditionStatus, reason string) {
	if s.rollout == nil {
		s.rollout = &serinv1alpha1.Rollout{}
	}
	s.rollout.Status.Conditions = []metav1.Condition{{
		Type: serinv1alpha1.ConditionReady, Status: status, Reason: reason, Message: "because of " + reason,
	}}
}

func ready() func(*state) {
	return func(s *state) { setReady(s, metav1.ConditionTrue, serinv1alpha1.ReasonStable) }
}

func reason(name string) func(*state) {
	return func(s *state) { setReady(s, metav1.ConditionFalse, name) }
}

func step(version string, index, percent int32) func(*state) {
	return func(s *state) {
		setReady(s, metav1.ConditionFalse, serinv1alpha1.ReasonHolding)
		s.rollout.Status.Step = &serinv1alpha1.StepStatus{Index: index, Of: 2, ProgrammedAt: &metav1.MicroTime{}}
		weight(version, percent)(s)
	}
}

func weight(version string, percent int32) func(*state) {
	return func(s *state) {
		s.rollout.Status.Canary = &serinv1alpha1.VersionStatus{Revision: "hash-" + version}
		s.rollout.Status.Weight = &serinv1alpha1.WeightStatus{Requested: percent, Observed: &percent}
	}
}

func outcome(version, how string) func(*state) {
	return func(s *state) {
		entry := serinv1alpha1.HistoryEntry{Revision: "hash-" + version, Outcome: how, Message: "because " + how}
		s.rollout.Status.History = append([]serinv1alpha1.HistoryEntry{entry}, s.rollout.Status.History...)
	}
}

func answer(version string, requests, failed int64) func(*state) {
	return func(s *state) {
		if s.load == nil {
			s.load = &generator.Report{Rate: 200}
		}
		s.load.Sent += requests
		for i := range s.load.Versions {
			if v := &s.load.Versions[i]; v.Version == version {
				v.Requests, v.Failed = v.Requests+requests, v.Failed+failed
				return
			}
		}
		s.load.Versions = append(s.load.Versions, generator.VersionReport{Version: version, Requests: requests, Failed: failed})
	}
}

func unanswered(count int64) func(*state) {
	return func(s *state) { s.load.Sent, s.load.Unanswered = s.load.Sent+count, s.load.Unanswered+count }
}
