// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestWhichTransitionsAreEvents(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason, message string, generation int64) *metav1.Condition {
		return &metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
	}
	accepted := condition(splitv1.ConditionAccepted, metav1.ConditionTrue, splitv1.ReasonAccepted, "", 1)
	refused := condition(splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonInvalid, "a", 1)
	live := condition(splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed, "", 1)
	zones := condition(splitv1.ConditionTrafficDistributionProgrammed, metav1.ConditionFalse, splitv1.ReasonZonesDiffer, "z", 1)
	ten, twenty := []splitv1.BackendStatus{{Service: "canary", Weight: 10}}, []splitv1.BackendStatus{{Service: "canary", Weight: 20}}
	ports := []splitv1.BackendStatus{{Service: "canary", Ports: []splitv1.PortStatus{{Port: 80, Protocol: "TCP", Weight: 5}}}}
	for name, test := range map[string]struct {
		rollout     string
		before, now *metav1.Condition
		had, has    []splitv1.BackendStatus
		want        string // the message of the event, "" for none
		warning     bool
	}{
		"all is well from the start":       {now: accepted},
		"it is refused from the start":     {now: refused, want: "a", warning: true},
		"it is refused for another reason": {before: refused, now: condition(splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonInvalid, "b", 1), want: "b", warning: true},
		"other words about what is well":   {before: accepted, now: condition(splitv1.ConditionAccepted, metav1.ConditionTrue, splitv1.ReasonAccepted, "x", 1)},
		"the same again":                   {before: refused, now: refused},
		"the first weights are live":       {now: live, has: ten, want: "live weights: canary 10"},
		"the same weights are live":        {before: live, now: live, had: ten, has: ten},
		"an annotation changed them":       {before: live, now: live, had: ten, has: twenty, want: "live weights: canary 20"},
		"those of a port":                  {before: live, now: live, had: ten, has: ports, want: "live weights: canary (80/TCP 5)"},
		"a newer generation is live":       {before: live, now: condition(splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed, "", 2), had: ten, has: ten, want: "live weights: canary 10"},
		"the weights are not live yet":     {before: live, now: condition(splitv1.ConditionProgrammed, metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, "w", 2), had: ten, has: ten},
		"a proxy can't follow":             {before: live, now: condition(splitv1.ConditionProgrammed, metav1.ConditionFalse, splitv1.ReasonProxyError, "e", 2), want: "e", warning: true},
		"it is not known":                  {before: accepted, now: condition(splitv1.ConditionAccepted, metav1.ConditionUnknown, splitv1.ReasonPending, "u", 2)},
		"weights of a Rollout's split":     {rollout: "website", now: live, has: ten},
		"a Rollout's split is refused":     {rollout: "website", now: refused, want: "a", warning: true},
		"zones differ":                     {now: zones, want: "z", warning: true},
		"zones go on to differ":            {before: zones, now: zones},
		"a pod starts in a zone":           {before: zones, now: condition(zones.Type, metav1.ConditionFalse, splitv1.ReasonPending, "p", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			split := &splitv1.TrafficSplit{Status: splitv1.TrafficSplitStatus{Backends: test.had}}
			if test.rollout != "" {
				split.Labels = map[string]string{v1alpha1.LabelRollout: test.rollout}
			}
			if test.before != nil {
				split.Status.Conditions = []metav1.Condition{*test.before}
			}
			events := Events(split, splitv1.TrafficSplitStatus{Conditions: []metav1.Condition{*test.now}, Backends: test.has})
			if len(events) != min(len(test.want), 1) {
				t.Fatalf("events %v, want %q", events, test.want)
			}
			if len(events) == 1 && (events[0].Warning != test.warning || events[0].Reason != test.now.Reason || events[0].Message != test.want) {
				t.Errorf("event %+v, want %q, warning %v", events[0], test.want, test.warning)
			}
		})
	}
}
