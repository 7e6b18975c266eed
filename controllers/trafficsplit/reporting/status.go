// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// Status is the status that follows from a report. The time of a transition is
// kept while the condition's status stays.
func Status(split *splitv1.TrafficSplit, report *plan.Report, now time.Time) splitv1.TrafficSplitStatus {
	next := split.Status.DeepCopy()
	set := func(name string, c plan.Condition) {
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: name, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: split.Generation,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	set(splitv1.ConditionAccepted, report.Accepted)
	set(splitv1.ConditionResolvedRefs, report.ResolvedRefs)
	set(splitv1.ConditionProgrammed, report.Programmed)
	if d := report.Distribution; d != nil {
		set(splitv1.ConditionTrafficDistributionAccepted, d.Accepted)
		set(splitv1.ConditionTrafficDistributionProgrammed, d.Programmed)
	} else {
		meta.RemoveStatusCondition(&next.Conditions, splitv1.ConditionTrafficDistributionAccepted)
		meta.RemoveStatusCondition(&next.Conditions, splitv1.ConditionTrafficDistributionProgrammed)
	}
	next.Backends, next.Mirror, next.Confirmed, next.Router = report.Backends, report.Mirror, report.Confirmed, report.Router
	next.Proxies = report.Proxies
	next.ObservedRouting = splitv1.RoutingDigest(split)
	return *next
}

// Changed reports whether a status has to be written.
func Changed(old, next splitv1.TrafficSplitStatus) bool {
	return !equality.Semantic.DeepEqual(old, next)
}
