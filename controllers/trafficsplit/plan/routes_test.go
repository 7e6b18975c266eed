// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

var (
	routeKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	noon      = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
)

const settle = 5 * time.Second

// untouched is the observation of a split whose router patches one route, before
// anything was done.
func untouched() plan.Observation {
	o := before()
	o.Now, o.Means, o.Router = noon, traffic.MeansRoutes, "gatewayAPI"
	splitv1.SetRouting(o.Split, splitv1.Routing{DefaultBackend: "stable"})
	o.Endpoints = plan.Endpoints{Known: true, Ready: []string{"s1", "c1"}}
	o.Pin = plan.Pin{Backend: "stable", Keys: map[string]string{"version": "1"}, Around: 1}
	o.DataPlane = traffic.State{Settle: settle, Objects: []traffic.Object{{
		GroupVersionKind: routeKind, Name: "web", UID: "u", ResourceVersion: "1", Generation: 1,
		Patched: true, Condition: traffic.ObjectOutdated, Confirmation: traffic.ConfirmationGiven,
	}}}
	return o
}

// written is the observation when the root Service is narrowed and the route is as
// wanted and confirmed.
func written() plan.Observation {
	o := untouched()
	pin(o.Root.Service)
	o.Endpoints.Ready, o.Pin.Around = []string{"s1"}, 0
	o.DataPlane.Objects[0].Condition, o.DataPlane.Objects[0].Changed, o.DataPlane.Objects[0].Generation = traffic.ObjectCurrent, true, 2
	return o
}

func pin(root *corev1.Service) {
	if err := traffic.SetPin(root, traffic.Pin{Split: "web", Keys: map[string]string{"version": "1"}}); err != nil {
		panic(err)
	}
}

// confirmedAt is written, with the time at which that was seen first.
func confirmedAt(since time.Time) plan.Observation {
	o := written()
	o.Now = since
	o.Split.Status.Confirmed = decide(o).Report.Confirmed
	o.Now = noon
	return o
}

