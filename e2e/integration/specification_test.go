// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// The workflows and examples of the TrafficSplit specification, with the words of its
// text in the comments, on a real control plane. Only pods are made up.

// appVersion is a Deployment of two pods, and its Service.
func appVersion(app, version string) (*appsv1.Deployment, *corev1.Service) {
	d := deployment(app+"-"+version, 2)
	for _, labels := range []map[string]string{d.Spec.Selector.MatchLabels, d.Spec.Template.Labels} {
		labels["app"], labels["version"] = app, version
	}
	backend := service(app + "-" + version)
	backend.Spec.Selector = map[string]string{"app": app, "version": version}
	return d, backend
}

func split(name, root string, backends ...splitv1.Backend) *splitv1.TrafficSplit {
	return &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: splitv1.TrafficSplitSpec{Service: root, Backends: backends},
	}
}

// pods are the names of the Deployments, or of the split, whose pods are the ready
// endpoints of a Service, with their number.
func (s *scene) endpointsOf(ctx context.Context, service string) map[string]int {
	s.Helper()
	list := &discoveryv1.EndpointSliceList{}
	err := admin.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil && ctx.Err() == nil {
		s.Fatal(err)
	}
	found := map[string]int{}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) && e.TargetRef != nil {
				parts := strings.Split(e.TargetRef.Name, "-")
				found[strings.Join(parts[:len(parts)-2], "-")]++
			}
		}
	}
	return found
}

func (s *scene) hasEndpoints(service string, want map[string]int) {
	s.Helper()
	var got map[string]int
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("the endpoints of %s were last %v, wanted %v", service, got, want)
		}
	})
	s.eventually("the endpoints of "+service, func(ctx context.Context) bool {
		got = s.endpointsOf(ctx, service)
		return maps.Equal(got, want)
	})
}

// weights are the weights in effect by the status of a split.
func (s *scene) weights(name string) map[string]int32 {
	s.Helper()
	weights := map[string]int32{}
	for _, b := range s.get(s.Context(), name, &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit).Status.Backends {
		weights[b.Service] = b.Weight
	}
	return weights
}

func (s *scene) setBackends(name string, backends ...splitv1.Backend) {
	s.Helper()
	change(s, name, &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { ts.Spec.Backends = backends })
}

// effective waits until the present generation of a split is in effect, and checks its
// weights.
func (s *scene) effective(name string, want map[string]int32) {
	s.Helper()
	s.says(name, splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed)
	if got := s.weights(name); !maps.Equal(got, want) {
		s.Errorf("weights in effect: %v, want %v", got, want)
	}
}

// gone deletes an object and waits until it is gone.
func (s *scene) gone(o client.Object) {
	s.Helper()
	o.SetNamespace(s.namespace)
	if err := admin.Delete(s.Context(), o); err != nil {
		s.Fatal(err)
	}
	s.eventually(o.GetName()+" is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(o), o))
	})
}

// share is the part of a port's requests that a proxy sends to a Service.
func share(port traffic.Port, service string) float64 {
	for _, d := range port.Destinations {
		if d.Service == service {
			return float64(d.Weight) / float64(port.TotalWeight())
		}
	}
	return 0
}

