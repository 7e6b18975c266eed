// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// FreezeStatus is the status of a Freeze at a moment. It changes next at its
// nextChangeTime. What it says of a Freeze that can't be read is what Parse does:
// such a Freeze is in force.
func FreezeStatus(f *v1alpha1.Freeze, now time.Time) v1alpha1.FreezeStatus {
	status := *f.Status.DeepCopy()
	status.ObservedGeneration = f.Generation
	condition, next := freezeCondition(&f.Spec, now)
	condition.ObservedGeneration, condition.LastTransitionTime = f.Generation, metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, condition)
	status.NextChangeTime = nil
	if !next.IsZero() {
		at := metav1.NewTime(next.UTC())
		status.NextChangeTime = &at
	}
	return status
}

// freezeCondition is the condition InForce, and when it changes; zero when no such
// time is known.
//
//	the Freeze           | status | reason
//	---------------------+--------+------------
//	can't be read        | True   | InvalidSpec
//	has begun            | True   | Active
//	begins, or again     | False  | Scheduled
//	has ended            | False  | Ended
func freezeCondition(f *v1alpha1.FreezeSpec, now time.Time) (metav1.Condition, time.Time) {
	var r reader
	src, err := r.readFreezeSpec(f)
	if err != nil {
		return inForce(metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec, "In force, because the Freeze can't be read; correct "+err.Error()), time.Time{}
	}
	if f.Recurring != nil {
		r.zone, _ = r.location(f.Recurring.TimeZone) // it was loaded for the source
	}
	around := union{src}.at(r.search(), now)
	switch {
	case around.inside:
		return inForce(metav1.ConditionTrue, v1alpha1.ReasonActive, "In force"+r.until(around.until, " until you delete the Freeze")+": releases neither begin nor grow"+where(f)+"."), around.until
	case !around.until.IsZero():
		return inForce(metav1.ConditionFalse, v1alpha1.ReasonScheduled, "Not in force"+r.until(around.until, "")+"."), around.until
	}
	return inForce(metav1.ConditionFalse, v1alpha1.ReasonEnded, "Not in force: the Freeze has ended, or no start is known. You can delete it."), time.Time{}
}

// where says which namespaces are frozen when the selector does not.
func where(f *v1alpha1.FreezeSpec) string {
	if _, err := metav1.LabelSelectorAsSelector(f.NamespaceSelector); err != nil {
		return " in any namespace, because spec.namespaceSelector can't be read: " + err.Error()
	}
	return ""
}

func inForce(status metav1.ConditionStatus, reason v1alpha1.Reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionInForce, Status: status, Reason: reason, Message: message}
}
