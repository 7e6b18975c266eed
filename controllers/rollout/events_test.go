// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
)

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "rollouts"}, "website", errInjected)
}

// announced are the events so far.
func announced(t *testing.T, r *Reconciler) (out []string) {
	t.Helper()
	recorder, ok := r.recorder.(*events.FakeRecorder)
	if !ok {
		t.Fatalf("recorder %T", r.recorder)
	}
	for len(recorder.Events) > 0 {
		out = append(out, <-recorder.Events)
	}
	return out
}

func TestAStormOfConflictsIsNoEvent(t *testing.T) {
	for _, call := range []string{"update status Rollout", "apply DeploymentApplyConfiguration"} {
		t.Run(call, func(t *testing.T) {
			conflicts := 0
			r, _, _ := newReconciler(t, func(got string) error {
				if got == call {
					conflicts++
					return conflict()
				}
				return nil
			})
			for range 50 {
				result, err := r.Reconcile(t.Context(), request)
				if err != nil || result.RequeueAfter != shell.ConflictPause {
					t.Fatalf("%+v, %v", result, err)
				}
			}
			if got := announced(t, r); conflicts != 50 || len(got) > 0 {
				t.Errorf("after %d conflicts: %v", conflicts, got)
			}
		})
	}
}

func TestWhatHappensAtEveryStepIsNoEvent(t *testing.T) {
	r, _, _ := newReconciler(t, func(string) error { return nil })
	r.reporter().Announce(t.Context(), &v1alpha1.Rollout{}, kit.Event{Routine: true, Reason: "WeightLive", Message: "Step 1/2"})
	r.reporter().Announce(t.Context(), &v1alpha1.Rollout{}, kit.Event{Warning: true, Reason: v1alpha1.ReasonRollingBack, Message: "It fails"})
	if got := strings.Join(announced(t, r), "; "); got != "Warning RollingBack It fails" {
		t.Errorf("announced %q", got)
	}
}
