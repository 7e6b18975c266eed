// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

func TestRace(t *testing.T) {
	first, second := int32(0), int32(1)
	mine := v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlPromote, StepIndex: &first}
	abort := &v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort, By: "jane", Reason: "wrong prices"}
	signed := mine
	signed.By = "jane"
	for _, test := range []struct {
		name        string
		before, now *v1alpha1.Control
		decided     bool
		wants       string
	}{
		{"only the status was written", nil, nil, false, ""},
		{"only the status was written after an earlier decision", abort, abort, false, ""},
		{"the earlier decision was taken away", abort, nil, false, ""},
		{"another user has decided the same", nil, &signed, true, ""},
		{"another user has decided something else", nil, abort, false, "Abort was decided for revision 657bc99986 by jane: wrong prices at the same time, and Promote was not written; look at the Rollout website again"},
		{"another user has replaced an earlier decision", &signed, abort, false, "Abort was decided"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, now := released(), released()
			before.Spec.Control, now.Spec.Control = test.before, test.now
			decided, err := rolloutview.Race{Before: before, Mine: mine}.Decided(now)
			if decided != test.decided || (err == nil) != (test.wants == "") || err != nil && !strings.Contains(err.Error(), test.wants) {
				t.Errorf("decided %t: %v", decided, err)
			}
		})
	}
	t.Run("the step that was looked at is over", func(t *testing.T) {
		later := mine
		later.StepIndex = &second
		err := rolloutview.Race{Before: released(), Mine: mine}.Still(later)
		if err == nil || !strings.Contains(err.Error(), "from step 1 of revision 657bc99986 to step 2 of revision 657bc99986") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another revision is released", func(t *testing.T) {
		err := rolloutview.Race{Before: released(), Mine: *abort}.Still(v1alpha1.Control{Revision: "abc", Action: v1alpha1.ControlAbort})
		if err == nil || !strings.Contains(err.Error(), "from revision 657bc99986 to revision abc") {
			t.Errorf("got %v", err)
		}
	})
}
