// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// before is the observation just before the cutover: two proxies are ready and
// serve the generation.
func before() plan.Observation {
	split := &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "s", ResourceVersion: "7", Generation: 3, Finalizers: []string{traffic.Finalizer},
		},
		Spec: splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "stable", Weight: 9}, {Service: "canary", Weight: 1}}},
	}
	root := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "r", ResourceVersion: "8"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
	}
	return plan.Observation{
		Split: split, Claim: plan.ClaimOurs, Router: "nginx", Means: traffic.MeansProxies,
		Resolved: traffic.Split{Root: "web", Ports: []traffic.Port{{Number: 80, Destinations: []traffic.Destination{
			{Service: "stable", Weight: 9}, {Service: "canary", Weight: 1},
		}}}},
		Root:      plan.Root{Presence: kit.Present, Service: root},
		Endpoints: plan.Endpoints{Known: true, Ready: []string{"app", "p1", "p2"}},
		DataPlane: traffic.State{
			WantedProxies: 2,
			Objects: []traffic.Object{
				{Name: "role", UID: "o", ResourceVersion: "9", Condition: traffic.ObjectCurrent},
				{
					GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Name: "deployment", UID: "d", ResourceVersion: "10",
					Condition: traffic.ObjectCurrent, Workload: true,
				},
				{
					GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), Name: "slice", UID: "e", ResourceVersion: "11",
					Condition: traffic.ObjectCurrent,
				},
			},
			Proxies: []traffic.Proxy{
				{Name: "p1", Ready: true, Generation: 3, Configuration: wanted},
				{Name: "p2", Ready: true, Generation: 3, Configuration: wanted},
			},
		},
		BackendEndpoints: map[string]int32{"stable": 3, "canary": 1},
	}
}

// noSlices has the root Service lack the EndpointSlices of the proxies.
func noSlices(o *plan.Observation) { o.DataPlane.Objects = o.DataPlane.Objects[:2] }

// live is the observation when the weights of the split are live.
func live() plan.Observation {
	o := before()
	o.Root.Service.Spec.Selector[traffic.LabelProxy] = "web"
	o.Root.Service.Annotations = map[string]string{plan.AnnotationOriginalSelector: `{"app":"web"}`}
	o.Split.Status.Backends = []splitv1.BackendStatus{{Service: "stable", Weight: 9}, {Service: "canary", Weight: 1}}
	o.Endpoints.Ready = []string{"p1", "p2"}
	return o
}

// confirm has the status say that all proxies serve what is wanted now.
func confirm(o *plan.Observation) {
	o.Split.Status.Conditions = []metav1.Condition{{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue, ObservedGeneration: o.Split.Generation}}
	o.Split.Status.Proxies = &splitv1.ProxiesStatus{Ready: 2, Confirmed: 2, Configuration: o.Resolved.Digest()}
}

// confirmed is the observation after the weights were reported live.
func confirmed() plan.Observation {
	o := live()
	confirm(&o)
	return o
}

// unread has the controller know nothing of both proxies.
func unread(o *plan.Observation) {
	for i := range 2 {
		o.DataPlane.Proxies[i].Unread, o.DataPlane.Proxies[i].Generation, o.DataPlane.Proxies[i].Configuration = true, 0, ""
	}
}

// leaving is the observation when the split is deleted while its weights are live.
func leaving() plan.Observation {
	o := live()
	deleted := metav1.NewTime(time.Unix(1, 0))
	o.Split.DeletionTimestamp = &deleted
	o.Direct = plan.Direct{Known: true, ReadyPods: 2}
	return o
}

// restored is the observation after that, when the endpoints have followed.
func restored() plan.Observation {
	o := leaving()
	delete(o.Root.Service.Spec.Selector, traffic.LabelProxy)
	o.Root.Service.Annotations = nil
	o.Endpoints.Ready = []string{"app", "p1", "p2"}
	o.Direct = plan.Direct{}
	return o
}

func actions(d plan.Decision) string {
	var names []string
	for _, a := range d.Actions {
		names = append(names, kindOf(a)+" "+writeOf(a).Object.Name)
	}
	return strings.Join(names, ", ")
}

// wanted stands for the digest of what is to be served.
const wanted = "wanted"

// decided is what is decided of an edited observation, with the actions that are wanted.
func decided(t *testing.T, o plan.Observation, edit func(*plan.Observation), want string) plan.Decision {
	t.Helper()
	if edit != nil {
		edit(&o)
	}
	d := decide(o)
	if got := actions(d); got != want {
		t.Errorf("actions: %q, want %q", got, want)
	}
	return d
}

