// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/sampling/evidence"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

func snapshotOf(ro *v1alpha1.Rollout, split *splitv1.TrafficSplit) snapshot {
	s := snapshot{split: split}
	s.Rollout, s.RouterName, s.RouterOffered = ro, v1alpha1.RouterNginx, true
	return s
}

func website() *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "ro"}}
	ro.Spec.Service = "website"
	return ro
}

func TestAPatchOfTheSplitMakesItWhatItHasToBe(t *testing.T) {
	blank := func() *splitv1.TrafficSplit {
		ts := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "split"}}
		ts.Generation = 3
		return ts
	}
	for name, test := range map[string]struct {
		live  func() *splitv1.TrafficSplit
		route strategy.Route
	}{
		"from nothing": {blank, strategy.Route{Weight: 20}},
		"from another route, whose annotations go": {func() *splitv1.TrafficSplit {
			ts := blank()
			setSplit(ts, snapshotOf(website(), nil), strategy.Route{Weight: 50, Matches: []string{"testers"}, Mirror: 10})
			return ts
		}, strategy.Route{Weight: 20}},
		"in addition to what others wrote": {func() *splitv1.TrafficSplit {
			ts := blank()
			ts.Labels, ts.Annotations = map[string]string{"team": "a"}, map[string]string{"example.com/a~b": "c"}
			return ts
		}, strategy.Route{Weight: 0, Mirror: 5}},
		"to all that match, with copies of the others": {blank, strategy.Route{Weight: 100, Matches: []string{"testers"}, Mirror: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(test.live()).Build()
			live := &splitv1.TrafficSplit{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(test.live()), live); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{client: c}
			s := snapshotOf(website(), live)
			if err := r.applySplit(t.Context(), s, test.route); err != nil {
				t.Fatal(err)
			}
			got := &splitv1.TrafficSplit{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), got); err != nil {
				t.Fatal(err)
			}
			want := live.DeepCopy()
			setSplit(want, s, test.route)
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPatchOfAnotherGenerationOrSplitIsAConflict(t *testing.T) {
	stored := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "split", Generation: 3}}
	for name, change := range map[string]func(*splitv1.TrafficSplit){
		"another generation": func(ts *splitv1.TrafficSplit) { ts.Generation = 2 },
		"another split":      func(ts *splitv1.TrafficSplit) { ts.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(stored.DeepCopy()).Build()
			seen := stored.DeepCopy()
			change(seen)
			r := &Reconciler{client: c}
			if err := r.applySplit(t.Context(), snapshotOf(website(), seen), strategy.Route{Weight: 20}); err == nil {
				t.Fatal("it is written")
			}
			got := &splitv1.TrafficSplit{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), got); err != nil || len(got.Spec.Backends) > 0 {
				t.Errorf("it is written: %v, %v", got.Spec, err)
			}
		})
	}
}

func TestTheFailedTestOfAPatchIsAConflictAndAnInvalidObjectIsNot(t *testing.T) {
	failed := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false)
	invalid := apierrors.NewInvalid(splitv1.GroupVersion.WithKind("TrafficSplit").GroupKind(), "website", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	other := errors.New("away")
	for _, test := range []struct {
		err  error
		want bool
	}{{failed, true}, {invalid, false}, {other, false}, {nil, false}} {
		if got := apierrors.IsConflict(staleIfUnmet(test.err)); got != test.want {
			t.Errorf("%v: a conflict: %v", test.err, got)
		}
	}
}

// A router that the operator does not offer can't take the traffic back: the one that
// has it can.
func TestTheSplitKeepsItsRouterWhereThatOfTheSpecCanServeNone(t *testing.T) {
	live := &splitv1.TrafficSplit{}
	setSplit(live, snapshotOf(website(), nil), strategy.Route{Weight: 20})
	for name, test := range map[string]struct {
		router  v1alpha1.RouterName
		offered bool
		want    v1alpha1.RouterName
	}{
		"offered":     {"gateway", true, "gateway"},
		"not offered": {"gateway", false, v1alpha1.RouterNginx},
		"none":        {v1alpha1.RouterNone, true, v1alpha1.RouterNginx},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(website(), live)
			s.RouterName, s.RouterOffered = test.router, test.offered
			if got := s.splitRouter(); got != test.want {
				t.Errorf("router %s", got)
			}
			if got := requestedRoute(live, &s, "website-stable", "website-canary").Weight == 20; got != (test.want == v1alpha1.RouterNginx) {
				t.Errorf("its route is known: %v", got)
			}
		})
	}
}