func TestTheWorkflowOfTheSpecification(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	// "The user has previously created: Deployment foobar-v1 with labels app: foobar and
	// version: v1, Service foobar with a selector of app: foobar, Service foobar-v1."
	d1, s1 := appVersion("foobar", "v1")
	s.create(d1, s1, service("foobar"))
	s.hasEndpoints("foobar", map[string]int{"foobar-v1": 2})
	s.serveProxies()
	s.startOperator(newMeasurements())

	// "Create a new traffic split named foobar-rollout … refers to the service foobar-v2
	// even before it is created."
	ts := split("foobar-rollout", "foobar", splitv1.Backend{Service: "foobar-v1", Weight: 100}, splitv1.Backend{Service: "foobar-v2"})
	s.create(ts)
	s.effective("foobar-rollout", map[string]int32{"foobar-v1": 100, "foobar-v2": 0})
	s.says("foobar-rollout", splitv1.ConditionAccepted, metav1.ConditionTrue, splitv1.ReasonAccepted)
	s.says("foobar-rollout", splitv1.ConditionResolvedRefs, metav1.ConditionFalse, splitv1.ReasonBackendNotFound, `Service "foobar-v2" does not exist yet`)
	s.hasEndpoints("foobar", map[string]int{"serin-proxy-foobar-rollout": 2})
	feed := s.proxyFeed(ts, "a-proxy")
	if want := nextWant(t, feed); share(want.Split.Ports[0], "foobar-v1") != 1 {
		t.Errorf("foobar-v1 gets %v of the requests", share(want.Split.Ports[0], "foobar-v1"))
	}

	// "Create a new deployment named foobar-v2", "create a new service named foobar-v2":
	// "the SMI implementation does not redirect any traffic to foobar-v2."
	d2, s2 := appVersion("foobar", "v2")
	s.create(d2)
	s.eventually("foobar-v2 is ready", func(ctx context.Context) bool {
		return s.get(ctx, "foobar-v2", &appsv1.Deployment{}).(*appsv1.Deployment).Status.ReadyReplicas == 2
	})
	s.create(s2)
	s.says("foobar-rollout", splitv1.ConditionResolvedRefs, metav1.ConditionTrue, splitv1.ReasonResolved)
	s.effective("foobar-rollout", map[string]int32{"foobar-v1": 100, "foobar-v2": 0})
	s.hasEndpoints("foobar", map[string]int{"serin-proxy-foobar-rollout": 2})
	if want := nextWant(t, feed); share(want.Split.Ports[0], "foobar-v2") != 0 || len(want.Split.Ports[0].Destinations) != 2 {
		t.Errorf("the proxies send foobar-v2 %v of the requests, to %+v", share(want.Split.Ports[0], "foobar-v2"), want.Split.Ports[0].Destinations)
	}

	// "Spot check by sending manual requests to the foobar-v2 service."
	s.hasEndpoints("foobar-v2", map[string]int{"foobar-v2": 2})

	// "The user increases the weight of foobar-v2 … 1000, 500: at this point, the SMI
	// implementation redirects approximately 33% of traffic to foobar-v2."
	s.setBackends("foobar-rollout", splitv1.Backend{Service: "foobar-v1", Weight: 1000}, splitv1.Backend{Service: "foobar-v2", Weight: 500})
	s.effective("foobar-rollout", map[string]int32{"foobar-v1": 1000, "foobar-v2": 500})
	if got := share(nextWant(t, feed).Split.Ports[0], "foobar-v2"); got != 1./3 {
		t.Errorf("the proxies send foobar-v2 %v of the requests", got)
	}

	// "Redirect all traffic to the new version."
	s.setBackends("foobar-rollout", splitv1.Backend{Service: "foobar-v2", Weight: 1})
	s.effective("foobar-rollout", map[string]int32{"foobar-v2": 1})
	if got := share(nextWant(t, feed).Split.Ports[0], "foobar-v2"); got != 1 {
		t.Errorf("the proxies send foobar-v2 %v of the requests", got)
	}

	// "Delete the old foobar-v1 deployment. Delete the old foobar-v1 service."
	s.gone(d1)
	s.gone(s1)
	s.effective("foobar-rollout", map[string]int32{"foobar-v2": 1})
	s.hasEndpoints("foobar", map[string]int{"serin-proxy-foobar-rollout": 2})

	// "Delete foobar-rollout as it is no longer needed."
	s.gone(ts)
	s.hasEndpoints("foobar", map[string]int{"foobar-v2": 2})
	root := s.get(t.Context(), "foobar", &corev1.Service{}).(*corev1.Service)
	if !maps.Equal(root.Spec.Selector, map[string]string{"app": "foobar"}) || len(root.Annotations) > 0 {
		t.Errorf("given back with the selector %v and the annotations %v", root.Spec.Selector, root.Annotations)
	}
}

// The text of the specification, which leaves out the names of versions.
const abTest = `
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata:
  name: ab-test
spec:
  service: website
  matches:
  - kind: HTTPRouteGroup
    name: ab-test
  backends:
  - service: website-v1
    weight: 0
  - service: website-v2
    weight: 100
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata:
  name: ab-test
spec:
  matches:
  - name: firefox-users
    headers:
      user-agent: ".*Firefox.*"
`