func decide(o plan.Observation) plan.Decision {
	o.DataPlane.Proxies = slices.Clone(o.DataPlane.Proxies)
	for i := range o.DataPlane.Proxies {
		if o.DataPlane.Proxies[i].Configuration == wanted {
			o.DataPlane.Proxies[i].Configuration = o.Resolved.Digest()
		}
	}
	return plan.Decide(o)
}

// kindOf is the name of an action's type.
func kindOf(a kit.Action) string { return reflect.TypeOf(a).Name() }

// writeOf is what an action writes. Those on the finalizer write the split.
func writeOf(a kit.Action) plan.Write {
	if field := reflect.ValueOf(a).FieldByName("Write"); field.IsValid() {
		return field.Interface().(plan.Write)
	}
	return plan.Write{Object: traffic.Object{Name: "web", UID: "s", ResourceVersion: "7"}, Why: a.String()}
}

func TestDecide(t *testing.T) {
	type edit = func(*plan.Observation)
	for name, test := range map[string]struct {
		from    plan.Observation
		edit    edit
		actions string
		// programmed is "status reason" and a part of the message.
		programmed, message string
	}{
		"proxies that all confirm get the traffic": {
			from: before(), actions: "CutOver web", programmed: "False WaitingForService",
		},
		"proxies that report what the controller sees get the traffic, whatever they say of it": {
			from: before(), edit: func(o *plan.Observation) {
				for i := range o.DataPlane.Proxies {
					o.DataPlane.Proxies[i].Message = "a backend is missing"
				}
			},
			actions: "CutOver web", programmed: "False WaitingForService",
		},
		"a proxy that serves the generation with other Services or groups is waited for": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Proxies[0].Configuration = "0123456789abcdef" },
			programmed: "False WaitingForProxies", message: "1 of 2",
		},
		"a proxy that can't be read is never confirmed": {
			from: live(), edit: func(o *plan.Observation) {
				o.Split.Status.Proxies = nil
				o.DataPlane.Proxies[0] = traffic.Proxy{Name: "p1", Ready: true, Message: "what it serves can't be read"}
			},
			programmed: "False WaitingForProxies", message: "1 of 2 proxies serve generation 3; p1: what it serves can't be read",
		},
		"a controller that has not read any proxy yet takes back nothing that it confirmed": {
			from: confirmed(), edit: unread, programmed: "True Programmed",
		},
		"but cuts nothing over": {
			from: before(), edit: func(o *plan.Observation) {
				confirm(o)
				unread(o)
			},
			programmed: "False WaitingForService",
		},
		"it has read one proxy, which does not serve it": {
			from: confirmed(), edit: func(o *plan.Observation) {
				unread(o)
				o.DataPlane.Proxies[0].Unread = false
			},
			programmed: "False WaitingForProxies", message: "0 of 2",
		},
		"it has read none since something else is to be served": {
			from: confirmed(), edit: func(o *plan.Observation) {
				unread(o)
				o.Resolved.Ports[0].Destinations[0].Address = "10.0.0.9"
			},
			programmed: "False WaitingForProxies", message: "0 of 2",
		},
		"it has read none since there is a new generation": {
			from: confirmed(), edit: func(o *plan.Observation) {
				unread(o)
				o.Split.Generation++
			},
			programmed: "False WaitingForProxies", message: "0 of 2",
		},
		"it never confirmed anything": {
			from: live(), edit: unread, programmed: "False WaitingForProxies", message: "0 of 2",
		},
		"a limited split without a default is not programmed": {
			from: before(), edit: func(o *plan.Observation) { o.Resolved.Limited = true },
			programmed: "False Pending", message: "port 80 has no default backend",
		},
		"what proxies no longer need is deleted": {
			from: live(), edit: func(o *plan.Observation) { o.DataPlane.Objects[0].Unwanted = true },
			actions: "Delete role", programmed: "True Programmed",
		},
		"what proxies no longer need and another owner has is left alone": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[0].Unwanted, o.DataPlane.Objects[0].Condition = true, traffic.ObjectForeign
			},
			programmed: "True Programmed",
		},
		"nothing is cut over before the finalizer is set": {
			from: before(), edit: func(o *plan.Observation) { o.Split.Finalizers = nil },
			actions: "AddFinalizer web, CutOver web", programmed: "False WaitingForService",
		},
		"a missing object is made, and an outdated one made anew, before anything else": {
			from: before(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[0].Condition = traffic.ObjectAbsent
				o.DataPlane.Objects[1].Condition = traffic.ObjectOutdated
				o.DataPlane.Proxies = nil
			},
			actions: "Apply role, Apply deployment", programmed: "False WaitingForProxies", message: "0 of 2",
		},
		"one proxy is not enough for the first cutover": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Proxies = o.DataPlane.Proxies[:1] },
			programmed: "False WaitingForProxies", message: "1 of 2",
		},
		"a proxy that is behind holds the cutover up": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Proxies[0].Generation = 2 },
			programmed: "False WaitingForProxies",
		},
		"proxies that serve the generation become endpoints before the cutover": {
			from: before(), edit: func(o *plan.Observation) { noSlices(o); o.Endpoints.Ready = []string{"app"} },
			actions: "AddEndpoints web", programmed: "False WaitingForService",
		},
		"proxies of a split that is refused become no endpoints": {
			from: before(), edit: func(o *plan.Observation) {
				noSlices(o)
				o.Problems = []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonInvalid, Message: "no"}}
			},
			programmed: "False Pending",
		},
		"while there are fewer than wanted, none becomes an endpoint": {
			from: before(), edit: func(o *plan.Observation) {
				noSlices(o)
				o.Endpoints.Ready, o.DataPlane.Proxies = []string{"app"}, o.DataPlane.Proxies[:1]
			},
			programmed: "False WaitingForProxies", message: "1 of 2",
		},
		"while one does not serve the generation, none becomes an endpoint": {
			from: before(), edit: func(o *plan.Observation) {
				noSlices(o)
				o.Endpoints.Ready, o.DataPlane.Proxies[0].Generation = []string{"app"}, 2
			},
			programmed: "False WaitingForProxies",
		},
		"the cutover waits until every proxy wanted is an endpoint": {
			from: before(), edit: func(o *plan.Observation) { o.Endpoints.Ready = []string{"app", "p1"} },
			programmed: "False WaitingForService",
		},
		"proxies that are endpoints by their labels, as those of the version before, get slices before the cutover": {
			from: before(), edit: noSlices, actions: "AddEndpoints web", programmed: "False WaitingForService",
		},
		"the cutover waits for slices that the Service owns": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Objects[2].Unwanted = true },
			actions: "AddEndpoints web, Delete slice", programmed: "False WaitingForService",
		},
		"proxies that are endpoints by their labels get slices before they are replaced": {
			from: live(), edit: func(o *plan.Observation) { noSlices(o); o.DataPlane.Objects[1].Condition = traffic.ObjectOutdated },
			actions: "AddEndpoints web, Apply deployment", programmed: "True Programmed",
		},
		"slices that another actor deleted are made anew": {
			from: live(), edit: func(o *plan.Observation) { noSlices(o); o.Endpoints.Ready = nil },
			actions: "AddEndpoints web", programmed: "False WaitingForService",
		},
		"no slices are made for proxies none of which could take requests": {
			from: live(), edit: func(o *plan.Observation) {
				noSlices(o)
				noneReady(o)
				o.Endpoints.Ready, o.Direct = nil, plan.Direct{Known: true}
			},
			programmed: "False WaitingForProxies",
		},
		"the key is not put back while no proxy is an endpoint": {
			from: lost(), edit: func(o *plan.Observation) { o.Endpoints.Ready = []string{"app"} },
			programmed: "False WaitingForService",
		},
		"a proxy that terminates does not count": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Proxies[0].Terminating = true },
			programmed: "False WaitingForProxies",
		},
		"a proxy that sees other Services than the controller does not count": {
			from: before(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Configuration, o.DataPlane.Proxies[0].Message = "other", "Service \"stable\" does not exist"
			},
			programmed: "False WaitingForProxies", message: "p1: Service \"stable\" does not exist",
		},
		"a proxy that misses the same Service as the controller does count": {
			from: before(), edit: func(o *plan.Observation) {
				o.Problems = []traffic.Problem{{Condition: splitv1.ConditionResolvedRefs, Message: "no canary"}}
				o.DataPlane.Proxies[0].Message, o.DataPlane.Proxies[1].Message = "no canary", "no canary"
			},
			actions: "CutOver web", programmed: "False WaitingForService",
		},
		"why a proxy stays behind is said": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Generation, o.DataPlane.Proxies[0].Message = 2, "nginx: emerg"
			},
			programmed: "False ProxyError", message: "p1 still serves generation 2: nginx: emerg",
		},
		"why a proxy does not start is said": {
			from: before(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Ready, o.DataPlane.Proxies[0].Message = false, "container proxy: ErrImagePull"
			},
			programmed: "False WaitingForProxies", message: "p1: container proxy: ErrImagePull",
		},
		"why no proxy can be made is said": {
			from: before(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies, o.DataPlane.Objects[1].Problem = nil, "exceeded quota: pods"
			},
			programmed: "False WaitingForProxies", message: "0 of 2 proxies serve generation 3; exceeded quota: pods",
		},
		"no proxy is started for a port that no backend could answer": {
			from: before(), edit: func(o *plan.Observation) {
				o.Resolved.Ports[0].Destinations = nil
				o.DataPlane.Objects[1].Condition = traffic.ObjectAbsent
			},
			programmed: "False Pending", message: "port 80",
		},
		"an object of another owner is named and not touched": {
			from: before(), edit: func(o *plan.Observation) { o.DataPlane.Objects[1].Condition = traffic.ObjectForeign },
			programmed: "False Pending", message: `Deployment "deployment" exists and is not Serin's`,
		},
		"a root Service that selects another split's proxies is not taken": {
			from: before(), edit: func(o *plan.Observation) { o.Root.Service.Spec.Selector[traffic.LabelProxy] = "other" },
			programmed: "False Pending", message: `"other"`,
		},
		"a root Service that is not known is not touched": {
			from: before(), edit: func(o *plan.Observation) { o.Root = plan.Root{} },
			programmed: "False Pending", message: "could not be read",
		},
		"endpoints that are not known are no proof": {
			from: live(), edit: func(o *plan.Observation) { o.Endpoints = plan.Endpoints{} },
			programmed: "Unknown WaitingForService",
		},
		"all is live and nothing is done": {
			from: live(), programmed: "True Programmed",
		},
		"an endpoint that is no proxy contradicts": {
			from: live(), edit: func(o *plan.Observation) { o.Endpoints.Ready = append(o.Endpoints.Ready, "app") },
			programmed: "False WaitingForService",
		},
		"an endpoint that still gets requests has to serve the generation, whatever its pod says": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Terminating, o.DataPlane.Proxies[0].Generation = true, 2
			},
			programmed: "False WaitingForProxies",
		},
		"one proxy of two carries on alone": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies, o.Endpoints.Ready = o.DataPlane.Proxies[:1], o.Endpoints.Ready[:1]
			},
			programmed: "True Programmed",
		},
		"another writer removes the key: it is set again at once, one ready proxy is enough": {
			from: live(), edit: func(o *plan.Observation) {
				delete(o.Root.Service.Spec.Selector, traffic.LabelProxy)
				o.DataPlane.Proxies[0].Ready, o.DataPlane.Proxies[1].Generation = false, 2
			},
			actions: "CutOver web", programmed: "False WaitingForProxies",
		},
		"the owner's keys changed: the record follows": {
			from: live(), edit: func(o *plan.Observation) { o.Root.Service.Spec.Selector["tier"] = "front" },
			actions: "CutOver web", programmed: "True Programmed",
		},
		"no proxy can take requests: the root Service gets its own pods back": {
			from: live(), edit: func(o *plan.Observation) {
				o.DataPlane.Proxies[0].Ready, o.DataPlane.Proxies[1].Ready = false, false
				o.Direct = plan.Direct{Known: true, ReadyPods: 1}
			},
			actions: "RestoreRoot web", programmed: "False WaitingForProxies",
		},
		"no proxy can take requests and whether another pod could is not known: nothing is done": {
			from: live(), edit: func(o *plan.Observation) { o.DataPlane.Proxies = nil },
			programmed: "False WaitingForProxies",
		},
		"a refused generation leaves everything as it is": {
			from: live(), edit: func(o *plan.Observation) {
				o.Problems = []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonInvalid, Message: "no"}}
				o.Resolved.Ports = nil
				o.DataPlane.Objects[1].Condition = traffic.ObjectOutdated
			},
			programmed: "False Pending", message: "stay live",
		},
		"the split is deleted: first the root Service is restored": {
			from: leaving(), actions: "RestoreRoot web", programmed: "False Pending", message: "being restored",
		},
		"deleted, but what the root Service would select is not known": {
			from: leaving(), edit: func(o *plan.Observation) { o.Direct = plan.Direct{} },
			programmed: "False Pending", message: "could not be read",
		},
		"deleted, but the root Service would select nothing while its backends are alive": {
			from: leaving(), edit: func(o *plan.Observation) { o.Direct.ReadyPods = 0 },
			programmed: "False Pending", message: "selects no ready pod",
		},
		"a Service that selects no pods by itself is restored": {
			from: leaving(), edit: func(o *plan.Observation) { o.Direct = plan.Direct{Known: true, Unselected: true} },
			actions: "RestoreRoot web", programmed: "False Pending",
		},
		"deleted, and no pod is alive: there is nothing to protect": {
			from: leaving(), edit: func(o *plan.Observation) { o.Direct.ReadyPods, o.BackendEndpoints = 0, nil },
			actions: "RestoreRoot web", programmed: "False Pending",
		},
		"deleted, and the proxies are no endpoints any more: there is nothing to protect": {
			from: leaving(), edit: func(o *plan.Observation) { o.Direct.ReadyPods, o.Endpoints.Ready = 0, nil },
			actions: "RestoreRoot web", programmed: "False Pending",
		},
		"deleted, and the root Service is gone": {
			from: leaving(), edit: func(o *plan.Observation) { o.Root = plan.Root{Presence: kit.Absent} },
			actions: "Delete deployment", programmed: "False Pending",
		},
		"deleted, and the root Service is not known": {
			from: leaving(), edit: func(o *plan.Observation) { o.Root = plan.Root{} },
			programmed: "False Pending", message: "could not be read",
		},
		"restored: the proxies are stopped": {
			from: restored(), actions: "Delete deployment", programmed: "False Pending", message: "stopped",
		},
		"restored, but its own pods are no endpoints yet": {
			from: restored(), edit: func(o *plan.Observation) {
				o.Endpoints.Ready, o.Direct = []string{"p1", "p2"}, plan.Direct{Known: true, ReadyPods: 1}
			},
			programmed: "False Pending", message: "not its own pods yet",
		},
		"restored, no pod is ready, and none is waited for": {
			from: restored(), edit: func(o *plan.Observation) {
				o.Endpoints.Ready, o.Direct = []string{"p1", "p2"}, plan.Direct{Known: true}
			},
			actions: "Delete deployment", programmed: "False Pending",
		},
		"restored, but the endpoints are not known": {
			from: restored(), edit: func(o *plan.Observation) { o.Endpoints = plan.Endpoints{} },
			programmed: "False Pending", message: "could not be read",
		},
		"restored, but no ReplicaSet has adopted a proxy of a backup": {
			from: restored(), edit: func(o *plan.Observation) { o.DataPlane.Proxies[0].Unowned = o.Now.Add(-time.Second) },
			programmed: "False Pending", message: "no ReplicaSet has adopted proxy",
		},
		"stopped: the proxies may finish": {
			from: restored(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[1].Condition = traffic.ObjectAbsent
				o.DataPlane.Proxies[0].Terminating = true
			},
			programmed: "False Pending", message: "finish their requests",
		},
		"no proxy is left: the rest is deleted": {
			from: restored(), edit: func(o *plan.Observation) {
				o.DataPlane.Objects[1].Condition, o.DataPlane.Proxies = traffic.ObjectAbsent, nil
			},
			actions: "Delete slice, Delete role", programmed: "False Pending",
		},
		"nothing is left": {
			from: restored(), edit: func(o *plan.Observation) { o.DataPlane = traffic.State{} },
			actions: "RemoveFinalizer web",
		},
		"objects of another owner are left alone on the way out": {
			from: restored(), edit: func(o *plan.Observation) {
				noSlices(o)
				o.DataPlane.Objects[0].Condition, o.DataPlane.Objects[1].Condition = traffic.ObjectForeign, traffic.ObjectForeign
				o.DataPlane.Proxies = nil
			},
			actions: "RemoveFinalizer web",
		},
		"a split of another controller's is left alone entirely": {
			from: before(), edit: func(o *plan.Observation) { o.Claim, o.Split.Finalizers = plan.ClaimElsewhere, nil },
		},
		"a split that turns to another controller is withdrawn first": {
			from: live(), edit: func(o *plan.Observation) {
				o.Claim, o.Direct = plan.ClaimElsewhere, plan.Direct{Known: true, ReadyPods: 1}
			},
			actions: "RestoreRoot web", programmed: "False Pending",
		},
		"a split that lost its root Service to another one is withdrawn, and not the other": {
			from: live(), edit: func(o *plan.Observation) {
				o.Rival, o.Root.Service.Spec.Selector[traffic.LabelProxy] = "other", "other"
				o.Endpoints.Ready = []string{"q1"}
			},
			actions: "Delete deployment", programmed: "False Pending",
		},
		"a split that closes a circle is withdrawn, since its proxies follow it by themselves": {
			from: live(), edit: func(o *plan.Observation) {
				o.Problems = []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonCircular, Message: "a loop"}}
				o.Direct = plan.Direct{Known: true, ReadyPods: 1}
			},
			actions: "RestoreRoot web", programmed: "False Pending",
		},
		"a split that closes a circle and has no data plane gets none": {
			from: before(), edit: func(o *plan.Observation) {
				o.Problems = []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonCircular, Message: "a loop"}}
				o.Split.Finalizers, o.DataPlane = nil, traffic.State{}
			},
			programmed: "False Pending", message: "refused",
		},
		"who serves the split is not known": {
			from: before(), edit: func(o *plan.Observation) { o.Claim = "" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := decided(t, test.from, test.edit, test.actions)
			programmed, message := "", ""
			if d.Report != nil {
				programmed = fmt.Sprintf("%s %s", d.Report.Programmed.Status, d.Report.Programmed.Reason)
				message = d.Report.Programmed.Message
			}
			if programmed != test.programmed || !strings.Contains(message, test.message) {
				t.Errorf("Programmed: %q (%s), want %q (…%s…)", programmed, message, test.programmed, test.message)
			}
			for _, a := range d.Actions {
				w := writeOf(a)
				if w.Why == "" {
					t.Errorf("%s gives no reason", a)
				}
				if slices.Contains([]string{"Delete", "RestoreRoot", "CutOver"}, kindOf(a)) && (w.Object.UID == "" || w.Object.ResourceVersion == "") {
					t.Errorf("%s has no precondition: %+v", a, w.Object)
				}
			}
		})
	}
}