func TestTheServiceThatIsStableByTheRecordStaysSo(t *testing.T) {
	for name, test := range map[string]struct{ recorded, want string }{
		"nothing is recorded":      {"", "v3"},
		"the one that is stable":   {"v3", "v3"},
		"the canary, promoted":     {"v4", "v3"},
		"one that is not in there": {"v1", "v1"},
	} {
		ro := website()
		ro.Spec.Services = &v1alpha1.ServicePair{Stable: "v3", Canary: "v4"}
		ro.Status.Stable = &v1alpha1.VersionStatus{Service: test.recorded}
		if stable, canary := backendNames(ro); stable != test.want || canary != "v4" {
			t.Errorf("%s: %s and %s", name, stable, canary)
		}
	}
}

func TestAReplicaSetThatIsMarkedForAnotherRolloutIsNotOurs(t *testing.T) {
	for uid, want := range map[string]bool{"": true, "ro": true, "other": false} {
		s := snapshotOf(website(), nil)
		s.root = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "website", UID: "root"}}
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{workload.CanaryController(s.root)},
			Annotations:     map[string]string{v1alpha1.AnnotationRolloutUID: uid},
		}}
		if owner, ours := s.ownerOf(rs); ours != want || ours && owner != kit.OwnerSerin {
			t.Errorf("marked %q: ours %v, owner %v", uid, ours, owner)
		}
	}
}

func TestWhatIsNotSplitGoesToTheVersionThatKeepsItsPods(t *testing.T) {
	pair := website()
	pair.Spec.Services = &v1alpha1.ServicePair{Stable: "v1", Canary: "v2"}
	for name, test := range map[string]struct {
		ro    *v1alpha1.Rollout
		route strategy.Route
		want  string
	}{
		"stable, while it shares the traffic":                       {website(), strategy.Route{Weight: 60}, "website-stable"},
		"the canary, when it has all of it":                         {website(), strategy.Route{Weight: 100}, "website-canary"},
		"stable, when the canary has all that match":                {website(), strategy.Route{Weight: 100, Matches: []string{"testers"}}, "website-stable"},
		"no version in particular, with Services that users keep":   {pair, strategy.Route{Weight: 60}, ""},
		"stable of such Services, when there are requests to match": {pair, strategy.Route{Weight: 60, Matches: []string{"testers"}}, "v1"},
	} {
		t.Run(name, func(t *testing.T) {
			ts, s := &splitv1.TrafficSplit{}, snapshotOf(test.ro, nil)
			setSplit(ts, s, test.route)
			if got := traffic.DefaultBackend(ts); got != test.want {
				t.Errorf("default %q, want %q", got, test.want)
			}
			s.split = ts
			stable, canary := backendNames(test.ro)
			if got := requestedRoute(ts, &s, stable, canary); got.Weight != test.route.Weight {
				t.Errorf("it reads as %+v", got)
			}
			splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.DefaultBackend = "other" })
			if got := requestedRoute(ts, &s, stable, canary); got.Weight != unknownRoute.Weight {
				t.Errorf("another default is not drift: %+v", got)
			}
		})
	}
}

