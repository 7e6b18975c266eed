// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

func TestOnlyItsOwnRevisionIsTouched(t *testing.T) {
	for _, test := range []struct {
		name  string
		state Release
		want  step
		error string
	}{
		{name: "the revision is deployed", state: Release{Newest: 1, Status: "deployed"}, want: stepUpgrade},
		{name: "adopted before", state: Release{Newest: 2, Status: "deployed", AdoptedBy: "u1"}, want: stepDone},
		{name: "adopted for another CanaryRelease of the content", state: Release{Newest: 2, Status: "deployed", AdoptedBy: "u2", AdoptedContent: ask("tcp", "", "").Content()}, error: "was not made by this CanaryRelease"},
		{name: "interrupted", state: Release{Newest: 2, Status: "pending-upgrade", AdoptedBy: "u1"}, want: stepFail},
		{name: "failed before", state: Release{Newest: 2, Status: "failed", AdoptedBy: "u1"}, want: stepUpgrade},
		{name: "the revision was made by an adoption of the same object", state: Release{Newest: 1, Status: "deployed", AdoptedBy: "u1"}, want: stepUpgrade},
		{name: "no release", error: "spec.release: there is no release tcp in namespace shop"},
		{name: "another user's", state: Release{Newest: 2, Status: "deployed"}, error: "spec.version: revision 2 of release tcp was not made by this CanaryRelease"},
		{name: "another user's, under way", state: Release{Newest: 2, Status: "pending-upgrade", AdoptedBy: "u2"}, error: "was not made by this CanaryRelease"},
		{name: "another user's rollback of the same revision", state: Release{Newest: 1, Status: "pending-rollback"}, error: "spec.version: revision 1 of release tcp is pending-rollback"},
		{name: "uninstalled", state: Release{Newest: 2, Status: "uninstalled", AdoptedBy: "u1"}, error: "spec.release: release tcp is uninstalled since its revision 2"},
		{name: "a revision that is not there yet", state: Release{Newest: 0}, error: "there is no release"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := nextStep(test.state, ask("tcp", "", ""))
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) || got != test.want {
				t.Errorf("%v %v", got, err)
			}
		})
	}
}

func TestAnAdoptionIsARevisionOfHelm(t *testing.T) {
	w := newWorld()
	w.install(t, "shop", map[string]any{"greeting": "hi", "web": map[string]any{"replicas": float64(2)}})
	w.pack(t, load(t, "shop"))
	q := ask("shop", "web", "{tag: '2', password: sw0rdfish}")
	for range 2 { // the second finds it adopted
		if err := w.helm().Adopt(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	state, err := w.state(t, "shop")
	if diff := cmp.Diff(Release{Newest: 2, Deployed: 2, Status: "deployed", AdoptedBy: "u1", AdoptedContent: q.Content()}, state); diff != "" || err != nil {
		t.Error(diff, err)
	}
	r := w.stored(t, "shop", 2)
	want := map[string]any{"greeting": "hi", "web": map[string]any{"replicas": float64(2), "tag": "2", "password": "sw0rdfish"}}
	if diff := cmp.Diff(want, r.Config); diff != "" {
		t.Errorf("helm get values: %s", diff)
	}
	if r.Info.Description != "Canary release try adopted" || r.ApplyMethod != "csa" {
		t.Errorf("%q %q", r.Info.Description, r.ApplyMethod)
	}
	if s := w.stored(t, "shop", 1).Info.Status; s != "superseded" {
		t.Errorf("revision 1 is %s", s)
	}
	w.upgrade(t, "shop", map[string]any{})
	if state, err = w.state(t, "shop"); err != nil || state.Newest != 3 || state.AdoptedBy != "" {
		t.Errorf("another user's upgrade: %+v %v", state, err)
	}
	if err := w.helm().Adopt(t.Context(), q); err == nil || !strings.Contains(err.Error(), "revision 3 of release shop was not made by this CanaryRelease") {
		t.Error(err)
	}
}

// TestAnAdoptionSurvivesACrashAtEveryWrite lets each write of Helm's records fail
// once, before and after it is done, and repeats the adoption as a new process.
func TestAnAdoptionSurvivesACrashAtEveryWrite(t *testing.T) {
	crash := errors.New("sw0rdfish")
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			w := newWorld()
			w.install(t, "tcp", map[string]any{"maxmemory": "1mb"})
			count := 0
			w.client.PrependReactor("*", "secrets", func(a ktesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() != "create" && a.GetVerb() != "update" {
					return false, nil, nil
				}
				if count++; count != at {
					return count > at, nil, crash // a dead process writes nothing more
				}
				if after {
					return true, nil, write(t, w.client.Tracker(), a, crash)
				}
				return true, nil, crash
			})
			q := ask("tcp", "", "maxmemory: 2mb")
			err := w.helm().Adopt(t.Context(), q)
			if err != nil && strings.Contains(err.Error(), "sw0rdfish") {
				t.Errorf("the error shows what it should not: %v", err)
			}
			crashed := count >= at
			w.client.ReactionChain = w.client.ReactionChain[1:]
			if err := w.helm().Adopt(t.Context(), q); err != nil {
				t.Fatalf("crash at write %d (after: %v): %v", at, after, err)
			}
			state, err := w.state(t, "tcp")
			if err != nil || state.Status != "deployed" || state.AdoptedBy != "u1" || w.stored(t, "tcp", state.Newest).Config["maxmemory"] != "2mb" {
				t.Errorf("crash at write %d (after: %v): %+v %v", at, after, state, err)
			}
			if !crashed {
				if at < 4 {
					t.Errorf("only %d writes", at-1)
				}
				break
			}
		}
	}
}