func TestAcceptedAndResolvedRefs(t *testing.T) {
	unresolved := traffic.Problem{Condition: splitv1.ConditionResolvedRefs, Reason: splitv1.ReasonPortMismatch, Message: "spec.backends: no port"}
	for name, test := range map[string]struct {
		edit               func(*plan.Observation)
		accepted, resolved string
	}{
		"all is well": {
			edit: func(*plan.Observation) {}, accepted: "True Accepted", resolved: "True Resolved",
		},
		"a router that does not exist is named": {
			edit: func(o *plan.Observation) {
				o.Claim, o.Router, o.Split.Finalizers = plan.ClaimUnknownRouter, "ngin", nil
			},
			accepted: "False UnknownRouter", resolved: "Unknown Pending",
		},
		"an older split is named": {
			edit:     func(o *plan.Observation) { o.Rival, o.Split.Finalizers = "other", nil },
			accepted: "False Conflict", resolved: "Unknown Pending",
		},
		"a part that can't be served is no refusal": {
			edit:     func(o *plan.Observation) { o.Problems = []traffic.Problem{unresolved} },
			accepted: "True Accepted", resolved: "False PortMismatch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := before()
			test.edit(&o)
			r := decide(o).Report
			if got := fmt.Sprintf("%s %s", r.Accepted.Status, r.Accepted.Reason); got != test.accepted {
				t.Errorf("Accepted: %s (%s), want %s", got, r.Accepted.Message, test.accepted)
			}
			if got := fmt.Sprintf("%s %s", r.ResolvedRefs.Status, r.ResolvedRefs.Reason); got != test.resolved {
				t.Errorf("ResolvedRefs: %s (%s), want %s", got, r.ResolvedRefs.Message, test.resolved)
			}
		})
	}
}