func TestDecideByRoutes(t *testing.T) {
	for name, test := range map[string]struct {
		from    plan.Observation
		edit    func(*plan.Observation)
		actions string
		reason  string
		says    string
		again   time.Duration
	}{
		"the root Service is narrowed before the route is written": {
			from: untouched(), actions: "PinRoot web, Apply web", reason: splitv1.ReasonWaitingForRoutes, says: "being written",
		},
		"nothing is narrowed to a version without a ready pod": {
			from: untouched(), edit: func(o *plan.Observation) {
				o.BackendEndpoints["stable"] = 0
				o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 100}}
			},
			actions: "Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"no route sends the first requests to a version without a ready pod": {
			from: untouched(), edit: func(o *plan.Observation) { o.BackendEndpoints["canary"] = 0 },
			actions: "PinRoot web", reason: splitv1.ReasonNoEndpoints, says: `Service "canary" is about to get its first requests`,
		},
		"nor to one whose pod not every proxy may know yet": {
			from: untouched(), edit: func(o *plan.Observation) { o.Fresh = map[string]time.Duration{"canary": 300 * time.Millisecond} },
			actions: "PinRoot web", reason: splitv1.ReasonNoEndpoints, says: "its first endpoint has only just become ready", again: 300 * time.Millisecond,
		},
		"a version with requests that has new pods keeps its share": {
			from: untouched(), edit: func(o *plan.Observation) {
				o.Fresh = map[string]time.Duration{"stable": time.Second, "canary": time.Second}
				o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 95}, {Service: "canary", Weight: 5}}
			},
			actions: "PinRoot web, Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"a version that lost its pods keeps its share": {
			from: untouched(), edit: func(o *plan.Observation) {
				o.BackendEndpoints["canary"] = 0
				o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 95}, {Service: "canary", Weight: 5}}
			},
			actions: "PinRoot web, Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"where nothing runs at all, nothing is waited for": {
			from: untouched(), edit: func(o *plan.Observation) {
				o.BackendEndpoints, o.Endpoints.Ready = map[string]int32{}, nil
			},
			actions: "PinRoot web, Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"nothing is narrowed while the endpoints are not known": {
			from: untouched(), edit: func(o *plan.Observation) { o.Endpoints.Known = false }, actions: "Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"a root Service that another split leads is left alone": {
			from: untouched(), edit: func(o *plan.Observation) {
				pin(o.Root.Service)
				o.Root.Service.Annotations[traffic.AnnotationPin] = strings.Replace(o.Root.Service.Annotations[traffic.AnnotationPin], "web", "other", 1)
			},
			reason: splitv1.ReasonPending, says: `TrafficSplit "other" still splits the traffic`,
		},
		"a split that names no default leaves the root Service as it is": {
			from: untouched(), edit: func(o *plan.Observation) { o.Pin = plan.Pin{} }, actions: "Apply web", reason: splitv1.ReasonWaitingForRoutes,
		},
		"a default that is removed restores the root Service": {
			from: written(), edit: func(o *plan.Observation) { o.Pin = plan.Pin{} }, actions: "UnpinRoot web", reason: splitv1.ReasonSettling, again: settle,
		},
		"all traffic on the canary narrows the root Service to it": {
			from: written(), edit: func(o *plan.Observation) {
				o.Pin = plan.Pin{Backend: "canary", Keys: map[string]string{"version": "2"}, Around: 1}
			},
			actions: "PinRoot web", reason: splitv1.ReasonWaitingForService, says: "narrowed to the pods of Service \"canary\"",
		},
		"a default that does not select among the root Service's pods is told": {
			from: written(), edit: func(o *plan.Observation) { o.Pin = plan.Pin{Backend: "x", Problem: "x is no part"} }, reason: splitv1.ReasonPending, says: "x is no part",
		},
		"a port that no backend can take is not written": {
			from: untouched(), edit: func(o *plan.Observation) { o.Resolved.Ports[0].Destinations = nil },
			actions: "PinRoot web", reason: splitv1.ReasonPending, says: "port 80 has no backend",
		},
		"what a limited split does not share is left to the root Service": {
			from: written(), edit: func(o *plan.Observation) { o.Resolved.Limited = true }, reason: splitv1.ReasonSettling, again: settle,
		},
		"a route that does not exist is told": {
			from: untouched(), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Condition = traffic.ObjectAbsent },
			actions: "PinRoot web", reason: splitv1.ReasonPending, says: `HTTPRoute "web" does not exist`,
		},
		"a route that another split changes is left alone": {
			from: untouched(), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Condition = traffic.ObjectForeign },
			actions: "PinRoot web", reason: splitv1.ReasonPending, says: "changed by another TrafficSplit",
		},
		"a route that is not confirmed is waited for": {
			from: written(), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Confirmation = traffic.ConfirmationPending },
			reason: splitv1.ReasonWaitingForRoutes, says: "not confirmed yet",
		},
		"a route that is refused says why": {
			from: written(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[0].Confirmation, o.DataPlane.Objects[0].Problem = traffic.ConfirmationRefused, "no listener"
			},
			reason: splitv1.ReasonRouteRefused, says: "no listener",
		},
		"a route that the split no longer names is restored": {
			from: written(), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Unwanted = true },
			actions: "Restore web", reason: splitv1.ReasonWaitingForRoutes, says: "being restored",
		},
		"the proxies behind confirmed routes get time to follow": {
			from: written(), reason: splitv1.ReasonSettling, again: settle,
		},
		"the time counts from when it was seen first": {
			from: confirmedAt(noon.Add(-3 * time.Second)), reason: splitv1.ReasonSettling, again: 2 * time.Second,
		},
		"a route that was written again in between has its time anew": {
			from: confirmedAt(noon.Add(-time.Hour)), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Generation++ },
			reason: splitv1.ReasonSettling, again: settle,
		},
		"then the weights are live": {
			from: confirmedAt(noon.Add(-settle)), reason: splitv1.ReasonProgrammed,
		},
		"endpoints of another version keep its weights from being live": {
			from: confirmedAt(noon.Add(-time.Hour)), edit: func(o *plan.Observation) { o.Pin.Around = 1 }, reason: splitv1.ReasonWaitingForService,
		},
		"a refused split changes nothing": {
			from: untouched(), edit: refuse, reason: splitv1.ReasonPending, says: "weights that were live before stay live",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decided(t, test.from, test.edit, test.actions)
			if c := got.Report.Programmed; c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
				t.Errorf("Programmed: %+v, want %s %q", c, test.reason, test.says)
			}
			if got.After != test.again {
				t.Errorf("again after %s, want %s", got.After, test.again)
			}
		})
	}
}

func refuse(o *plan.Observation) {
	o.Problems = []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonInvalid, Message: "no"}}
}

func TestTheProxiesTakeThePathOfAPinnedServiceInOneWrite(t *testing.T) {
	o := before()
	pin(o.Root.Service)
	if a := actions(decide(o)); a != "CutOver web" {
		t.Errorf("actions: %s", a)
	}
}

// movesFrom is an observation of a split that asks for another router than the one
// that leads it.
func movesFrom(o plan.Observation, next traffic.Means) plan.Observation {
	o.Moving, o.Next = true, next
	return o
}