// write carries an action out and then fails it.
func write(t *testing.T, tracker ktesting.ObjectTracker, a ktesting.Action, crash error) error {
	t.Helper()
	var err error
	switch a := a.(type) {
	case ktesting.CreateActionImpl:
		err = tracker.Create(a.GetResource(), a.GetObject(), a.GetNamespace())
	case ktesting.UpdateActionImpl:
		err = tracker.Update(a.GetResource(), a.GetObject(), a.GetNamespace())
	}
	if err != nil {
		t.Error(err)
	}
	return crash
}

func TestAnUpgradeOfAnotherUserInBetweenIsKept(t *testing.T) {
	w := newWorld()
	w.install(t, "tcp", map[string]any{})
	s := w.session()
	q := ask("tcp", "", "maxmemory: 2mb")
	c, err := s.candidate(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	w.upgrade(t, "tcp", map[string]any{"maxmemory": "9mb"})
	if err := s.upgrade(t.Context(), q, c, 2); err == nil || !strings.Contains(err.Error(), "was not made by this CanaryRelease") {
		t.Error(err)
	}
	if r := w.stored(t, "tcp", 2); r.Config["maxmemory"] != "9mb" || r.Info.Status != "deployed" {
		t.Errorf("%v %s", r.Config, r.Info.Status)
	}
	w.mark(t, "tcp", 2, "pending-upgrade")
	if err := w.helm().Adopt(t.Context(), q); err == nil || w.stored(t, "tcp", 2).Info.Status != "pending-upgrade" {
		t.Errorf("an upgrade of another user that is under way was touched: %v", err)
	}
}

func TestAFailedUpgradeIsTriedAgain(t *testing.T) {
	w := newWorld()
	w.install(t, "tcp", map[string]any{})
	q := ask("tcp", "", "maxmemory: 2mb")
	w.kube.UpdateError = errors.New("sw0rdfish")
	var invalid InvalidError
	if err := w.helm().Adopt(t.Context(), q); !errors.As(err, &invalid) || strings.Contains(err.Error(), "sw0rdfish") {
		t.Error(err)
	}
	if state, err := w.state(t, "tcp"); err != nil || state != (Release{Newest: 2, Deployed: 1, Status: "failed", AdoptedBy: "u1", AdoptedContent: q.Content()}) {
		t.Errorf("%+v %v", state, err)
	}
	w.kube.UpdateError = nil
	if err := w.helm().Adopt(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if state, err := w.state(t, "tcp"); err != nil || state != (Release{Newest: 3, Deployed: 3, Status: "deployed", AdoptedBy: "u1", AdoptedContent: q.Content()}) {
		t.Errorf("%+v %v", state, err)
	}
}