func TestTheWeightsReportedAreThoseInEffect(t *testing.T) {
	o := live()
	o.Split.Spec.Backends[0].Weight, o.Split.Spec.Backends[1].Weight = 5, 5
	o.Resolved.Ports[0].Destinations[0].Weight, o.Resolved.Ports[0].Destinations[1].Weight = 5, 5
	o.Split.Generation = 4
	if got := weights(decide(o)); got != "stable 9/3, canary 1/1" {
		t.Errorf("while the proxies still serve the generation before: %s", got)
	}
	o.DataPlane.Proxies[0].Generation, o.DataPlane.Proxies[1].Generation = 4, 4
	if got := weights(decide(o)); got != "stable 5/3, canary 5/1" {
		t.Errorf("when they all serve the new one: %s", got)
	}
	o.Resolved.Ports[0].Destinations = o.Resolved.Ports[0].Destinations[:1]
	if got := weights(decide(o)); got != "stable 5/3, canary 0/1" {
		t.Errorf("with a backend that no port sends to: %s", got)
	}
	if got := weights(decide(restored())); got != "" {
		t.Errorf("when the root Service was restored: %s", got)
	}
}

func TestWeightsOfPortsAreReportedWhenEachProxyServesThem(t *testing.T) {
	o := live()
	port := func(number int32, protocol traffic.Protocol, destinations ...traffic.Destination) traffic.Port {
		return traffic.Port{Number: number, Protocol: protocol, Destinations: destinations}
	}
	o.Resolved.PortWeights = true
	o.Resolved.Ports = []traffic.Port{
		port(80, traffic.ProtocolHTTP, traffic.Destination{Service: "stable", Weight: 9}, traffic.Destination{Service: "canary", Weight: 1}),
		port(53, traffic.ProtocolUDP, traffic.Destination{Service: "stable", Weight: 100}, traffic.Destination{Service: "canary", Weight: 0}),
		port(53, traffic.ProtocolTCP, traffic.Destination{Service: "stable", Weight: 50}),
	}
	report := func(configurations ...string) []splitv1.BackendStatus {
		for i, c := range configurations {
			o.DataPlane.Proxies[i].Configuration = c
		}
		return decide(o).Report.Backends
	}
	for _, configurations := range [][]string{{"", ""}, {o.Resolved.Digest(), "0123456789abcdef"}} {
		if diff := cmp.Diff(o.Split.Status.Backends, withoutEndpoints(report(configurations...))); diff != "" {
			t.Errorf("before all proxies have said so, %q (-want +got):\n%s", configurations, diff)
		}
	}
	want := []splitv1.BackendStatus{
		{Service: "stable", Weight: 100, Ports: []splitv1.PortStatus{
			{Port: 80, Protocol: "TCP", Weight: 9}, {Port: 53, Protocol: "UDP", Weight: 100}, {Port: 53, Protocol: "TCP", Weight: 50},
		}},
		{Service: "canary", Weight: 1, Ports: []splitv1.PortStatus{
			{Port: 80, Protocol: "TCP", Weight: 1}, {Port: 53, Protocol: "UDP", Weight: 0},
		}},
	}
	if diff := cmp.Diff(want, withoutEndpoints(report(o.Resolved.Digest(), o.Resolved.Digest()))); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	o.Resolved.PortWeights = false
	for _, b := range report(o.Resolved.Digest(), o.Resolved.Digest()) {
		if b.Ports != nil {
			t.Errorf("without the annotation %s reports ports: %v", b.Service, b.Ports)
		}
	}
}

