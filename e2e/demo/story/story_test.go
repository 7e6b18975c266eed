// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

func promises() Promises {
	return Promises{Replicas: replicas, Steps: []int32{10, 50}, Within: 4 * time.Minute}
}

func TestAStoryWithAGoodEnd(t *testing.T) {
	th := newTheatre()
	account, err := th.story().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Took: 33 * time.Second, Promoted: 14 * time.Second, OutOfTraffic: 6 * time.Second, RolledBack: 10 * time.Second, BadWeight: 10,
		Sent: 740, Rate: 200, BadAnswers: 20, FailedByBad: 3, PodsKept: replicas, PodsCreated: replicas,
	}
	if diff := cmp.Diff(want, Summarise(account, promises())); diff != "" {
		t.Error(diff)
	}
	files := []string{"namespace.yaml", "website.yaml", "rollout.yaml", "load.yaml", "website-v2.yaml", "website-v3.yaml"}
	if diff := cmp.Diff(files, th.applied); diff != "" {
		t.Error(diff)
	}
	for _, scene := range th.shown[len(th.shown)-1].Scenes {
		if scene.State != Done {
			t.Errorf("%s is not shown as done", scene.Title)
		}
	}
}

func TestAStoryThatEndsBadly(t *testing.T) {
	tests := []struct {
		name    string
		scripts map[string][]func(*state)
		want    string
	}{
		{
			name:    "a good version that is rolled back ends the story with the Rollout's own words",
			scripts: map[string][]func(*state){"website-v2.yaml": {addPods(Good, OwnerCanary), outcome(Good, serinv1alpha1.OutcomeRolledBack)}},
			want:    "Apply v2, a good version: v2 ended as RolledBack: because RolledBack",
		},
		{
			name:    "a bad version that is promoted ends the story",
			scripts: map[string][]func(*state){"website-v3.yaml": {addPods(Bad, OwnerCanary), outcome(Bad, serinv1alpha1.OutcomePromoted)}},
			want:    "v3 ended as Promoted",
		},
		{
			name:    "a version that waits for ever ends the story with the reason for waiting",
			scripts: map[string][]func(*state){"website-v2.yaml": {reason(serinv1alpha1.ReasonWaitingForPods)}},
			want:    "not reached within 3m0s; the Rollout says: WaitingForPods: because of WaitingForPods",
		},
		{
			name:    "a cluster that can't be read ends the story with the problem",
			scripts: map[string][]func(*state){"load.yaml": {func(s *state) { s.problem = "the load generator does not answer" }}},
			want:    "not reached within 1m0s: the load generator does not answer",
		},
		{
			name: "a promotion that leaves a proxy in the path is not over",
			scripts: map[string][]func(*state){"website-v2.yaml": {
				takeOver(), addPods(Good, OwnerCanary), removePods(First), outcome(Good, serinv1alpha1.OutcomePromoted), ready(),
			}},
			want: "Apply v2, a good version: not reached within",
		},
		{
			name: "a promotion that leaves an old pod is not over",
			scripts: map[string][]func(*state){"website-v2.yaml": {
				addPods(Good, OwnerCanary), outcome(Good, serinv1alpha1.OutcomePromoted), ready(),
			}},
			want: "Apply v2, a good version: not reached within",
		},
		{
			name: "a status of an older generation is no news",
			scripts: map[string][]func(*state){"website.yaml": {
				addPods(First, OwnerDeployment), ready(), func(s *state) { s.rollout.Generation = 2 },
			}, "rollout.yaml": {}},
			want: "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			th := newTheatre()
			maps.Copy(th.scripts, test.scripts)
			account, err := th.story().Run(t.Context())
			if err == nil {
				t.Fatal("the story ended well")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q", err, test.want)
			}
			if len(promises().Check(account)) == 0 {
				t.Error("no promise is said to be broken")
			}
		})
	}
}

