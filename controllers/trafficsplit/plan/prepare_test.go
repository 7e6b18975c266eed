// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// with adds an object that the route refers to.
func with(o plan.Observation, condition traffic.ObjectCondition, created time.Time) plan.Observation {
	o.DataPlane.Objects = append([]traffic.Object{{
		GroupVersionKind: schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "DestinationRule"},
		Name:             "rule", UID: "r", ResourceVersion: "1", Generation: 1, Prepares: true, Condition: condition, Created: created,
	}}, o.DataPlane.Objects...)
	return o
}

func unwanted(o plan.Observation) plan.Observation {
	o.DataPlane.Objects[0].Unwanted = true
	return o
}

// leavingSince is a split that is deleted, with the routes restored since a time.
func leavingSince(o plan.Observation, since time.Time) plan.Observation {
	deleted := metav1.NewTime(noon)
	o.Split.DeletionTimestamp = &deleted
	o.DataPlane.Objects[1].Changed = false
	o.Now = since
	o.Split.Status.Confirmed = &splitv1.ConfirmedStatus{Configuration: "before"}
	o.Split.Status.Confirmed = decide(o).Report.Confirmed
	o.Now = noon
	return o
}

func TestWhatRoutesReferToIsThereBeforeAndAfterThem(t *testing.T) {
	old := noon.Add(-time.Hour)
	deleted := metav1.NewTime(noon)
	going := with(confirmedAt(noon.Add(-settle)), traffic.ObjectCurrent, old)
	going.Split.DeletionTimestamp = &deleted
	for name, test := range map[string]struct {
		from    plan.Observation
		actions string
		again   time.Duration
	}{
		"it is made alone":                                  {with(untouched(), traffic.ObjectAbsent, time.Time{}), "PinRoot web, Apply rule", 0},
		"the route waits until proxies know it":             {with(untouched(), traffic.ObjectCurrent, noon.Add(-2*time.Second)), "PinRoot web", settle - 2*time.Second},
		"a clock that is ahead keeps the route no longer":   {with(untouched(), traffic.ObjectCurrent, noon.Add(time.Hour)), "PinRoot web", settle},
		"then the route is written":                         {with(untouched(), traffic.ObjectCurrent, old), "PinRoot web, Apply web", 0},
		"one that nothing refers to goes when all is still": {unwanted(with(confirmedAt(noon.Add(-settle)), traffic.ObjectCurrent, old)), "Delete rule", 0},
		"and stays while the route is written":              {unwanted(with(untouched(), traffic.ObjectCurrent, old)), "PinRoot web, Apply web", 0},
		"on the way out the route goes first":               {going, "Restore web", 0},
		"it stays while proxies follow":                     {leavingSince(with(written(), traffic.ObjectCurrent, old), noon.Add(-time.Second)), "", settle - time.Second},
		"then it goes":                                      {leavingSince(with(written(), traffic.ObjectCurrent, old), noon.Add(-settle)), "Delete rule", 0},
		"and the split at last":                             {leavingSince(with(written(), traffic.ObjectAbsent, old), noon.Add(-settle)), "UnpinRoot web, RemoveFinalizer web", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(test.from)
			if got := actions(d); got != test.actions || d.After != test.again {
				t.Errorf("%q again in %s, want %q again in %s", got, d.After, test.actions, test.again)
			}
		})
	}
}

// others adds the Service for the requests that match none.
func others(o plan.Observation, condition traffic.ObjectCondition, wanted bool) plan.Observation {
	o.DataPlane.Objects = append([]traffic.Object{{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Name: "others", UID: "o", ResourceVersion: "1",
		Prepares: true, Backend: true, Condition: condition, Unwanted: !wanted,
	}}, o.DataPlane.Objects...)
	return o
}

func TestTheServiceForTheRequestsThatMatchNoneIsThereBeforeAndAfterTheProxiesUseIt(t *testing.T) {
	unresolved := func(o plan.Observation) plan.Observation {
		o.Resolved.Ports = nil
		return o
	}
	young := unresolved(others(before(), traffic.ObjectCurrent, true))
	young.Settling = time.Second
	behind := others(live(), traffic.ObjectCurrent, false)
	behind.DataPlane.Proxies[0].Configuration = "before"
	for name, test := range map[string]struct {
		from    plan.Observation
		actions string
		again   time.Duration
	}{
		"it is made before anything else":           {unresolved(others(before(), traffic.ObjectAbsent, true)), "Apply others", 0},
		"the rest waits until it can be used":       {young, "", time.Second},
		"one of another owner keeps all waiting":    {unresolved(others(before(), traffic.ObjectForeign, true)), "", 0},
		"it goes when the proxies serve without it": {others(live(), traffic.ObjectCurrent, false), "Delete others", 0},
		"and not before":                            {behind, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(test.from)
			if got := actions(d); got != test.actions || d.After != test.again {
				t.Errorf("actions %q, looking again in %s; want %q in %s", got, d.After, test.actions, test.again)
			}
		})
	}
}