// "The above configuration will route the Firefox users to the website-v2 service while all the
// others will be routed to the root Kubernetes service".
func TestTheABTestOfTheSpecification(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d1, s1 := appVersion("website", "v1")
	d2, s2 := appVersion("website", "v2")
	s.create(d1, s1, d2, s2, service("website"))
	s.hasEndpoints("website", map[string]int{"website-v1": 2, "website-v2": 2})
	s.serveProxies()
	s.startOperator(newMeasurements())
	objects, err := decode([]byte(abTest))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		o.SetNamespace(s.namespace)
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.effective("ab-test", map[string]int32{"website-v1": 0, "website-v2": 100})
	s.says("ab-test", splitv1.ConditionResolvedRefs, metav1.ConditionTrue, splitv1.ReasonResolved)
	s.hasEndpoints("website", map[string]int{"serin-proxy-ab-test": 2})
	const others = "serin-unmatched-ab-test"
	s.hasEndpoints(others, map[string]int{"website-v1": 2, "website-v2": 2})
	ts := s.get(t.Context(), "ab-test", &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit)
	feed := s.proxyFeed(ts, "a-proxy")
	port := nextWant(t, feed).Split.Ports[0]
	address := s.get(t.Context(), others, &corev1.Service{}).(*corev1.Service).Spec.ClusterIP
	if share(port, "website-v2") != 1 || port.Default == nil || port.Default.Address != address {
		t.Errorf("those that match go to %+v, the others to %+v instead of %s", port.Destinations, port.Default, address)
	}

	// A default of the user's own makes the Service needless, and the end of matches too.
	change(s, "ab-test", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
		splitv1.SetRouting(ts, splitv1.Routing{DefaultBackend: "website-v1"})
	})
	if port := nextWant(t, feed).Split.Ports[0]; port.Default == nil || port.Default.Service != "website-v1" {
		t.Errorf("the others go to %+v", port.Default)
	}
	lacks := func() {
		t.Helper()
		s.eventually(others+" is gone", func(ctx context.Context) bool {
			return apierrors.IsNotFound(admin.Get(ctx, s.key(others), &corev1.Service{}))
		})
	}
	lacks()
	// Without it again, what was live stays so until the new Service is known everywhere.
	change(s, "ab-test", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { ts.Annotations = nil })
	if want := nextWant(t, feed); len(want.Split.Ports) > 0 {
		t.Errorf("the proxies are to serve %+v at once", want.Split.Ports)
	}
	s.effective("ab-test", map[string]int32{"website-v1": 0, "website-v2": 100})
	s.hasEndpoints(others, map[string]int{"website-v1": 2, "website-v2": 2})
	s.gone(ts)
	lacks()
	s.hasEndpoints("website", map[string]int{"website-v1": 2, "website-v2": 2})
}

// birdService is one of the example's.
func birdService(name, color string, port int32) *corev1.Service {
	s := service(name)
	s.Spec.Ports, s.Spec.Selector = grpcAt(port), map[string]string{"app": "birds"}
	if color != "" {
		s.Spec.Selector["color"] = color
	}
	return s
}

func grpcAt(port int32) []corev1.ServicePort {
	return []corev1.ServicePort{{Name: "grpc", Port: port, AppProtocol: new("http")}}
}

func TestPortsOfTheSpecificationsExampleThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(birdService("birds", "", 8080), birdService("blue-birds", "blue", 1024), birdService("green-birds", "green", 8080))
	s.startOperator(newMeasurements())
	ts := split("birds", "birds", splitv1.Backend{Service: "blue-birds", Weight: 1}, splitv1.Backend{Service: "green-birds", Weight: 1})
	s.create(ts)
	// "Implementations are recommended to issue an event that notifies users traffic
	// will not be split for blue-birds and visible with kubectl describe."
	s.says("birds", splitv1.ConditionResolvedRefs, metav1.ConditionFalse, splitv1.ReasonPortMismatch, `Service "blue-birds" has no port 8080 (grpc) of Service "birds"`)
	s.eventually("an event names blue-birds", func(ctx context.Context) bool {
		list := &eventsv1.EventList{}
		if err := admin.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "TrafficSplit" && e.Regarding.Name == "birds" && e.Reason == splitv1.ReasonPortMismatch &&
				e.Type == corev1.EventTypeWarning && strings.Contains(e.Note, `"blue-birds"`)
		})
	})
	// "Traffic destined for birds:8080 will only ever be forwarded to port 8080 on
	// green-birds."
	if port := nextWant(t, s.proxyFeed(ts, "a-proxy")).Split.Ports[0]; share(port, "green-birds") != 1 || len(port.Destinations) != 1 {
		t.Errorf("port 8080: %+v", port)
	}
	// The port is corrected while the split exists.
	change(s, "blue-birds", &corev1.Service{}, func(o *corev1.Service) { o.Spec.Ports = grpcAt(8080) })
	s.says("birds", splitv1.ConditionResolvedRefs, metav1.ConditionTrue, splitv1.ReasonResolved)
}

