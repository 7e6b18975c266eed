// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "istio.io/api/networking/v1" // its module brings the schemas
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/istio"
)

// istioKinds are the definitions that Istio publishes of what the router writes.
func istioKinds(ctx context.Context) (definitions []*unstructured.Unstructured, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		return nil, fmt.Errorf("find the API of Istio: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "kubernetes", "customresourcedefinitions.gen.yaml"))
	if err != nil {
		return nil, err
	}
	all, err := decode(content)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool {
		return u.GetName() != "virtualservices.networking.istio.io" && u.GetName() != "destinationrules.networking.istio.io"
	}), nil
}

func istioList(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("networking.istio.io/v1")
	list.SetKind(kind)
	return list
}

func istioObject(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetAPIVersion("networking.istio.io/v1")
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// istioSettle is short: nobody follows the routes here.
const istioSettle = 2 * time.Second

// startMeshOperator runs the TrafficSplit controller with the router of Istio, under
// the rights of the chart's service account.
func (s *scene) startMeshOperator() {
	s.Helper()
	t := s.T
	mgr := s.newManager(logOf(t), trafficsplit.CacheOptions(), s.namespace)
	router, err := istio.New(t.Context(), istio.Options{Cache: mgr.GetCache(), Client: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), Default: true, Settle: istioSettle})
	if err != nil {
		t.Fatal(err)
	}
	err = trafficsplit.SetupWithManager(t.Context(), mgr, trafficsplit.Options{
		Routers: []traffic.Router{router}, DefaultRouter: istio.Name, Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("serin-trafficsplit"),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
}

const websiteRoutes = `
hosts: [shop.example.com]
gateways: [istio-system/public]
http:
  - name: blog
    match: [{uri: {prefix: /blog}}]
    route: [{destination: {host: blog}}]
  - name: birds
    match: [{uri: {prefix: /}, sourceLabels: {app: ingress}}]
    retries: {attempts: 3, perTryTimeout: 2s}
    route:
      - destination: {host: birds, subset: eu, port: {number: 80}}
        weight: 75
      - {destination: {host: archive}, weight: 25}
`

// meshBirds is a namespace with an app in two versions, Istio's objects of its owner, and
// a split that the operator serves by them.
func meshBirds(t *testing.T, routes ...splitv1.RouteReference) *scene {
	t.Helper()
	s := newScene(t)
	for _, version := range []string{"blue", "green"} {
		backend := service("birds-" + version)
		backend.Spec.Selector = map[string]string{"app": "birds", "version": version}
		s.create(backend)
	}
	s.create(service("birds"))
	s.create(
		istioObject(t, "VirtualService", "website", websiteRoutes),
		istioObject(t, "DestinationRule", "birds", "host: birds\ntrafficPolicy: {tls: {mode: ISTIO_MUTUAL}}\nsubsets: [{name: eu, labels: {region: eu}}]"),
	)
	s.startMeshOperator()
	split := &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "birds"},
		Spec: splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{
			{Service: "birds-blue", Weight: 9}, {Service: "birds-green", Weight: 1},
		}},
	}
	splitv1.SetRouting(split, splitv1.Routing{Routes: routes})
	s.create(split)
	s.programmed(9, 1)
	return s
}

// programmed waits until the weights are in effect, by what the split says.
func (s *scene) programmed(blue, green int32) {
	s.Helper()
	s.eventually("in effect", func(context.Context) bool {
		ts := s.birdSplit()
		c := meta.FindStatusCondition(ts.Status.Conditions, splitv1.ConditionProgrammed)
		b := ts.Status.Backends
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == ts.Generation &&
			len(b) == 2 && b[0].Weight == blue && b[1].Weight == green
	})
}

func (s *scene) virtualService(name string) *unstructured.Unstructured {
	s.Helper()
	u := istioObject(s.T, "VirtualService", name, "{}")
	if err := admin.Get(s.Context(), s.key(name), u); err != nil {
		s.Fatal(err)
	}
	return u
}

// weights are the destinations of the route for the birds, as host=weight.
func (s *scene) routeWeights(name string, index int) map[string]int64 {
	s.Helper()
	routes, _, err := unstructured.NestedSlice(s.virtualService(name).Object, "spec", "http")
	if err != nil || len(routes) <= index {
		return nil
	}
	route, _ := routes[index].(map[string]any)
	list, _ := route["route"].([]any)
	out := map[string]int64{}
	for _, item := range list {
		d, _ := item.(map[string]any)
		host, _, _ := unstructured.NestedString(d, "destination", "host")
		out[host], _ = d["weight"].(int64)
	}
	return out
}

func (s *scene) removeBirdSplit() {
	s.Helper()
	if err := admin.Delete(s.Context(), s.birdSplit()); err != nil {
		s.Fatal(err)
	}
	s.eventually("the split is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, s.key("birds"), &splitv1.TrafficSplit{}))
	})
}

func (s *scene) rules() (names []string) {
	s.Helper()
	list := istioList("DestinationRuleList")
	if err := admin.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		host, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "host")
		names = append(names, host)
	}
	return names
}

