// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/metricsapi/server"
)

// object is one object of a cluster.
type object struct {
	kind   observe.Kind
	name   types.NamespacedName
	labels labels.Set
}

// world is a cluster with traffic: it is the Provider and the Objects of a server.
type world struct {
	objects []object
	items   []metricsv1.TrafficMetrics
	edges   []metricsv1.TrafficMetrics
	err     error
	warning string
	asked   observe.Request
}

func (w *world) Names(kind observe.Kind, namespace string, selector labels.Selector) (names []types.NamespacedName) {
	for _, o := range w.objects {
		if o.kind == kind && (namespace == "" || o.name.Namespace == namespace) && selector.Matches(o.labels) {
			names = append(names, o.name)
		}
	}
	return names
}

func (w *world) Exists(kind observe.Kind, name types.NamespacedName) bool {
	return slices.Contains(w.Names(kind, "", labels.Everything()), name)
}

func (w *world) Metrics(_ context.Context, r observe.Request) (observe.Answer, error) {
	w.asked = r
	names := w.Names(r.Kind, r.Namespace, r.Selector)
	return w.answer(w.items, func(m metricsv1.TrafficMetrics) bool {
		name := types.NamespacedName{Namespace: m.Resource.Namespace, Name: m.Resource.Name}
		return m.Resource.Kind == r.Kind.Kind && slices.Contains(names, name) && (r.Name == "" || r.Name == name.Name)
	})
}

func (w *world) Edges(_ context.Context, r observe.Request) (observe.Answer, error) {
	w.asked = r
	return w.answer(w.edges, func(m metricsv1.TrafficMetrics) bool {
		return m.Resource.Kind == r.Kind.Kind && m.Resource.Name == r.Name && m.Resource.Namespace == r.Namespace
	})
}

func (w *world) answer(items []metricsv1.TrafficMetrics, keep func(metricsv1.TrafficMetrics) bool) (observe.Answer, error) {
	var a observe.Answer
	for _, m := range items {
		if keep(m) {
			a.Items = append(a.Items, *m.DeepCopy())
		}
	}
	if w.warning != "" {
		a.Warnings = []string{w.warning}
	}
	return a, w.err
}

// item is the traffic that a resource receives.
func item(kind observe.Kind, namespace, name string) metricsv1.TrafficMetrics {
	q := quantity.MustParse
	return metricsv1.TrafficMetrics{
		Resource:  corev1.ObjectReference{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: namespace, Name: name},
		Edge:      metricsv1.Edge{Direction: metricsv1.DirectionFrom, Side: metricsv1.SideServer},
		Timestamp: metav1.Date(2019, 4, 8, 22, 25, 55, 0, time.UTC),
		Window:    metav1.Duration{Duration: 30 * time.Second},
		Metrics: []metricsv1.Metric{
			{Name: metricsv1.MetricP99Latency, Unit: metricsv1.UnitSeconds, Value: q("10m")},
			{Name: metricsv1.MetricP90Latency, Unit: metricsv1.UnitSeconds, Value: q("2m")},
			{Name: metricsv1.MetricP50Latency, Unit: metricsv1.UnitSeconds, Value: q("500u")},
			{Name: metricsv1.MetricSuccessCount, Value: q("99")},
			{Name: metricsv1.MetricFailureCount, Value: q("1")},
		},
	}
}

// edge is the traffic of a resource with another.
func edge(m metricsv1.TrafficMetrics, direction metricsv1.Direction, side metricsv1.Side, other corev1.ObjectReference) metricsv1.TrafficMetrics {
	m.Edge = metricsv1.Edge{Direction: direction, Side: side, Resource: &other}
	return m
}

func namespaced(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// shop is a small cluster.
func shop() *world {
	split := item(observe.TrafficSplits, "shop", "web")
	stable, canary := *split.DeepCopy(), *split.DeepCopy()
	stable.Backend = &metricsv1.Backend{Apex: "web", Name: "web-stable", Weight: 90}
	canary.Backend = &metricsv1.Backend{Apex: "web", Name: "web-canary", Weight: 10}
	quiet := item(observe.Deployments, "shop", "web")
	quiet.Metrics = nil
	return &world{
		objects: []object{
			{observe.Pods, namespaced("shop", "web-1"), labels.Set{"app": "web"}},
			{observe.Pods, namespaced("shop", "web-2"), labels.Set{"app": "web", "odd": "a.b"}},
			{observe.Pods, namespaced("shop", "idle"), nil},
			{observe.Pods, namespaced("bank", "till"), labels.Set{"app": "till"}},
			{observe.Deployments, namespaced("shop", "web"), nil},
			{observe.Namespaces, namespaced("", "shop"), labels.Set{"team": "a"}},
			{observe.TrafficSplits, namespaced("shop", "web"), nil},
		},
		items: []metricsv1.TrafficMetrics{
			item(observe.Pods, "shop", "web-2"), item(observe.Pods, "bank", "till"), item(observe.Pods, "shop", "web-1"),
			item(observe.Namespaces, "", "shop"), quiet, stable, canary,
		},
		edges: []metricsv1.TrafficMetrics{
			edge(item(observe.Pods, "shop", "web-1"), metricsv1.DirectionTo, metricsv1.SideClient, corev1.ObjectReference{Kind: "Pod", Namespace: "bank", Name: "till"}),
			edge(item(observe.Pods, "shop", "web-1"), metricsv1.DirectionFrom, metricsv1.SideServer, corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-2"}),
			edge(item(observe.Namespaces, "", "shop"), metricsv1.DirectionTo, metricsv1.SideClient, corev1.ObjectReference{Kind: "Namespace", Name: "bank"}),
		},
	}
}

// rights let the user of a request do what is listed, in the form "get pods/edges".
type rights map[string]bool

// handler serves a world. The header User names who asks; everything is allowed when no
// rights are given.
func handler(t *testing.T, w *world, allowed rights) http.Handler {
	t.Helper()
	return handlerOf(t, w, allowed)
}

// answers are a Provider and the Objects of a server.
type answers interface {
	observe.Provider
	server.Objects
}

func handlerOf(tb testing.TB, w answers, allowed rights) http.Handler {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	s, err := server.New(server.Options{
		Listener: listener, Certificate: noCertificate{}, Provider: w, Objects: w,
		Access: func(c *genericapiserver.Config) error {
			c.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				return &authenticator.Response{User: &user.DefaultInfo{Name: "jane"}}, true, nil
			})
			c.Authorization.Authorizer = authorizer.AuthorizerFunc(allowed.authorize)
			return nil
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Handler()
}

func (r rights) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := a.GetVerb() + " " + strings.TrimSuffix(a.GetResource()+"/"+a.GetSubresource(), "/") + " in " + a.GetNamespace()
	if r == nil || !a.IsResourceRequest() || r[asked] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, asked, nil
}

// noCertificate is for handlers that no connection reaches.
type noCertificate struct {
	dynamiccertificates.CertKeyContentProvider
}

// root is the path of the API.
const root = "/apis/metrics.smi-spec.io/v1alpha1"

// get asks for a path below root. The extras are headers, name and value in turns.
func get(tb testing.TB, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