func TestTheRoutesOfTheSpecAreNamedByTheSplit(t *testing.T) {
	ro := website()
	ro.Spec.RouteRefs = []v1alpha1.RouteReference{{Kind: "HTTPRoute", Name: "web"}, {Kind: "VirtualService", Name: "web", Section: "checkout"}}
	ts, s := &splitv1.TrafficSplit{}, snapshotOf(ro, nil)
	setSplit(ts, s, strategy.Route{Weight: 20})
	if got := fmt.Sprint(traffic.RouteNames(ts)); got != "[HTTPRoute/web VirtualService/web:checkout]" {
		t.Errorf("routes %s", got)
	}
	s.split = ts
	if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != 20 {
		t.Errorf("it reads as %+v", got)
	}
	ro.Spec.RouteRefs = ro.Spec.RouteRefs[:1]
	if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != unknownRoute.Weight {
		t.Errorf("a route that is no longer named is not drift: %+v", got)
	}
}

func TestProxiesRunAsTheSpecSaysAtOnce(t *testing.T) {
	ro := website()
	ro.Spec.ProxyPods = &splitv1.ProxyPods{
		Replicas: new(int32(4)), PriorityClassName: "high", Annotations: map[string]splitv1.AnnotationValue{"team": "checkout"},
		Resources: &splitv1.ProxyResources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024Mi")}},
	}
	ts, s := &splitv1.TrafficSplit{}, snapshotOf(ro, nil)
	setSplit(ts, s, strategy.Route{Weight: 20})
	s.split = ts
	weight := func(ts *splitv1.TrafficSplit) int32 {
		return requestedRoute(ts, &s, "website-stable", "website-canary").Weight
	}
	routing, err := splitv1.RoutingOf(ts)
	if diff := cmp.Diff(ro.Spec.ProxyPods, routing.ProxyPods); diff != "" || err != nil || weight(ts) != 20 {
		t.Errorf("%v, the weight %d, the split has (-want +got):\n%s", err, weight(ts), diff)
	}
	edited := ts.DeepCopy()
	splitv1.EditRouting(edited, func(r *splitv1.Routing) { r.ProxyPods.Replicas = new(int32(1)) })
	if weight(edited) != unknownRoute.Weight {
		t.Error("another actor's edit is no drift")
	}
	ro.Spec.ProxyPods = ro.Spec.ProxyPods.DeepCopy()
	ro.Spec.ProxyPods.MaxReplicas = new(int32(20))
	if weight(ts) != unknownRoute.Weight {
		t.Error("a change of the spec is not written at once")
	}
	setSplit(ts, s, strategy.Route{Weight: 20})
	if routing, err := splitv1.RoutingOf(ts); err != nil || routing.ProxyPods.MaxReplicas == nil || weight(ts) != 20 {
		t.Errorf("%v, it is written as %+v", err, routing.ProxyPods)
	}
	ro.Spec.ProxyPods = nil
	if weight(ts) != unknownRoute.Weight {
		t.Error("the end of it is not written at once")
	}
	setSplit(ts, s, strategy.Route{Weight: 20})
	if text := ts.Annotations[splitv1.AnnotationRouting]; strings.Contains(text, "proxyPods") {
		t.Errorf("nothing of its own is written as %s", text)
	}
}

// The router confirms no weight of a split that it refuses, so what can't be is not written.
func TestProxiesThatCanNotRunAsTheSpecSaysRunAsTheyDid(t *testing.T) {
	for name, test := range map[string]struct {
		router v1alpha1.RouterName
		pods   splitv1.ProxyPods
		want   string
	}{
		"what the schema did not check": {v1alpha1.RouterNginx, splitv1.ProxyPods{Replicas: new(int32(0))}, "replicas: 0 is not from 1 to 1000"},
		"what can be":                   {v1alpha1.RouterNginx, splitv1.ProxyPods{Replicas: new(int32(3))}, ""},
		"a router without proxies":      {v1alpha1.RouterIstio, splitv1.ProxyPods{Replicas: new(int32(0))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ro, ts := website(), &splitv1.TrafficSplit{}
			before := &splitv1.ProxyPods{PriorityClassName: "high"}
			ro.Spec.ProxyPods = before
			setSplit(ts, snapshotOf(ro, nil), strategy.Route{Weight: 20})
			ro.Spec.ProxyPods = &test.pods
			for _, split := range []*splitv1.TrafficSplit{nil, ts} {
				s := snapshotOf(ro, split)
				s.RouterName, s.RouterOffered = test.router, true
				s.compareSplit()
				if got := s.ProxyPodsProblem; got != test.want {
					t.Errorf("the problem is %q, want %q", got, test.want)
				}
				want := &test.pods
				if test.want != "" && split != nil {
					want = before
				} else if test.want != "" {
					want = nil
				}
				if diff := cmp.Diff(want, s.routing(strategy.Route{}).ProxyPods); diff != "" {
					t.Errorf("(-want +written):\n%s", diff)
				}
				if split != nil && test.want != "" && s.Split.Requested.Weight != 20 {
					t.Errorf("the split requests %d", s.Split.Requested.Weight)
				}
			}
		})
	}
}