func TestTheStatusSumsUpWhatProxiesServe(t *testing.T) {
	o := live()
	got := decide(o).Report.Proxies
	if want := (&splitv1.ProxiesStatus{Ready: 2, Confirmed: 2, Configuration: o.Resolved.Digest()}); !cmp.Equal(got, want) {
		t.Errorf("all of them: %s", cmp.Diff(want, got))
	}
	for i := range 198 {
		p := traffic.Proxy{Name: fmt.Sprintf("q%03d", i), Ready: true, Generation: 3, Configuration: wanted}
		if i >= 100 {
			p.Generation, p.Message = 2, "nginx: emerg"
		}
		o.DataPlane.Proxies = append(o.DataPlane.Proxies, p)
	}
	o.DataPlane.Proxies[0].Ready = false
	got = decide(o).Report.Proxies
	if got.Ready != 199 || got.Confirmed != 101 || len(got.Behind) != splitv1.MaxProxiesBehind {
		t.Errorf("some of 200: %+v", got)
	}
	if first := (splitv1.ProxyStatus{Name: "q100", ObservedGeneration: 2, Message: "nginx: emerg"}); got.Behind[0] != first {
		t.Errorf("the first that is behind: %+v", got.Behind[0])
	}
	o.DataPlane.Proxies = nil
	if got := decide(o).Report.Proxies; got != nil {
		t.Errorf("none: %+v", got)
	}
	if got := decide(leaving()).Report.Proxies; got != nil {
		t.Errorf("while the split is withdrawn: %+v", got)
	}
	o = confirmed()
	unread(&o)
	if got := decide(o).Report.Proxies; got == nil || got.Confirmed != 2 {
		t.Errorf("before any was read: %+v", got)
	}
}