func TestABrokenPromiseIsSaidPlainly(t *testing.T) {
	tests := []struct {
		name    string
		scripts func(*theatre)
		change  func(*Promises)
		want    string
	}{
		{
			name:    "a request that nobody answered",
			scripts: func(th *theatre) { insert(th, "website-v2.yaml", 3, unanswered(1)) },
			want:    "1 requests failed that v3 did not cause.",
		},
		{
			name:    "a failure of stable during the rollback",
			scripts: func(th *theatre) { insert(th, "website-v3.yaml", 6, answer(Good, 10, 2)) },
			want:    "2 requests failed that v3 did not cause.",
		},
		{
			name: "a pod of v2 beside the canary's",
			scripts: func(th *theatre) {
				insert(th, "website-v2.yaml", 9, func(s *state) {
					s.pods = append(s.pods, Pod{Name: "extra", UID: "extra", Version: Good, Revision: "hash-v2", Going: true})
				})
			},
			want: "3 pods of v2 were created; the 2 of the canary would have been enough.",
		},
		{
			name: "pods that were never the canary",
			scripts: func(th *theatre) {
				th.scripts["website-v2.yaml"][1] = addPods(Good, OwnerDeployment)
			},
			want: "did not serve first as the canary and then for the Deployment.",
		},
		{
			name:    "a weight that went back",
			scripts: func(th *theatre) { insert(th, "website-v2.yaml", 6, weight(Good, 5)) },
			want:    "The weight of v2 went back on its way: [10 50 5 100] %.",
		},
		{
			name:   "a step that was skipped",
			change: func(p *Promises) { p.Steps = []int32{10, 25, 50} },
			want:   "v2 was never seen with the weight of its step of 25 % in effect, only with [10 50 100] %.",
		},
		{
			name:    "a load generator that could not keep up",
			scripts: func(th *theatre) { insert(th, "load.yaml", 1, func(s *state) { s.load.Skipped = 7 }) },
			want:    "The load generator could not send 7 requests because too many waited for an answer.",
		},
		{
			name: "a load generator that restarted",
			scripts: func(th *theatre) {
				insert(th, "website-v2.yaml", 3, func(s *state) { s.load.StartedAt = time.Unix(8, 0) })
				insert(th, "website-v2.yaml", 4, func(s *state) { s.load.StartedAt = time.Unix(9, 0) })
			},
			want: "The load generator restarted",
		},
		{
			name:   "too long a story",
			change: func(p *Promises) { p.Within = 10 * time.Second },
			want:   "The story took 33s; at most 10s was promised.",
		},
		{
			name:    "a pod of v2 that is lost after the rollback",
			scripts: func(th *theatre) { insert(th, "website-v3.yaml", 9, func(s *state) { s.pods = s.pods[:1] }) },
			want:    "After the rollback 1 of 2 pods of v2 are ready.",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			th, p := newTheatre(), promises()
			if test.scripts != nil {
				test.scripts(th)
			}
			if test.change != nil {
				test.change(&p)
			}
			account, err := th.story().Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			broken := p.Check(account)
			if len(broken) != 1 || !strings.Contains(broken[0], test.want) {
				t.Errorf("got %q, want one sentence: %q", broken, test.want)
			}
		})
	}
}

// insert puts a change into a script.
func insert(th *theatre, file string, at int, change func(*state)) {
	th.scripts[file] = slices.Insert(th.scripts[file], at, change)
}

func TestAKilledProxyMayTakeItsConnectionsWithIt(t *testing.T) {
	th, p := newTheatre(), promises()
	insert(th, "website-v2.yaml", 3, unanswered(1))
	p.ProxyKilled = true
	account, err := th.story().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	summary := Summarise(account, p)
	if len(summary.Broken) != 0 || summary.FailedOtherwise != 1 {
		t.Errorf("got %d failed otherwise and %q", summary.FailedOtherwise, summary.Broken)
	}
}

func TestFaultsAreInjectedOnceAtTheirMoment(t *testing.T) {
	th := newTheatre()
	account, err := th.story(
		Fault{Target: TargetManager, Version: Good, Moment: "promote"},
		Fault{Target: TargetProxy, Version: Bad, Moment: "step-1"},
		Fault{Target: TargetManager, Version: Bad, Moment: "takeover"},
	).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Target{TargetManager, TargetManager, TargetProxy}, th.killed); diff != "" {
		t.Error(diff)
	}
	if broken := promises().Check(account); len(broken) != 0 {
		t.Errorf("got %q", broken)
	}
}

func TestAFaultGivesItsSceneMoreTime(t *testing.T) {
	th := newTheatre()
	s := th.story(Fault{Target: TargetManager, Version: Good, Moment: "step-1"}, Fault{Target: TargetManager, Version: Good, Moment: "step-2"})
	if got := s.limit(Scene{Version: Good, Within: time.Minute}); got != time.Minute+2*recovery {
		t.Errorf("got %s", got)
	}
	if got := s.limit(Scene{Version: Bad, Within: time.Minute}); got != time.Minute {
		t.Errorf("got %s for the other version", got)
	}
}

func TestAFaultWhoseMomentNeverCameFailsTheStory(t *testing.T) {
	th := newTheatre()
	_, err := th.story(Fault{Target: TargetManager, Version: Bad, Moment: "promote"}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "manager@v3:promote never came") {
		t.Errorf("got %v", err)
	}
}

func TestParseFault(t *testing.T) {
	tests := []struct {
		name, text, wantErr string
	}{
		{name: "a manager at the promotion", text: "manager@v2:promote"},
		{name: "a proxy in a step", text: "proxy@v3:step-1"},
		{name: "no moment", text: "manager", wantErr: "TARGET@VERSION:MOMENT"},
		{name: "no version", text: "manager@promote", wantErr: "TARGET@VERSION:MOMENT"},
		{name: "an unknown part", text: "etcd@v2:promote", wantErr: "etcd"},
		{name: "an unknown version", text: "manager@v1:promote", wantErr: "v1"},
		{name: "an unknown moment", text: "manager@v2:lunch", wantErr: "giveback"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fault, err := ParseFault(test.text)
			if test.wantErr == "" {
				if err != nil || fault.String() != test.text {
					t.Errorf("got %s, %v", fault, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got %v, want an error about %s", err, test.wantErr)
			}
		})
	}
}

func TestTheEndOfTheContextEndsTheStory(t *testing.T) {
	s := newTheatre().story()
	s.Observer = endedObserver{}
	if _, err := s.Run(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type endedObserver struct{}

func (endedObserver) Next(context.Context) (Snapshot, error) { return Snapshot{}, context.Canceled }
