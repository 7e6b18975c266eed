// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// surrounded is a router whose splits depend on more than their own objects.
type surrounded struct{ *gateway }

func (s surrounded) NamespaceKinds() []schema.GroupVersionKind { return s.Kinds() }
func (surrounded) Hosts() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Node")}
}

func (surrounded) DependsOnHosts(split *splitv1.TrafficSplit) bool {
	routing, _ := splitv1.RoutingOf(split)
	return routing.Mirror != nil
}

// neighbourhood is splits of several routers in two namespaces.
func neighbourhood(t *testing.T) (*Reconciler, surrounded) {
	t.Helper()
	w := newWorld(t)
	for _, split := range []struct {
		namespace, name, router string
		mirrors                 bool
	}{
		{namespace, "nginx", "nginx", false},
		{namespace, "nginx-too", "", false},
		{namespace, "mirrored-by-nginx", "", true},
		{namespace, "routed", gatewayName, false},
		{namespace, "mirrored", gatewayName, true},
		{"other", "routed", gatewayName, false},
		{"other", "mirrored", gatewayName, true},
	} {
		s := makeSplit(1, 1)
		s.Namespace, s.Name = split.namespace, split.name
		routing := splitv1.Routing{Router: split.router}
		if split.mirrors {
			routing.Mirror = &splitv1.Mirror{Service: "copies", Percent: 5}
		}
		splitv1.SetRouting(s, routing)
		if split.name == "routed" {
			splitv1.EditRouting(s, func(r *splitv1.Routing) { r.Routes = []splitv1.RouteReference{{Kind: "HTTPRoute", Name: "named"}} })
		}
		w.create(s)
	}
	return w.controller(), surrounded{&gateway{w.api}}
}

func keys(requests []reconcile.Request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return all
}

func TestWhatNoSplitNamesMeansTheSplitsOfItsRouter(t *testing.T) {
	r, router := neighbourhood(t)
	follow := r.splitsNear(router, "HTTPRoute")
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   []string
	}{
		"one that nothing is known of": {metav1.ObjectMeta{Name: "new"}, []string{"shop/mirrored", "shop/routed"}},
		"one that a split names":       {metav1.ObjectMeta{Name: "named"}, nil},
		"one that a split changed":     {metav1.ObjectMeta{Name: "changed", Annotations: map[string]string{traffic.AnnotationSplit: "mirrored"}}, nil},
		"one that the router made":     {metav1.ObjectMeta{Name: "made", Labels: map[string]string{traffic.LabelProxy: "mirrored"}}, nil},
	} {
		test.object.Namespace = namespace
		if got := keys(follow(t.Context(), &corev1.ConfigMap{ObjectMeta: test.object})); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if got := keys(r.splitsOfRoute("HTTPRoute")(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "named"}})); !slices.Equal(got, []string{"shop/routed"}) {
		t.Errorf("the route of a split means %v", got)
	}
}

// Each split may have a policy of its proxies, so that they are as many as the splits of the namespace.
func TestAPolicyOfProxiesMeansTheirSplitAlone(t *testing.T) {
	r, _ := neighbourhood(t)
	follow := r.splitsOfPolicy(r.Options.Routers[0])
	made := map[string]string{traffic.LabelProxy: "nginx", traffic.LabelProxyNamespace: namespace}
	all := []string{"shop/mirrored-by-nginx", "shop/nginx", "shop/nginx-too"}
	for name, test := range map[string]struct {
		labels map[string]string
		spec   string
		want   []string
	}{
		"of a user":                              {nil, "{podSelector: {}}", all},
		"of who reaches the proxies":             {made, "{podSelector: {matchLabels: {serin.dev/proxy: nginx}}, policyTypes: [Ingress]}", []string{"shop/nginx"}},
		"of what they send, too":                 {made, "{podSelector: {matchLabels: {serin.dev/proxy: nginx}}, policyTypes: [Ingress, Egress], egress: [{}]}", all},
		"of the app, which proxies are to reach": {made, "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}", all},
	} {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy", Labels: test.labels}}
		if err := yaml.UnmarshalStrict([]byte(test.spec), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		if got := slices.Compact(keys(follow(t.Context(), policy))); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestAGatewayMeansTheSplitsOfAllNamespacesThatDependOnIt(t *testing.T) {
	r, router := neighbourhood(t)
	follow := r.splitsThrough(router, router)
	for name, o := range map[string]client.Object{
		"a gateway": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "public"}},
		"its class": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "public"}},
	} {
		if got, want := keys(follow(t.Context(), o)), []string{"other/mirrored", "shop/mirrored"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// A gateway reports in the status of each route that it serves.
func TestOnlyWhatTheOwnerOfANeighbourChangesMatters(t *testing.T) {
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 1, ResourceVersion: "1", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}}}
	for name, test := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   bool
	}{
		"its status":      {func(c *corev1.ConfigMap) { c.Data = map[string]string{"status": "taken"} }, false},
		"nothing":         {func(*corev1.ConfigMap) {}, false},
		"its spec":        {func(c *corev1.ConfigMap) { c.Generation++ }, true},
		"a label":         {func(c *corev1.ConfigMap) { c.Labels["a"] = "c" }, true},
		"an annotation":   {func(c *corev1.ConfigMap) { c.Annotations["a"] = "c" }, true},
		"no label at all": {func(c *corev1.ConfigMap) { c.Labels = nil }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		test.change(after)
		if got := meant.Update(ctrlevent.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if !meant.Create(ctrlevent.CreateEvent{Object: before}) || !meant.Delete(ctrlevent.DeleteEvent{Object: before}) {
		t.Error("a watched object that comes or goes does not matter")
	}
}