func TestEachReleaseHasCookiesOfItsOwn(t *testing.T) {
	ro := website()
	ro.Spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: "version", MaxAge: "12h"}
	release := func(revision string, second int64) {
		started := metav1.Unix(second, 0)
		ro.Status.Canary = &v1alpha1.VersionStatus{Revision: revision, StartedAt: &started}
	}
	ts, s := &splitv1.TrafficSplit{}, snapshotOf(ro, nil)
	sessions := map[string]string{}
	write := func(name string, weight int32) {
		t.Helper()
		setSplit(ts, s, strategy.Route{Weight: weight})
		s.split = ts
		routing, err := splitv1.RoutingOf(ts)
		if err != nil || routing.StickyCookie == nil || routing.StickyCookie.Name != "version" || routing.StickyCookie.MaxAge != "12h" {
			t.Fatalf("%s: %+v, %v", name, routing.StickyCookie, err)
		}
		sessions[name] = routing.StickyCookie.Session
		if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != weight {
			t.Errorf("%s: it reads as %+v", name, got)
		}
	}
	release("6f9", 1000)
	write("a release", 20)
	write("its next step", 50)
	release("7c4", 2000)
	if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != 50 {
		t.Errorf("a newer release is no drift before its first weight: %+v", got)
	}
	write("a newer version", 20)
	release("7c4", 3000)
	write("the same version again", 20)
	ro.Status.Canary = nil
	write("after it", 0)
	for _, pair := range [][2]string{{"a release", "its next step"}, {"the same version again", "after it"}} {
		if sessions[pair[0]] == "" || sessions[pair[0]] != sessions[pair[1]] {
			t.Errorf("%v: %v", pair, sessions)
		}
	}
	if sessions["a release"] == sessions["a newer version"] || sessions["a newer version"] == sessions["the same version again"] {
		t.Errorf("clients of one release stay in the next: %v", sessions)
	}
	for name, edit := range map[string]func(*splitv1.StickyCookie){
		"another cookie": func(c *splitv1.StickyCookie) { c.Name = "other" },
		"another age":    func(c *splitv1.StickyCookie) { c.MaxAge = "1h" },
	} {
		drifted := ts.DeepCopy()
		splitv1.EditRouting(drifted, func(r *splitv1.Routing) { edit(r.StickyCookie) })
		if got := requestedRoute(drifted, &s, "website-stable", "website-canary"); got.Weight != unknownRoute.Weight {
			t.Errorf("%s is no drift: %+v", name, got)
		}
	}
	ro.Spec.SessionAffinity = nil
	if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != unknownRoute.Weight {
		t.Errorf("a cookie that is no longer asked for is no drift: %+v", got)
	}
}

func TestWeightsOfSinglePortsAreDrift(t *testing.T) {
	for _, rules := range []splitv1.PortRouting{{Protocol: "TCP"}, {Weights: map[string]splitv1.PortWeight{"website-stable": 1}}} {
		ts, s := &splitv1.TrafficSplit{}, snapshotOf(website(), nil)
		setSplit(ts, s, strategy.Route{Weight: 20})
		splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Ports = map[string]splitv1.PortRouting{"80/TCP": rules} })
		s.split = ts
		if got := requestedRoute(ts, &s, "website-stable", "website-canary"); got.Weight != unknownRoute.Weight {
			t.Errorf("%+v is not drift: %+v", rules, got)
		}
		setSplit(ts, s, strategy.Route{Weight: 20})
		if routing, err := splitv1.RoutingOf(ts); err != nil || routing.Ports != nil {
			t.Errorf("it stays: %+v, %v", routing, err)
		}
	}
}

