// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// lost is the observation when another controller took the proxies out of the selector.
func lost() plan.Observation {
	o := live()
	delete(o.Root.Service.Spec.Selector, traffic.LabelProxy)
	return o
}

// noneReady makes every proxy unready.
func noneReady(o *plan.Observation) {
	for i := range o.DataPlane.Proxies {
		o.DataPlane.Proxies[i].Ready = false
	}
}

func TestWhatDecidesOverACutOver(t *testing.T) {
	for name, test := range map[string]struct {
		from    plan.Observation
		edit    func(*plan.Observation)
		actions string
		// reason of Programmed; "" is any.
		reason string
		again  time.Duration
	}{
		"a scaled-out proxy that is behind holds the cut-over up, though as many as wanted confirm": {
			from: before(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies = append(o.DataPlane.Proxies, traffic.Proxy{Name: "p3", Ready: true, Generation: 2, Configuration: "before"})
			},
			reason: splitv1.ReasonWaitingForProxies,
		},
		"a data plane that is scaled to zero gets no traffic": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Proxies, o.DataPlane.WantedProxies = nil, 0 },
			reason: splitv1.ReasonWaitingForProxies,
		},
		"nor is it made endpoints": {
			from: before(), edit: func(o *plan.Observation) { noSlices(o); o.DataPlane.Proxies, o.DataPlane.WantedProxies = nil, 0 },
		},
		"proxies whose Deployment is gone go with it, and take no traffic over": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Objects[1].Condition = traffic.ObjectAbsent },
			actions: "Apply deployment",
		},
		"nor are they made endpoints": {
			from: before(), edit: func(o *plan.Observation) { noSlices(o); o.DataPlane.Objects[1].Condition = traffic.ObjectAbsent },
			actions: "Apply deployment",
		},
		"the Service is not restored while its own pods are not ready": {
			from: live(), edit: func(o *plan.Observation) {
				noneReady(o)
				o.Direct = plan.Direct{Known: true}
			},
		},
		"the Service is not restored while one proxy can take its requests": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Ready = false
				o.Direct = plan.Direct{Known: true, ReadyPods: 2}
			},
		},
		"proxies that were removed from the selector stay out while none is ready": {
			from: lost(), edit: noneReady,
		},
		"a split with a rival leaves the Service alone": {
			from: lost(), edit: func(o *plan.Observation) { o.Rival, o.Split.Finalizers = "other", nil },
		},
		"a split that never had a live weight waits for every proxy as for the first time": {
			from: lost(), edit: func(o *plan.Observation) {
				o.Split.Status.Backends, o.DataPlane.Proxies[1].Generation = nil, 2
			},
			reason: splitv1.ReasonWaitingForProxies,
		},
		"the weights are not live while no proxy is an endpoint": {
			from: live(), edit: func(o *plan.Observation) { o.Endpoints.Ready = nil }, reason: splitv1.ReasonWaitingForService,
		},
		"the root Service's own endpoints are no backends to keep proxies for": {
			from: leaving(), edit: func(o *plan.Observation) {
				o.Direct.ReadyPods, o.BackendEndpoints = 0, map[string]int32{"web": 2}
			},
			actions: "RestoreRoot web",
		},
		"the last proxy finishes its requests before the rest is deleted": {
			from: restored(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[1].Condition, o.DataPlane.Proxies = traffic.ObjectAbsent, o.DataPlane.Proxies[:1]
			},
			again: 5 * time.Second,
		},
		"pods that answer datagrams stay for the whole time": {
			from: live(), edit: func(o *plan.Observation) {
				o.Now = noon
				o.Draining = []traffic.Object{{Name: "web-draining", Created: noon.Add(-9 * time.Second)}}
			},
			again: time.Second,
		},
		"pods that have answered go at the end of that time": {
			from: live(), edit: func(o *plan.Observation) {
				o.Now = noon
				o.Draining = []traffic.Object{{Name: "web-draining", UID: "l", ResourceVersion: "1", Created: noon.Add(-10 * time.Second)}}
			},
			actions: "Delete web-draining",
		},
		"a backend with the live weight 0 had no requests and needs a pod for its first": {
			from: untouched(), edit: func(o *plan.Observation) {
				o.BackendEndpoints["canary"] = 0
				o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 100}, {Service: "canary"}}
			},
			actions: "PinRoot web", reason: splitv1.ReasonNoEndpoints,
		},
		"a backend with exactly one pod gets its first requests": {
			from: untouched(), edit: func(o *plan.Observation) { o.BackendEndpoints = map[string]int32{"stable": 1, "canary": 1} },
			actions: "PinRoot web, Apply web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.from
			test.edit(&o)
			d := decide(o)
			if got := actions(d); got != test.actions {
				t.Errorf("actions: %q, want %q", got, test.actions)
			}
			if d.After != test.again {
				t.Errorf("it looks again after %v, want %v", d.After, test.again)
			}
			if test.reason == "" {
				return
			}
			if p := d.Report.Programmed; p.Reason != test.reason || p.Status != metav1.ConditionFalse {
				t.Errorf("Programmed: %+v, want reason %s", p, test.reason)
			}
		})
	}
}

func TestABackendWithExactlyOnePodKeepsTheServiceNarrowed(t *testing.T) {
	o := movesFrom(live(), traffic.MeansRoutes)
	o.Pin = plan.Pin{Backend: "stable", Keys: map[string]string{"version": "1"}}
	for pods, want := range map[int32]int{0: 0, 1: 1, 2: 1} {
		o.BackendEndpoints["stable"] = pods
		if got := len(o.PinNext()); got != want {
			t.Errorf("with %d ready pods the Service is narrowed by %d keys, want %d", pods, got, want)
		}
	}
}
