// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// Pause is how long a report waits that is likely to be out of date at once:
// proxies take some hundred milliseconds to follow a new generation, and pods become
// ready one by one. What it would say is in the report that comes after.
const Pause = 2 * time.Second

// PauseOf is how long a report waits. One that says that proxies are given time says
// nothing that the report after that time does not.
func PauseOf(report *plan.Report, settle time.Duration) time.Duration {
	if report.Programmed.Reason == splitv1.ReasonSettling {
		return Pause + settle
	}
	return Pause
}

// MayWait reports whether what is new in a status may be written a moment later. Of a
// split that is being deleted, only why that takes so long is read. Bare is whether the
// router makes and patches nothing but the root Service, which has its own record: what
// such a split waits for at first is not needed to withdraw it.
func MayWait(split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus, bare bool) bool {
	old, deleting := split.Status, !split.DeletionTimestamp.IsZero()
	if bare && len(old.Conditions) == 0 {
		return onlyWaits(next)
	}
	if (old.Confirmed == nil) != (next.Confirmed == nil) || old.Router != next.Router {
		return false // a withdrawal begins with what is written
	}
	return sameVerdicts(old, next, deleting) &&
		(deleting || equality.Semantic.DeepEqual(old.Mirror, next.Mirror) && sameWeights(old.Backends, next.Backends))
}

// onlyWaits reports whether a first status says nothing but that the weights are not live yet.
func onlyWaits(first splitv1.TrafficSplitStatus) bool {
	for _, c := range first.Conditions {
		if c.Type == splitv1.ConditionProgrammed && !waits(c, false) || c.Type != splitv1.ConditionProgrammed && c.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

// sameWeights compares but for the number of ready endpoints. A backend with a weight
// that has none any more is told of at once.
func sameWeights(old, next []splitv1.BackendStatus) bool {
	return slices.EqualFunc(old, next, func(a, b splitv1.BackendStatus) bool {
		gone := b.Weight > 0 && a.ReadyEndpoints > 0 && b.ReadyEndpoints == 0
		return a.Service == b.Service && a.Weight == b.Weight && slices.Equal(a.Ports, b.Ports) && !gone
	})
}

// sameVerdicts reports whether the conditions say the same of a newer generation or
// Routing, or only that it waits: until then, what is written is visibly that of an older
// one, by what it says it observed, or says that it waits too.
func sameVerdicts(old, next splitv1.TrafficSplitStatus, deleting bool) bool {
	for _, c := range next.Conditions {
		before := meta.FindStatusCondition(old.Conditions, c.Type)
		switch {
		case before == nil:
			return false
		case before.Status == c.Status && before.Reason == c.Reason && before.Message == c.Message:
		case waits(c, deleting) && (before.ObservedGeneration < c.ObservedGeneration || old.ObservedRouting != next.ObservedRouting || waits(*before, deleting)):
		default:
			return false
		}
	}
	return true
}

func waits(c metav1.Condition, deleting bool) bool {
	return c.Reason == splitv1.ReasonWaitingForProxies || c.Reason == splitv1.ReasonWaitingForService || c.Reason == splitv1.ReasonSettling ||
		deleting && c.Reason == splitv1.ReasonPending && c.Type == splitv1.ConditionProgrammed
}