func withoutEndpoints(backends []splitv1.BackendStatus) []splitv1.BackendStatus {
	for i := range backends {
		backends[i].ReadyEndpoints = 0
	}
	return backends
}

func weights(d plan.Decision) string {
	var parts []string
	for _, b := range d.Report.Backends {
		parts = append(parts, fmt.Sprintf("%s %d/%d", b.Service, b.Weight, b.ReadyEndpoints))
	}
	return strings.Join(parts, ", ")
}

func TestRival(t *testing.T) {
	aged := func(name string, age int64) *splitv1.TrafficSplit {
		return &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(age, 0)}}
	}
	root := func(holder string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{traffic.LabelProxy: holder}}}
	}
	gone := aged("gone", 1)
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	for name, test := range map[string]struct {
		split  *splitv1.TrafficSplit
		others []*splitv1.TrafficSplit
		root   *corev1.Service
		want   string
	}{
		"alone":                           {split: aged("a", 1), want: ""},
		"the older has it":                {split: aged("a", 2), others: []*splitv1.TrafficSplit{aged("b", 1)}, want: "b"},
		"the younger waits":               {split: aged("a", 1), others: []*splitv1.TrafficSplit{aged("b", 2)}, want: ""},
		"of the same age, the first":      {split: aged("b", 1), others: []*splitv1.TrafficSplit{aged("a", 1)}, want: "a"},
		"the one with proxies keeps it":   {split: aged("a", 1), others: []*splitv1.TrafficSplit{aged("b", 2)}, root: root("b"), want: "b"},
		"even while it is being deleted":  {split: aged("a", 2), others: []*splitv1.TrafficSplit{gone}, root: root("gone"), want: "gone"},
		"a holder that is gone is no one": {split: aged("a", 1), others: []*splitv1.TrafficSplit{aged("b", 2)}, root: root("c"), want: ""},
		"one being deleted has no claim":  {split: aged("a", 2), others: []*splitv1.TrafficSplit{gone}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Rival(test.split, test.others, test.root); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAProxyThatItsNodeDoesNotEndIsNotWaitedForWithoutEnd(t *testing.T) {
	const finish = "the proxies finish their requests"
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	proxy := func(stopsIn time.Duration) traffic.Proxy {
		return traffic.Proxy{Name: "p1", Node: "n1", Terminating: true, StopsBy: now.Add(stopsIn)}
	}
	ready := proxy(-time.Hour)
	ready.Ready = true
	for name, test := range map[string]struct {
		proxies []traffic.Proxy
		wait    string
		again   time.Duration
	}{
		"none is left":                         {},
		"it is not told to stop":               {[]traffic.Proxy{{Name: "p1"}}, finish, 5 * time.Second},
		"nothing owns it":                      {[]traffic.Proxy{{Name: "p1", Unowned: now.Add(-time.Hour)}}, `nothing owns the proxy "p1", so that nothing stops it; delete the pod`, 5 * time.Second},
		"it has time":                          {[]traffic.Proxy{proxy(90 * time.Second)}, finish, 90 * time.Second},
		"its time is over":                     {[]traffic.Proxy{proxy(0)}, `proxy "p1" was to stop by 12:00:00 UTC, and node "n1" does not say that it has; it is not waited for after 12:01:00 UTC`, time.Minute},
		"its time has long been over":          {[]traffic.Proxy{proxy(-59 * time.Second)}, `proxy "p1" was to stop by 11:59:01 UTC, and node "n1" does not say that it has; it is not waited for after 12:00:01 UTC`, time.Second},
		"it is not waited for any more":        {proxies: []traffic.Proxy{proxy(-time.Minute)}},
		"it answers after its time":            {proxies: []traffic.Proxy{ready}, wait: finish},
		"another one has time":                 {[]traffic.Proxy{proxy(-time.Minute), proxy(time.Second)}, finish, time.Second},
		"the first that is over is looked for": {[]traffic.Proxy{proxy(30 * time.Second), proxy(10 * time.Second)}, finish, 10 * time.Second},
	} {
		if wait, again := plan.Stopping(test.proxies, now); wait != test.wait || again != test.again {
			t.Errorf("%s: it waits for %q, and looks again after %s", name, wait, again)
		}
	}
}

func TestWhatRunsProxiesStaysUntilItHasAdoptedThem(t *testing.T) {
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		proxy traffic.Proxy
		again time.Duration // 0 for one that is not waited for
	}{
		"it has an owner":              {},
		"it has none yet":              {traffic.Proxy{Unowned: now.Add(-10 * time.Second)}, 5 * time.Second},
		"it has had none for long":     {traffic.Proxy{Unowned: now.Add(-58 * time.Second)}, 2 * time.Second},
		"it has had none for too long": {traffic.Proxy{Unowned: now.Add(-time.Minute)}, 0},
		"it stops by itself":           {traffic.Proxy{Unowned: now, Terminating: true}, 0},
	} {
		test.proxy.Name = "p2"
		wait, again := plan.Unadopted([]traffic.Proxy{{Name: "p1"}, test.proxy}, now)
		if again != test.again || strings.Contains(wait, `"p2"`) != (test.again > 0) {
			t.Errorf("%s: it waits for %q, and looks again after %s", name, wait, again)
		}
	}
}