// apps are Services of single versions and their root Services, and an operator.
func apps(t *testing.T, names ...string) *scene {
	t.Helper()
	s := newScene(t)
	for _, name := range names {
		d, backend := appVersion(name, "v1")
		other := service(name + "-v2")
		other.Spec.Selector = map[string]string{"app": name, "version": "v2"}
		s.create(d, backend, other, service(name))
	}
	for _, name := range names {
		s.hasEndpoints(name, map[string]int{name + "-v1": 2})
	}
	s.serveProxies()
	s.startOperator(newMeasurements())
	return s
}

func TestSeveralSplitsInANamespaceAreInEffectAtOnce(t *testing.T) {
	t.Parallel()
	names := []string{"shop", "cart", "pay"}
	s := apps(t, names...)
	for i, name := range names {
		s.create(split(name, name, splitv1.Backend{Service: name + "-v1", Weight: int32(i + 1)}, splitv1.Backend{Service: name + "-v2", Weight: 1}))
	}
	for i, name := range names {
		s.effective(name, map[string]int32{name + "-v1": int32(i + 1), name + "-v2": 1})
		s.hasEndpoints(name, map[string]int{"serin-proxy-" + name: 2})
	}
	s.gone(split("cart", "cart"))
	s.hasEndpoints("cart", map[string]int{"cart-v1": 2})
	for _, name := range []string{"shop", "pay"} {
		s.hasEndpoints(name, map[string]int{"serin-proxy-" + name: 2})
	}
}

func TestOfTwoSplitsForOneServiceTheOlderStaysAndTheOtherComesAfterIt(t *testing.T) {
	t.Parallel()
	s := apps(t, "shop")
	s.create(split("z-first", "shop", splitv1.Backend{Service: "shop-v1", Weight: 3}))
	s.effective("z-first", map[string]int32{"shop-v1": 3})
	s.create(split("a-second", "shop", splitv1.Backend{Service: "shop-v1", Weight: 5}))
	s.says("a-second", splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonConflict, `TrafficSplit "z-first" already has this root Service`)
	s.effective("z-first", map[string]int32{"shop-v1": 3})
	s.hasEndpoints("shop", map[string]int{"serin-proxy-z-first": 2})
	s.gone(split("z-first", "shop"))
	s.effective("a-second", map[string]int32{"shop-v1": 5})
	s.hasEndpoints("shop", map[string]int{"serin-proxy-a-second": 2})
}

