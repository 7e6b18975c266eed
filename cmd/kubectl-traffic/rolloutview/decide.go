// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Wish is what a user wants to decide.
type Wish struct {
	Action v1alpha1.ControlAction
	// Revision that the user has looked at; "" for the one that is being released.
	Revision string
	// Step, counted from 1 as it is printed, that Promote and Skip end; 0 for the present one.
	Step   int32
	Reason string
}

// Decide returns the decision for spec.control. It names the revision and the step that
// are present, so that it is never carried out for others, and refuses what Serin would
// not carry out.
func Decide(ro *v1alpha1.Rollout, w Wish) (v1alpha1.Control, error) {
	verb := strings.ToLower(string(w.Action))
	canary := ro.Status.Canary
	if canary == nil {
		return v1alpha1.Control{}, fmt.Errorf("the Rollout %s releases nothing at present, so there is nothing to %s", ro.Name, verb)
	}
	if w.Revision != "" && w.Revision != canary.Revision {
		return v1alpha1.Control{}, fmt.Errorf("the Rollout %s releases revision %s, not %s; look at it again before you decide", ro.Name, canary.Revision, w.Revision)
	}
	if err := suits(ro, w.Action); err != nil {
		return v1alpha1.Control{}, err
	}
	c := v1alpha1.Control{Revision: canary.Revision, Action: w.Action, Reason: w.Reason}
	if step := ro.Status.Step; w.Action == v1alpha1.ControlPromote || w.Action == v1alpha1.ControlSkip {
		switch {
		case w.Step > 0:
			c.StepIndex = new(w.Step - 1)
		case step != nil:
			c.StepIndex = new(step.Index)
		}
	}
	if known := ro.Spec.Control; known != nil && same(*known, c) {
		return v1alpha1.Control{}, fmt.Errorf("that was decided before%s, and a decision is carried out once; give another --reason to decide it again", outcome(ro))
	}
	return c, nil
}

// suits refuses an action that the verdict on the revision leaves no room for.
func suits(ro *v1alpha1.Rollout, action v1alpha1.ControlAction) error {
	d := ro.Status.Decision
	decided := d != nil && d.Revision == ro.Status.Canary.Revision
	switch {
	case action == v1alpha1.ControlRetry && (!decided || d.Action != v1alpha1.ActionRollBack):
		return fmt.Errorf("revision %s was not rolled back, so there is nothing to retry", ro.Status.Canary.Revision)
	case action == v1alpha1.ControlRetry || !decided:
		return nil
	case d.Action == v1alpha1.ActionRollBack:
		return fmt.Errorf("revision %s is rolled back; kubectl traffic rollout retry %s releases it again", d.Revision, ro.Name)
	case action == v1alpha1.ControlAbort:
		return nil
	}
	return fmt.Errorf("revision %s is being promoted already", d.Revision)
}

// same compares what users decide; who did is written by the cluster.
func same(a, b v1alpha1.Control) bool {
	return a.Revision == b.Revision && a.Action == b.Action && a.Reason == b.Reason && ptr.Equal(a.StepIndex, b.StepIndex)
}

// outcome of the decision in spec.control, as far as Serin has seen it.
func outcome(ro *v1alpha1.Rollout) string {
	if seen := ro.Status.Control; seen != nil && seen.Ignored != "" && ro.Spec.Control != nil && same(seen.Control, *ro.Spec.Control) {
		return " and did nothing (" + seen.Ignored + ")"
	}
	return ""
}

// UndoTo is the revision whose template undo puts back, or why there is none: the one that is
// named, or the stable one.
func UndoTo(ro *v1alpha1.Rollout, revision string) (string, error) {
	workload := ro.Spec.WorkloadRef
	switch {
	case workload.Name == "":
		return "", fmt.Errorf("the Rollout %s releases two Services, whose pods you make yourself: put them back yourself", ro.Name)
	case workload.Kind == v1alpha1.KindCanaryRelease:
		return "", fmt.Errorf("the Rollout %s releases the CanaryRelease %s, and Helm knows its revisions: use `helm rollback`, or `kubectl traffic canary deprecate %s` while it has not ended", ro.Name, workload.Name, workload.Name)
	case revision != "":
		return revision, nil
	case ro.Status.Stable == nil:
		return "", fmt.Errorf("the Rollout %s knows of no stable version yet; name one with --to-revision", ro.Name)
	}
	return ro.Status.Stable.Revision, nil
}
