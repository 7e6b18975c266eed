// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

func TestWhatMayWait(t *testing.T) {
	programmed := func(status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
		return metav1.Condition{Type: splitv1.ConditionProgrammed, Status: status, Reason: reason, ObservedGeneration: generation}
	}
	live := programmed(metav1.ConditionTrue, splitv1.ReasonProgrammed, 1)
	backend := func(weight, ready int32) []splitv1.BackendStatus {
		return []splitv1.BackendStatus{{Service: "canary", Weight: weight, ReadyEndpoints: ready}}
	}
	weighed := func(weight int32) []splitv1.BackendStatus {
		b := backend(50, 1)
		b[0].Ports = []splitv1.PortStatus{{Port: 80, Protocol: "TCP", Weight: 50}, {Port: 53, Protocol: "UDP", Weight: weight}}
		return b
	}
	for name, test := range map[string]struct {
		deleting    bool
		bare        bool
		before, now metav1.Condition
		had, has    []splitv1.BackendStatus
		want        bool
	}{
		"the proxies follow a new generation":         {before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, 2), want: true},
		"a proxy is lost":                             {before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, 1)},
		"the Service follows the proxies":             {before: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, 1), now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForService, 1), want: true},
		"the weights are live":                        {before: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, 2), now: programmed(metav1.ConditionTrue, splitv1.ReasonProgrammed, 2)},
		"a proxy can't follow":                        {before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonProxyError, 2)},
		"something stands in the way":                 {before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonPending, 2)},
		"it is being withdrawn since it was deleted":  {deleting: true, before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonPending, 2), had: backend(50, 1), want: true},
		"nothing was said before":                     {now: live},
		"a bare split waits for its Service":          {bare: true, now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForService, 1), want: true},
		"a bare split waits for the mesh":             {bare: true, now: programmed(metav1.ConditionFalse, splitv1.ReasonSettling, 1), want: true},
		"the weights of a bare split are live":        {bare: true, now: live},
		"something stands in the way of a bare split": {bare: true, now: programmed(metav1.ConditionFalse, splitv1.ReasonPending, 1)},
		"a bare split is refused":                     {bare: true, now: metav1.Condition{Type: splitv1.ConditionAccepted, Status: metav1.ConditionFalse}},
		"a bare split that was reported before":       {bare: true, before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonPending, 1)},
		"a bare split that was live waits":            {bare: true, before: live, now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForService, 1)},
		"nothing was said before, and it waits":       {now: programmed(metav1.ConditionFalse, splitv1.ReasonWaitingForService, 1)},
		"the same in other words":                     {before: live, now: metav1.Condition{Type: live.Type, Status: live.Status, Reason: live.Reason, Message: "x", ObservedGeneration: 1}},
		"no pod is ready yet":                         {before: live, now: live, had: backend(50, 0), has: backend(50, 0), want: true},
		"another backend":                             {before: live, now: live, had: backend(50, 1), has: []splitv1.BackendStatus{{Service: "other", Weight: 50, ReadyEndpoints: 1}}},
		"more pods are ready":                         {before: live, now: live, had: backend(50, 1), has: backend(50, 2), want: true},
		"no pod is ready any more":                    {before: live, now: live, had: backend(50, 1), has: backend(50, 0)},
		"no pod without requests is ready any more":   {before: live, now: live, had: backend(0, 1), has: backend(0, 0), want: true},
		"another weight of one port":                  {before: live, now: live, had: weighed(10), has: weighed(20)},
		"the same weights of ports":                   {before: live, now: live, had: weighed(10), has: weighed(10), want: true},
		"another weight":                              {before: live, now: live, had: backend(50, 1), has: backend(60, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			split := &splitv1.TrafficSplit{}
			if test.deleting {
				now := metav1.Now()
				split.DeletionTimestamp = &now
			}
			if test.before.Type != "" {
				split.Status.Conditions = []metav1.Condition{test.before}
			}
			split.Status.Backends = test.had
			next := splitv1.TrafficSplitStatus{Conditions: []metav1.Condition{test.now}, Backends: test.has}
			if got := MayWait(split, next, test.bare); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestWhatAWithdrawalBeginsWithAndWhatRequestsDoIsSaidAtOnce(t *testing.T) {
	waiting := []metav1.Condition{{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: splitv1.ReasonWaitingForProxies}}
	live := []metav1.Condition{{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue, Reason: splitv1.ReasonProgrammed}}
	for name, test := range map[string]struct {
		before, now splitv1.TrafficSplitStatus
		want        bool
	}{
		"nothing":                       {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: live}, want: true},
		"what proxies confirmed":        {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: live, Confirmed: &splitv1.ConfirmedStatus{}}},
		"the router":                    {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: live, Router: "istio"}},
		"the mirror":                    {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: live, Mirror: &splitv1.MirrorStatus{}}},
		"waiting, for the same routing": {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: waiting}},
		"waiting, for another routing":  {before: splitv1.TrafficSplitStatus{Conditions: live}, now: splitv1.TrafficSplitStatus{Conditions: waiting, ObservedRouting: "x"}, want: true},
	} {
		if got := MayWait(&splitv1.TrafficSplit{Status: test.before}, test.now, false); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestProxiesThatAreGivenTimeAreReportedAfterIt(t *testing.T) {
	for reason, want := range map[string]time.Duration{splitv1.ReasonSettling: Pause + time.Minute, splitv1.ReasonWaitingForProxies: Pause} {
		if got := PauseOf(&plan.Report{Programmed: plan.Condition{Reason: reason}}, time.Minute); got != want {
			t.Errorf("%s: %s", reason, got)
		}
	}
}