func TestAVirtualServiceOfSomebodyLeadsToTheBackendsAndIsRestored(t *testing.T) {
	t.Parallel()
	s := meshBirds(t, splitv1.RouteReference{Kind: "VirtualService", Name: "website"})
	want := map[string]int64{"birds-blue": 27, "birds-green": 3, "archive": 10}
	if diff := cmp.Diff(want, s.routeWeights("website", 1)); diff != "" {
		t.Errorf("weights (-want +got)\n%s", diff)
	}
	if rules := s.rules(); len(rules) != 3 {
		t.Errorf("DestinationRules for %v", rules)
	}

	// The owner changes what callers of the root Service do, and so of its backends.
	edit(s, "birds", istioObject(t, "DestinationRule", "birds", "{}"), func(rule *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(rule.Object, "SIMPLE", "spec", "trafficPolicy", "tls", "mode"); err != nil {
			t.Fatal(err)
		}
	})
	s.quick("the rules of the backends say so too", func() bool {
		list := istioList("DestinationRuleList")
		if err := admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == 3 && !slices.ContainsFunc(list.Items, func(rule unstructured.Unstructured) bool {
			mode, _, _ := unstructured.NestedString(rule.Object, "spec", "trafficPolicy", "tls", "mode")
			return mode != "SIMPLE"
		})
	})

	// Git applies its routes by force, as its tools do.
	git := istioObject(t, "VirtualService", "website", websiteRoutes)
	git.SetNamespace(s.namespace)
	if err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(git), client.FieldOwner("git"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	s.quick("the backends are in the routes again", func() bool { return cmp.Equal(want, s.routeWeights("website", 1)) })

	// Somebody edits the route that the split changed.
	edit(s, "website", s.virtualService("website"), func(edited *unstructured.Unstructured) {
		routes, _, _ := unstructured.NestedSlice(edited.Object, "spec", "http")
		routes[1].(map[string]any)["timeout"] = "7s"
		if err := unstructured.SetNestedSlice(edited.Object, routes, "spec", "http"); err != nil {
			t.Fatal(err)
		}
	})
	ts := s.birdSplit()
	base := ts.DeepCopy()
	ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 1, 1
	if err := admin.Patch(t.Context(), ts, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	s.programmed(1, 1)
	if diff := cmp.Diff(map[string]int64{"birds-blue": 3, "birds-green": 3, "archive": 2}, s.routeWeights("website", 1)); diff != "" {
		t.Errorf("weights (-want +got)\n%s", diff)
	}

	s.removeBirdSplit()
	left := s.virtualService("website")
	// What the edit was made of had the weights 30 and 10, which is the same share.
	meant := istioObject(t, "VirtualService", "website", strings.NewReplacer(
		"    retries:", "    timeout: 7s\n    retries:", "weight: 75", "weight: 30", "weight: 25", "weight: 10").Replace(websiteRoutes))
	if diff := cmp.Diff(meant.Object["spec"], left.Object["spec"]); diff != "" {
		t.Errorf("restored (-want +got)\n%s", diff)
	}
	if len(left.GetAnnotations()) != 0 {
		t.Errorf("annotations are left: %v", left.GetAnnotations())
	}
	if rules := s.rules(); len(rules) != 1 {
		t.Errorf("DestinationRules for %v are left", rules)
	}
}

func TestASplitThatNamesNoRouteHasOneOfItsOwnWithinTheMesh(t *testing.T) {
	t.Parallel()
	s := meshBirds(t)
	want := map[string]int64{"birds-blue": 9, "birds-green": 1}
	if diff := cmp.Diff(want, s.routeWeights("serin-route-birds", 0)); diff != "" {
		t.Errorf("weights (-want +got)\n%s", diff)
	}
	edit(s, "serin-route-birds", s.virtualService("serin-route-birds"), func(drifted *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(drifted.Object, []any{"elsewhere"}, "spec", "gateways"); err != nil {
			t.Fatal(err)
		}
	})
	s.quick("it is put right", func() bool {
		gateways, _, _ := unstructured.NestedStringSlice(s.virtualService("serin-route-birds").Object, "spec", "gateways")
		return len(gateways) == 1 && gateways[0] == "mesh"
	})
	s.removeBirdSplit()
	list := istioList("VirtualServiceList")
	if err := admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || !cmp.Equal(list.Items[0].Object["spec"], istioObject(t, "VirtualService", "website", websiteRoutes).Object["spec"]) {
		t.Errorf("left: %v", list.Items)
	}
}

// What the router writes is what Istio's published schemas take, with nothing dropped.
func TestWhatIsRenderedForIstioFitsItsSchemas(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	files, err := filepath.Glob("../../traffic/istio/testdata/*/out.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	tried := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rendered struct {
			Routes, Rules []struct{ Spec map[string]any }
		}
		if err := yaml.Unmarshal(content, &rendered); err != nil {
			t.Fatal(err)
		}
		check := func(kind string, spec map[string]any) {
			if spec == nil {
				return // refused
			}
			u := istioObject(t, kind, "rendered", "{}")
			u.Object["spec"] = spec
			u.SetNamespace(s.namespace)
			err := admin.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict"))
			if newer := strings.Contains(string(mustYAML(t, spec)), "aFieldOfANewerVersion"); (err != nil) != newer {
				t.Errorf("%s: %v", file, err)
			}
			tried++
		}
		for _, r := range rendered.Routes {
			check("VirtualService", r.Spec)
		}
		for _, r := range rendered.Rules {
			check("DestinationRule", r.Spec)
		}
	}
	if tried < 10 {
		t.Errorf("only %d objects were tried", tried)
	}
}

func mustYAML(t *testing.T, value any) []byte {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
