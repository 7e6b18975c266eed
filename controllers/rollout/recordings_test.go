// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

var began = time.Unix(1e9, 0).UTC()

// judged is a look at the nth window of a release, which ends it.
func judged(n int, before judge.State, ended bool) (*state.Decision, judge.State) {
	at := began.Add(time.Duration(n) * 5 * time.Second)
	w := analysis.Window{Start: at, End: at.Add(5 * time.Second), Weight: 10}
	after, result := judge.Defaults().Next(before, w)
	d := &state.Decision{
		Recorded: recording.Release{Rollout: "shop/website", Revision: "v2", Began: began},
		Entries:  []recording.Entry{{Window: &w, Before: before, Stage: policy.Stage{Judge: judge.Defaults()}, At: w.End, Result: result, Action: policy.Hold}},
	}
	if ended {
		d.Status.History = []v1alpha1.HistoryEntry{{Revision: "v2", StartedAt: new(metav1.NewTime(began))}}
	}
	return d, after
}

// recorder is a Reconciler that records one Rollout.
func recorder(t *testing.T, fail func(string) error) (r *Reconciler, ro *v1alpha1.Rollout, writes *[]string) {
	t.Helper()
	r, c, writes := newReconciler(t, fail)
	r.options.Recordings = c
	return r, rolloutOf(t, c), writes
}

// linesOf reads the one recording of the Rollout.
func linesOf(t *testing.T, r *Reconciler, ro *v1alpha1.Rollout) []recording.Line {
	t.Helper()
	result := &v1alpha1.AnalysisResult{}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(ro), result); err != nil {
		t.Fatal(err)
	}
	if len(result.Status.Recordings) != 1 || !metav1.IsControlledBy(result, ro) {
		t.Fatalf("%+v", result)
	}
	lines, err := recording.ReadText(string(result.Status.Recordings[recording.Key("v2", began)]))
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestAReleaseIsStoredWhenItHasEnded(t *testing.T) {
	r, ro, writes := recorder(t, func(string) error { return nil })
	d, after := judged(0, judge.State{}, false)
	r.record(t.Context(), ro, &ro.Status, d)
	if err := r.storeRecordings(t.Context(), ro); err != nil || len(*writes) > 0 {
		t.Fatalf("%v, %v", err, *writes)
	}
	d, _ = judged(1, after, true)
	r.record(t.Context(), ro, &ro.Status, d)
	for range 2 {
		if err := r.storeRecordings(t.Context(), ro); err != nil {
			t.Fatal(err)
		}
	}
	if lines := linesOf(t, r, ro); len(lines) != 2 || len(*writes) != 3 { // the first patch finds no object
		t.Errorf("%d lines, written %v", len(lines), *writes)
	}
}

func TestARestartGoesOnWithWhatIsStored(t *testing.T) {
	r, ro, _ := recorder(t, func(string) error { return nil })
	d, after := judged(0, judge.State{}, true)
	r.record(t.Context(), ro, &ro.Status, d)
	if err := r.storeRecordings(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	for i, stored := range []bool{true, false} {
		r.recordings = recordings{}
		if !stored {
			if err := r.patchRecordings(t.Context(), ro, map[string]string{recording.Key("v2", began): "no recording"}); err != nil {
				t.Fatal(err)
			}
		}
		d, _ = judged(3, after, true)
		r.record(t.Context(), ro, &ro.Status, d)
		if err := r.storeRecordings(t.Context(), ro); err != nil {
			t.Fatal(err)
		}
		lines := linesOf(t, r, ro)
		if last := lines[len(lines)-1]; len(lines) != 2-i || last.Gap != recording.GapRestarted || last.Resume == "" {
			t.Errorf("stored %v: %d lines, the last %+v", stored, len(lines), last)
		}
	}
}

func TestARecordingThatCannotBeReadIsLookedForAgain(t *testing.T) {
	failing := true
	r, ro, writes := recorder(t, func(call string) error {
		if call == "get AnalysisResult" && failing {
			return errInjected
		}
		return nil
	})
	d, _ := judged(3, judgedOnce(), true)
	r.record(t.Context(), ro, &ro.Status, d)
	if err := r.storeRecordings(t.Context(), ro); err != nil || len(*writes) > 0 {
		t.Fatalf("stored %v, %v: that would replace what is stored", *writes, err)
	}
	failing = false
	r.record(t.Context(), ro, &ro.Status, d)
	if err := r.storeRecordings(t.Context(), ro); err != nil || len(linesOf(t, r, ro)) != 1 {
		t.Errorf("error %v", err)
	}
}

func judgedOnce() judge.State {
	_, after := judged(0, judge.State{}, false)
	return after
}

func TestAStoreThatFailsIsTriedAgainUnlessThatIsNoUse(t *testing.T) {
	results := schema.GroupResource{Resource: "analysisresults"}
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"an error of the moment":   {errInjected, true},
		"a right that lacks":       {apierrors.NewForbidden(results, "website", errInjected), false},
		"a value that is refused":  {apierrors.NewInvalid(schema.GroupKind{}, "website", nil), false},
		"an object that is larger": {apierrors.NewRequestEntityTooLargeError("too large"), false},
	} {
		t.Run(name, func(t *testing.T) {
			failing := true
			r, ro, _ := recorder(t, func(call string) error {
				if call == "patch status AnalysisResult" && failing {
					return test.err
				}
				return nil
			})
			d, _ := judged(0, judge.State{}, true)
			r.record(t.Context(), ro, &ro.Status, d)
			err := r.storeRecordings(t.Context(), ro)
			if errors.Is(err, errInjected) != test.again || len(announced(t, r)) > 0 == test.again {
				t.Errorf("error %v", err)
			}
			failing = false
			if err := r.storeRecordings(t.Context(), ro); err != nil {
				t.Error(err)
			}
			if test.again && len(linesOf(t, r, ro)) != 1 {
				t.Error("it is not stored")
			}
		})
	}
}