func TestASplitThatMovesToAnotherRouterStaysNarrowed(t *testing.T) {
	o := movesFrom(written(), traffic.MeansProxies)
	o.DataPlane.Objects[0].Changed = false
	if a := actions(decide(o)); a != "RemoveFinalizer web" {
		t.Errorf("to proxies: %s", a)
	}
	o.Claim = plan.ClaimUnknownRouter
	if a := actions(decide(o)); a != "UnpinRoot web, RemoveFinalizer web" {
		t.Errorf("to no router: %s", a)
	}
	back := movesFrom(live(), traffic.MeansRoutes)
	back.Direct = plan.Direct{Known: true, ReadyPods: 2}
	back.Pin = plan.Pin{Backend: "stable", Keys: map[string]string{"version": "1"}}
	if keys := back.PinNext(); len(keys) != 1 {
		t.Errorf("from proxies: %v", keys)
	}
	back.Claim = plan.ClaimElsewhere
	if keys := back.PinNext(); keys != nil {
		t.Errorf("to another controller: %v", keys)
	}
}

func TestWhatAnotherRouterLeftMakesASplitSerins(t *testing.T) {
	o := movesFrom(before(), traffic.MeansRoutes)
	o.Split.Finalizers = nil
	if a := actions(decide(o)); a != "AddFinalizer web" {
		t.Errorf("actions: %s", a)
	}
}

// deleted is the observation when the split is deleted after its weights were live.
func deleted() plan.Observation {
	o := confirmedAt(noon.Add(-time.Hour))
	at := metav1.NewTime(noon)
	o.Split.DeletionTimestamp = &at
	o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 9}, {Service: "canary", Weight: 1}}
	return o
}

// restoredAt is the observation after the route was restored.
func restoredAt(since time.Time, c traffic.Confirmation) plan.Observation {
	o := deleted()
	route := &o.DataPlane.Objects[0]
	route.Changed, route.Condition, route.Generation, route.Confirmation = false, traffic.ObjectOutdated, 3, c
	o.Now = since
	o.Split.Status.Confirmed = decide(o).Report.Confirmed
	o.Now = noon
	return o
}

// at is the same observation at another time.
func at(o plan.Observation, now time.Time) plan.Observation {
	o.Now = now
	return o
}

func TestRoutesSettleAlsoByAClockThatWentBack(t *testing.T) {
	o := confirmedAt(noon.Add(time.Hour))
	d := decide(o)
	if d.After != settle || !d.Report.Confirmed.Since.Time.Equal(noon) {
		t.Fatalf("it looks again after %s, since %s", d.After, d.Report.Confirmed.Since)
	}
	o.Split.Status.Confirmed, o.Now = d.Report.Confirmed, noon.Add(settle)
	if d = decide(o); d.Report.Programmed.Status != metav1.ConditionTrue {
		t.Errorf("Programmed: %+v", d.Report.Programmed)
	}
}

func TestARestoredRouteSettlesWhateverWasInEffectBefore(t *testing.T) {
	o := deleted()
	o.Split.Status = splitv1.TrafficSplitStatus{}
	first := decide(o)
	if a := actions(first); a != "Restore web" || first.Report.Confirmed == nil {
		t.Fatalf("actions: %s, confirmed %v", a, first.Report.Confirmed)
	}
	o.Split.Status.Confirmed = first.Report.Confirmed
	o.DataPlane.Objects[0].Changed, o.DataPlane.Objects[0].Generation = false, 3
	if d := decide(o); actions(d) != "" || d.After != settle {
		t.Errorf("actions: %s, again after %s", actions(d), d.After)
	}
}

