// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
)

func readyPod(name, version string, status corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "website", "version": version}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

func selecting(name string, selector map[string]string) *corev1.Service {
	s := service(name)
	s.Spec.Selector = selector
	return s
}

func inEffectSplit(stable, canary int32) *splitv1.TrafficSplit {
	ts := trafficSplit(stable, canary)
	for _, b := range ts.Spec.Backends {
		ts.Status.Backends = append(ts.Status.Backends, splitv1.BackendStatus{Service: b.Service, Weight: b.Weight})
	}
	return ts
}

// readyProxy is a proxy of the Service website with the EndpointSlice that names it.
func readyProxy() (pod *corev1.Pod, slice *discoveryv1.EndpointSlice) {
	pod = readyPod("proxy", "", corev1.ConditionTrue)
	pod.Labels, pod.Status.PodIP = map[string]string{traffic.LabelProxy: "website"}, "10.0.0.1"
	slice = &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "website-proxies-ipv4", Labels: map[string]string{
			discoveryv1.LabelManagedBy: endpoints.ManagedBy, discoveryv1.LabelServiceName: "website",
		}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "proxy"},
		}},
	}
	return pod, slice
}

// The check that every play ends with finds what it is there to find.
func TestTheHistoryTellsWhenTrafficGoesToMissingPods(t *testing.T) {
	t.Parallel()
	proxy, slice := readyProxy()
	begun := []client.Object{
		readyPod("v1-a", "1", corev1.ConditionTrue), readyPod("v1-b", "1", corev1.ConditionTrue), readyPod("v2-a", "2", corev1.ConditionTrue), proxy, slice,
		selecting("website-stable", map[string]string{"version": "1"}), selecting("website-canary", map[string]string{"version": "2"}),
		selecting("website", map[string]string{"app": "website", traffic.LabelProxy: "website"}), inEffectSplit(80, 20),
	}
	for name, test := range map[string]struct {
		then []client.Object
		gone bool
		// writes are those of Serin before all is well again, and allowed those that may be.
		writes, allowed int
		// forGood is whether it never is.
		forGood bool
		want    string
	}{
		"nothing is wrong": {},
		"the canary's only pod goes while it has weight": {
			then: []client.Object{readyPod("v2-a", "2", corev1.ConditionTrue)}, gone: true,
			want: "the Service website-canary has 0 ready pods",
		},
		"a pod of stable gets unready":            {then: []client.Object{readyPod("v1-a", "1", corev1.ConditionFalse)}, want: "the Service website-stable has 1 ready pods, and needs 2"},
		"the canary has too few pods":             {then: []client.Object{inEffectSplit(40, 60)}, want: "the Service website-canary has 1 ready pods, and needs 2"},
		"a weight is asked for before pods exist": {then: []client.Object{selecting("website-canary", map[string]string{"version": "3"})}, want: "weight 20 was asked for"},
		"the Service of stable selects nobody":    {then: []client.Object{selecting("website-stable", map[string]string{"version": "9"})}, want: "the Service website-stable has 0"},
		"the Service of the canary is deleted":    {then: []client.Object{service("website-canary")}, gone: true, want: "the Service website-canary has 0"},
		"the proxies are no endpoints any more":   {then: []client.Object{slice}, gone: true, want: "the Service website has 0 ready pods, and needs 1: its proxies"},
		"the proxies go":                          {then: []client.Object{proxy}, gone: true, want: "the Service website has 0 ready pods, and needs 1: its proxies"},
		"another actor's change is restored in as many writes as it takes": {
			then: []client.Object{readyPod("v1-a", "1", corev1.ConditionFalse)}, writes: 2, allowed: 2,
		},
		"another actor's change is restored in more": {
			then: []client.Object{readyPod("v1-a", "1", corev1.ConditionFalse)}, writes: 3, allowed: 2,
			want: "the Service website-stable has 1",
		},
		"another actor's change is never restored": {
			then: []client.Object{readyPod("v1-a", "1", corev1.ConditionFalse)}, allowed: 2, forGood: true,
			want: "the Service website-stable has 1 ready pods, and needs 2: weight 80 is in effect, until the end",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			add := func(o client.Object, gone bool) {
				h.moments = append(h.moments, moment{version: uint64(len(h.moments)), object: o, gone: gone})
			}
			for _, o := range begun {
				add(o, false)
			}
			for _, o := range test.then {
				add(o, test.gone)
			}
			for range test.writes {
				add(newRollout(), false)
			}
			if !test.forGood {
				for _, o := range begun {
					add(o, false)
				}
			}
			got := strings.Join(h.check(uint64(len(begun)-1), promise{keeps: 2, writes: test.allowed}), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAProxyAnswersOnceAPodIsReadyBehindIt(t *testing.T) {
	t.Parallel()
	proxy, slice := readyProxy()
	led := selecting("website", map[string]string{"app": "website", traffic.LabelProxy: "website"})
	again := proxy.DeepCopy()
	again.Status.PodIP = "10.0.0.2"
	for name, test := range map[string]struct {
		objects []client.Object
		want    bool
	}{
		"only a proxy":                               {[]client.Object{led, slice, proxy}, false},
		"a pod that is not ready behind it":          {[]client.Object{led, slice, proxy, readyPod("v1-a", "1", corev1.ConditionFalse)}, false},
		"a ready pod behind it":                      {[]client.Object{led, slice, proxy, readyPod("v1-a", "1", corev1.ConditionTrue)}, true},
		"a ready pod, and another proxy of the name": {[]client.Object{led, slice, again, readyPod("v1-a", "1", corev1.ConditionTrue)}, false},
		"a ready pod without its proxy":              {[]client.Object{led, slice, readyPod("v1-a", "1", corev1.ConditionTrue)}, false},
		"a ready pod of its own":                     {[]client.Object{selecting("website", map[string]string{"app": "website"}), readyPod("v1-a", "1", corev1.ConditionTrue)}, true},
	} {
		w := world{}
		for _, o := range test.objects {
			w.apply(moment{object: o})
		}
		if got := w.answers("website"); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a test has seen elsewhere may not be in the history yet.
func TestTheHistoryKnowsWhatItWasNotToldYet(t *testing.T) {
	t.Parallel()
	at := func(o client.Object, version int) client.Object {
		o.SetResourceVersion(strconv.Itoa(version))
		return o
	}
	h := &history{}
	h.add(watch.Event{Type: watch.Added}, at(service("website"), 3))
	h.add(watch.Event{Type: watch.Added}, at(service("canary"), 4))
	h.add(watch.Event{Type: watch.Added}, at(service("later"), 9))
	for name, test := range map[string]struct {
		now  map[string]uint64
		want []string
	}{
		"all of it":              {now: map[string]uint64{"*v1.Service/website": 3, "*v1.Service/canary": 4}},
		"a change":               {now: map[string]uint64{"*v1.Service/website": 5, "*v1.Service/canary": 4}, want: []string{"*v1.Service/website"}},
		"a new object":           {now: map[string]uint64{"*v1.Service/website": 3, "*v1.Service/canary": 4, "*v1.Pod/a": 5}, want: []string{"*v1.Pod/a"}},
		"that an object is gone": {now: map[string]uint64{"*v1.Service/website": 3}, want: []string{"*v1.Service/canary"}},
	} {
		if got := h.untold(5, test.now); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	h.add(watch.Event{Type: watch.Deleted}, at(service("canary"), 5))
	if got := h.untold(5, map[string]uint64{"*v1.Service/website": 3}); len(got) > 0 {
		t.Errorf("told that it is gone: %v", got)
	}
}
