// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Race is a decision that could not be written because the Rollout was changed after
// it had been read.
type Race struct {
	// Before is the Rollout that was decided about.
	Before *v1alpha1.Rollout
	// Mine is the decision about it.
	Mine v1alpha1.Control
}

// Decided is whether another user has decided the same in the meantime. It is an error if
// they have decided something else, which the user who decides has not seen.
func (r Race) Decided(now *v1alpha1.Rollout) (bool, error) {
	theirs := now.Spec.Control
	switch was := r.Before.Spec.Control; {
	case theirs == nil, was != nil && same(*was, *theirs):
		return false, nil
	case same(r.Mine, *theirs):
		return true, nil
	}
	return false, fmt.Errorf("%s was decided for revision %s%s%s at the same time, and %s was not written; look at the Rollout %s again before you decide",
		theirs.Action, theirs.Revision, with(" by ", theirs.By), with(": ", theirs.Reason), r.Mine.Action, now.Name)
}

// Still is an error unless the decision about the Rollout as it is now is that of before:
// the user has seen no other revision or step.
func (r Race) Still(now v1alpha1.Control) error {
	if same(r.Mine, now) {
		return nil
	}
	return fmt.Errorf("the release went on meanwhile, from %s to %s, and %s was not written; look at the Rollout %s again before you decide",
		place(r.Mine), place(now), r.Mine.Action, r.Before.Name)
}

// place is what a decision is about.
func place(c v1alpha1.Control) string {
	if c.StepIndex == nil {
		return "revision " + c.Revision
	}
	return fmt.Sprintf("step %d of revision %s", *c.StepIndex+1, c.Revision)
}

// with is text after what introduces it; "" if there is none.
func with(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