func TestWithdrawByRoutes(t *testing.T) {
	for name, test := range map[string]struct {
		from    plan.Observation
		edit    func(*plan.Observation)
		actions string
		again   time.Duration
	}{
		"the route is restored first": {from: deleted(), actions: "Restore web"},
		"a route that was made is deleted": {
			from: deleted(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[0].Patched, o.DataPlane.Objects[0].Changed = false, false
			}, actions: "Delete web",
		},
		"the proxies get time to follow":            {from: restoredAt(noon, traffic.ConfirmationGiven), again: settle},
		"then the root Service is restored":         {from: restoredAt(noon.Add(-settle), traffic.ConfirmationGiven), actions: "UnpinRoot web, RemoveFinalizer web"},
		"a gateway that says nothing is waited for": {from: restoredAt(noon.Add(-settle), traffic.ConfirmationPending), again: 25 * time.Second},
		"but not for ever":                          {from: restoredAt(noon.Add(-30*time.Second), traffic.ConfirmationPending), actions: "UnpinRoot web, RemoveFinalizer web"},
		"a refused route of the owner's holds up nothing": {
			from: restoredAt(noon.Add(-settle), traffic.ConfirmationRefused), actions: "UnpinRoot web, RemoveFinalizer web",
		},
		"a root Service that is gone needs no restore": {
			from: restoredAt(noon.Add(-settle), traffic.ConfirmationGiven),
			edit: func(o *plan.Observation) { o.Root = plan.Root{Presence: kit.Absent} }, actions: "RemoveFinalizer web",
		},
		"what no route ever named goes at once": {
			from: restoredAt(noon, traffic.ConfirmationGiven), edit: func(o *plan.Observation) { o.Split.Status = splitv1.TrafficSplitStatus{} },
			actions: "UnpinRoot web, RemoveFinalizer web",
		},
		"a route of the router's that is still being deleted is waited for": {
			from: restoredAt(noon.Add(-time.Hour), traffic.ConfirmationGiven), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[0].Patched, o.DataPlane.Objects[0].Condition = false, traffic.ObjectTerminating
			},
		},
		"a split that stays says that nothing is live before it is released": {
			from: restoredAt(noon.Add(-settle), traffic.ConfirmationGiven), edit: func(o *plan.Observation) {
				o.Split.DeletionTimestamp, o.Claim = nil, plan.ClaimUnknownRouter
				o.Split.Status.Confirmed = decide(at(*o, noon.Add(-settle))).Report.Confirmed
			},
			actions: "UnpinRoot web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decided(t, test.from, test.edit, test.actions)
			if got.After != test.again {
				t.Errorf("again after %s, want %s", got.After, test.again)
			}
		})
	}
}

// switched is the observation of a split without any proxy, whose root Service is narrowed.
func switched() plan.Observation {
	o := written()
	o.Means, o.Next, o.Router = traffic.MeansSelector, traffic.MeansSelector, "none"
	o.DataPlane = traffic.State{Settle: settle}
	return o
}

// Without a proxy, the endpoints of the root Service are all that there is to confirm.
func TestDecideBySelector(t *testing.T) {
	long := func() plan.Observation {
		o := switched()
		o.Now = noon.Add(-time.Hour)
		o.Split.Status.Confirmed = decide(o).Report.Confirmed
		o.Now = noon
		return o
	}
	for name, test := range map[string]struct {
		from    plan.Observation
		edit    func(*plan.Observation)
		actions string
		reason  string
		says    string
		again   time.Duration
	}{
		"the Service is switched in one write": {
			from: long(), edit: func(o *plan.Observation) {
				o.Pin = plan.Pin{Backend: "canary", Keys: map[string]string{"version": "2"}, Around: 1, Missing: 1}
			},
			actions: "PinRoot web", reason: splitv1.ReasonWaitingForService, says: `narrowed to the pods of Service "canary"`,
		},
		"a version without a ready pod gets nothing": {
			from: long(), edit: func(o *plan.Observation) {
				o.Pin = plan.Pin{Backend: "canary", Keys: map[string]string{"version": "2"}, Around: 1}
				o.BackendEndpoints["canary"] = 0
			},
			reason: splitv1.ReasonPending, says: `Service "canary" has no ready endpoint that could take the requests`,
		},
		"a pod of the other version is still an endpoint": {
			from: long(), edit: func(o *plan.Observation) { o.Pin.Around = 1 }, reason: splitv1.ReasonWaitingForService,
		},
		"without a weight, the Service stays with the version that it has": {
			from: long(), edit: func(o *plan.Observation) {
				o.Pin = plan.Pin{}
				for i := range o.Resolved.Ports {
					o.Resolved.Ports[i].Destinations = nil
				}
			},
			reason: splitv1.ReasonPending, says: "no backend with a weight above 0",
		},
		"a pod of the version is no endpoint yet": {
			from: long(), edit: func(o *plan.Observation) { o.Pin.Missing = 1 }, reason: splitv1.ReasonWaitingForService,
		},
		"kube-proxy gets the time to follow": {
			from: switched(), reason: splitv1.ReasonSettling, says: "waiting 5s until every kube-proxy follows", again: settle,
		},
		"then it is live": {
			from: long(), reason: splitv1.ReasonProgrammed, says: `the endpoints of Service "web" are those of Service "stable"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := decided(t, test.from, test.edit, test.actions)
			p := d.Report.Programmed
			if p.Reason != test.reason || !strings.Contains(p.Message, test.says) || d.After != test.again {
				t.Errorf("%s: %s, again in %s", p.Reason, p.Message, d.After)
			}
			if live := p.Status == metav1.ConditionTrue; live != (test.reason == splitv1.ReasonProgrammed) {
				t.Errorf("programmed is %s", p.Status)
			}
			if d.Report.Confirmed != nil && test.reason == splitv1.ReasonWaitingForService {
				t.Error("the time to follow begins before the endpoints are there")
			}
		})
	}
}