// "TrafficSplits are not hierarchical": a split does not know of the next one. What
// each has is its own proxies.
func TestSplitsMayFollowEachOtherButNotInACircle(t *testing.T) {
	t.Parallel()
	s := apps(t, "shop", "cart", "pay")
	s.create(split("shop", "shop", splitv1.Backend{Service: "shop-v1", Weight: 1}, splitv1.Backend{Service: "cart", Weight: 1}))
	s.create(split("cart", "cart", splitv1.Backend{Service: "cart-v1", Weight: 1}, splitv1.Backend{Service: "pay", Weight: 1}))
	s.effective("shop", map[string]int32{"shop-v1": 1, "cart": 1})
	s.effective("cart", map[string]int32{"cart-v1": 1, "pay": 1})

	pay := split("pay", "pay", splitv1.Backend{Service: "pay-v1", Weight: 1}, splitv1.Backend{Service: "shop", Weight: 1})
	s.create(pay)
	s.says("pay", splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonCircular,
		`from Service "pay" to "shop" to "cart" (TrafficSplit "shop") to "pay" (TrafficSplit "cart")`)
	s.hasEndpoints("pay", map[string]int{"pay-v1": 2})
	s.effective("shop", map[string]int32{"shop-v1": 1, "cart": 1})

	// A split in the middle lets go, and the refused one comes into effect by itself.
	s.setBackends("cart", splitv1.Backend{Service: "cart-v1", Weight: 1})
	s.effective("pay", map[string]int32{"pay-v1": 1, "shop": 1})
	s.effective("cart", map[string]int32{"cart-v1": 1})

	// One that is in effect closes the circle again: it alone is withdrawn.
	s.setBackends("cart", splitv1.Backend{Service: "cart-v1", Weight: 1}, splitv1.Backend{Service: "pay", Weight: 1})
	s.says("cart", splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonCircular)
	s.hasEndpoints("cart", map[string]int{"cart-v1": 2})
	s.effective("pay", map[string]int32{"pay-v1": 1, "shop": 1})
	s.effective("shop", map[string]int32{"shop-v1": 1, "cart": 1})

	s.gone(pay)
	s.effective("cart", map[string]int32{"cart-v1": 1, "pay": 1})
}

// The text has the headers of a match as a map, the published schema as a list.
func TestHeadersComeAsAMapAndAsAList(t *testing.T) {
	t.Parallel()
	const group = `
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: ab-test}
spec:
  matches:
    - name: firefox-users
      headers: HEADERS
`
	for name, c := range map[string]struct {
		headers string
		want    []specsv1.Header
		refused bool
	}{
		"a map":                     {headers: `{user-agent: ".*Firefox.*", x-beta: "1"}`, want: []specsv1.Header{{Name: "user-agent", Regex: ".*Firefox.*"}, {Name: "x-beta", Regex: "1"}}},
		"a list of maps":            {headers: `[{user-agent: ".*Firefox.*"}, {x-beta: "1"}]`, want: []specsv1.Header{{Name: "user-agent", Regex: ".*Firefox.*"}, {Name: "x-beta", Regex: "1"}}},
		"the same header twice":     {headers: `[{x-beta: "1"}, {x-beta: "2"}]`, refused: true},
		"the same in another case":  {headers: `[{x-beta: "1"}, {X-Beta: "2"}]`, refused: true},
		"twice in a map's one case": {headers: `{x-beta: "1", X-Beta: "2"}`, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			objects, err := decode([]byte(strings.Replace(group, "HEADERS", c.headers, 1)))
			if err != nil {
				t.Fatal(err)
			}
			s.create(service("shop"), service("shop-v1"), service("shop-v2"))
			objects[0].SetNamespace(s.namespace)
			if err := admin.Create(t.Context(), objects[0]); err != nil {
				if !c.refused || !strings.Contains(err.Error(), "headers") {
					t.Error(err)
				}
				return
			}
			ts := limit(split("shop", "shop", splitv1.Backend{Service: "shop-v1"}, splitv1.Backend{Service: "shop-v2", Weight: 100}), "shop-v1")
			ts.Spec.Matches[0].Name = "ab-test"
			for _, name := range []string{"shop-v1", "shop-v2"} {
				change(s, name, &corev1.Service{}, func(o *corev1.Service) {
					o.Spec.Selector = map[string]string{"app": "shop", "version": name}
				})
			}
			s.startOperator(newMeasurements())
			s.create(ts)
			if c.refused {
				s.says("shop", splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonInvalid, "ab-test", "firefox-users")
				return
			}
			s.says("shop", splitv1.ConditionAccepted, metav1.ConditionTrue, splitv1.ReasonAccepted)
			stored := s.get(t.Context(), "ab-test", &specsv1.HTTPRouteGroup{}).(*specsv1.HTTPRouteGroup)
			got := slices.Clone(stored.Spec.Matches[0].Headers.Items)
			slices.SortFunc(got, func(a, b specsv1.Header) int { return strings.Compare(a.Name, b.Name) })
			if !slices.Equal(got, c.want) {
				t.Errorf("headers %v, want %v", got, c.want)
			}
		})
	}
}