func TestTheLiveWeightIsUnknownWhilePortsDiffer(t *testing.T) {
	backends := func(stable, canary int32) []splitv1.BackendStatus {
		ports := func(udp, tcp int32) []splitv1.PortStatus {
			return []splitv1.PortStatus{{Port: 53, Protocol: "UDP", Weight: udp}, {Port: 53, Protocol: "TCP", Weight: tcp}}
		}
		return []splitv1.BackendStatus{
			{Service: "website-stable", Weight: 80, Ports: ports(80, stable)}, {Service: "website-canary", Weight: 20, Ports: ports(20, canary)},
		}
	}
	if got := observedWeight(backends(80, 20), "website-stable", "website-canary"); got != 20 {
		t.Errorf("with one weight on all ports: %d", got)
	}
	if got := observedWeight(backends(80, 0), "website-stable", "website-canary"); got != -1 {
		t.Errorf("with a port that the canary gets nothing of: %d", got)
	}
}

func TestWhetherTrafficMetricsAreServedIsLookedAtNoLaterThanAnythingElse(t *testing.T) {
	r := &Reconciler{options: Options{TrafficMetrics: func() bool { return false }}}
	ro := website()
	ro.Spec.Analysis = &v1alpha1.Analysis{}
	for before, want := range map[time.Duration]time.Duration{0: servedRecheck, time.Second: time.Second, time.Hour: servedRecheck} {
		s := snapshot{Observation: state.Observation{Rollout: ro, RouterName: v1alpha1.RouterNone}, recheck: before}
		r.observeCounting(&s, nil)
		if s.recheck != want || s.Metrics.Problem == "" {
			t.Errorf("looked at again after %s, want %s; problem %q", s.recheck, want, s.Metrics.Problem)
		}
	}
}

// Until the traffic is off the proxies of a split, they count it, whatever the spec says.
func TestASplitThatIsThereIsMeasuredAlthoughTheSpecNamesNoRouter(t *testing.T) {
	status := &v1alpha1.RolloutStatus{Stable: &v1alpha1.VersionStatus{Revision: "1"}, Canary: &v1alpha1.VersionStatus{Revision: "2"}}
	sets := []kit.ReplicaSet{{Object: kit.Object{Name: "website-1"}, Revision: "1"}, {Object: kit.Object{Name: "website-2"}, Revision: "2"}}
	served := func(router string) *splitv1.TrafficSplit {
		ts := &splitv1.TrafficSplit{}
		splitv1.SetRouting(ts, splitv1.Routing{Router: router})
		return ts
	}
	for name, test := range map[string]struct {
		split    *splitv1.TrafficSplit
		counting evidence.Counting
		want     analysis.Subject
		measured bool
	}{
		"proxies of a split":        {served("nginx"), "", analysis.Subject{Split: "website", Stable: "website-stable", Canary: "website-canary"}, true},
		"two ReplicaSets":           {nil, evidence.CountingReplicaSets, analysis.Subject{Stable: "website-1", Canary: "website-2"}, true},
		"ReplicaSets of a switch":   {served("none"), evidence.CountingReplicaSets, analysis.Subject{Stable: "website-1", Canary: "website-2"}, true},
		"a metric counts by itself": {nil, evidence.CountingComparison, analysis.Subject{Stable: "website-1", Canary: "website-2"}, false},
		"nothing counts":            {nil, evidence.CountingNothing, analysis.Subject{Stable: "website-1", Canary: "website-2"}, false},
	} {
		s := snapshot{Observation: state.Observation{Rollout: website(), RouterName: v1alpha1.RouterNone, ReplicaSets: sets}, split: test.split, counting: test.counting}
		if got, measured := s.subject(status); got != test.want || measured != test.measured {
			t.Errorf("%s: %+v, measured %v", name, got, measured)
		}
	}
}
