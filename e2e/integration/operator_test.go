// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/egress"
	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/outbound"
	"github.com/serin-dev/serin/controllers/rollout"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/controllers/traffic/nginx"
	"github.com/serin-dev/serin/controllers/traffic/smi"
	"github.com/serin-dev/serin/controllers/trafficsplit"
)

// sight is what an operator sees: all namespaces, or those that are named, and in
// these perhaps Secrets, and CanaryReleases.
type sight struct {
	namespaces []string
	secrets    []string
	canaries   bool
}

// startOperator runs the controllers for all namespaces until the test ends or stop
// is called.
func startOperator(t *testing.T, m *measurements) *operator {
	t.Helper()
	return startOperatorSeeing(t, m, sight{})
}

func startOperatorSeeing(t *testing.T, m *measurements, see sight) *operator {
	t.Helper()
	byObject := trafficsplit.CacheOptions()
	maps.Copy(byObject, trafficsplit.ServedCacheOptions(served))
	maps.Copy(byObject, rollout.CacheOptions(see.secrets...))
	only := map[string]cache.Config{}
	for _, namespace := range see.namespaces {
		only[namespace] = cache.Config{}
	}
	mgr := newManager(t, cache.Options{ByObject: byObject, DefaultNamespaces: only})
	addControllers(t, mgr, m, see)
	return run(t, mgr)
}

func addControllers(t *testing.T, mgr ctrl.Manager, m *measurements, see sight) {
	t.Helper()
	ctx := t.Context()
	router, err := nginx.New(mgr.GetClient(), nginx.Options{Image: "example.invalid/serin:test"})
	if err != nil {
		t.Fatal(err)
	}
	err = trafficsplit.SetupWithManager(ctx, mgr, trafficsplit.Options{
		Routers: []traffic.Router{router, addGateway(ctx, t, mgr), smi.New(meshSettle)}, DefaultRouter: nginx.Name, Clock: clock.RealClock{}, Served: served,
		Recorder: mgr.GetEventRecorder("serin-trafficsplit"),
	})
	if err != nil {
		t.Fatal(err)
	}
	outbox := outbound.New(mgr.GetAPIReader(), egress.Policy{}, clock.RealClock{}, outbound.Options{UserAgent: "serin/test"})
	if err := mgr.Add(outbox); err != nil {
		t.Fatal(err)
	}
	named := metricsOf(t, mgr, m)
	if err := mgr.Add(named); err != nil {
		t.Fatal(err)
	}
	r := rollout.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManager), rollout.Options{
		DefaultRouter: v1alpha1.RouterNginx, Routers: []v1alpha1.RouterName{v1alpha1.RouterNginx, v1alpha1.RouterSMI, v1alpha1.RouterGatewayAPI, v1alpha1.RouterNone},
		Linger: map[v1alpha1.RouterName]time.Duration{smi.Name: meshSettle}, Served: served, Measurements: m, Metrics: named, Outbox: outbox, Clock: m, GuardPolicy: guardName, GuardServed: true, Concurrency: 4, CanaryReleases: true,
		Configuration: rollout.ConfigurationOptions{Policy: configurationPolicy, SecretNamespaces: see.secrets, Reader: mgr.GetAPIReader()},
	})
	if err := r.SetupWithManager(ctx, mgr, m.changed); err != nil {
		t.Fatal(err)
	}
	if see.canaries {
		addCanaryReleases(t, mgr)
	}
}

// measurements makes up traffic, and the time in which it flows: whenever the
// planner looks at a weight that is in effect, half a minute of it has passed.
// badCanary makes the canary fail one request in ten.
type measurements struct {
	changed   chan event.TypedGenericEvent[types.NamespacedName]
	badCanary bool

	mu      sync.Mutex
	skipped time.Duration
	weights map[types.NamespacedName]analysis.Weight
}

func newMeasurements() *measurements {
	return &measurements{
		changed: make(chan event.TypedGenericEvent[types.NamespacedName], 100),
		weights: map[types.NamespacedName]analysis.Weight{},
	}
}

// Now implements clock.PassiveClock.
func (m *measurements) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.skipped)
}

// Since implements clock.PassiveClock.
func (m *measurements) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

func (m *measurements) Measure(_ context.Context, split types.NamespacedName, _ analysis.Subject, w analysis.Weight) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.weights[split]; w.Percent > 0 && !w.Since.IsZero() && !known.Since.Equal(w.Since) {
		m.skipped += 30 * time.Second
		m.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: split}
	}
	m.weights[split] = w
	return nil
}

func (m *measurements) Forget(split types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.weights, split)
}

func (m *measurements) Windows(split types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, now := m.weights[split], time.Now().Add(m.skipped)
	if w.Since.IsZero() {
		return nil, analysis.Health{}
	}
	var out []analysis.Window
	for end := w.Since.Add(5 * time.Second); end.Before(now); end = end.Add(5 * time.Second) {
		if !end.After(after) {
			continue
		}
		canary := answered(10 * int64(w.Percent))
		if m.badCanary {
			canary.Failures = int64(w.Percent)
		}
		out = append(out, analysis.Window{
			Start: end.Add(-5 * time.Second), End: end, Weight: w.Percent,
			Canary: canary, Stable: answered(10 * int64(100-w.Percent)),
		})
	}
	return out, analysis.Health{}
}

// answered are requests that took at most 100 milliseconds.
func answered(n int64) analysis.Arm {
	return analysis.Arm{Requests: n, Latency: &analysis.Histogram{LE: []float64{0.1, 0.5}, Counts: []int64{n, n}}}
}

// serveProxies stands in for the agents: each ready proxy reports the newest
// generation of its split, as the real agent does after it has reloaded nginx.
func serveProxies(t *testing.T, which ...client.ListOption) {
	t.Helper()
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			if err := reportOnce(ctx, which...); err != nil && ctx.Err() == nil {
				t.Logf("proxies: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

func reportOnce(ctx context.Context, which ...client.ListOption) error {
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, append(which, client.HasLabels{traffic.LabelProxy})...); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		ts := &splitv1.TrafficSplit{}
		err := admin.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[traffic.LabelProxy]}, ts)
		if err != nil {
			continue
		}
		digest, err := servedBy(ctx, ts)
		if err != nil {
			return err
		}
		if digest == "" || reported(ts, pod.Name, digest) {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": ts.Name, "namespace": ts.Namespace},
			"status": map[string]any{"proxies": []any{map[string]any{
				"name": pod.Name, "observedGeneration": ts.Generation, "configuration": digest,
			}}},
		}}
		u.SetGroupVersionKind(splitv1.GroupVersion.WithKind("TrafficSplit"))
		err = admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(pod.Name), client.ForceOwnership)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// servedBy is the digest of what proxies serve of a split: "" when it is refused,
// and they serve on what they did.
func servedBy(ctx context.Context, ts *splitv1.TrafficSplit) (string, error) {
	services, groups := &corev1.ServiceList{}, &specsv1.HTTPRouteGroupList{}
	for _, list := range []client.ObjectList{services, groups} {
		if err := admin.List(ctx, list, client.InNamespace(ts.Namespace)); err != nil {
			return "", err
		}
	}
	known := traffic.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}}
	for i := range services.Items {
		known.Services[services.Items[i].Name] = &services.Items[i]
	}
	for i := range groups.Items {
		known.Groups[groups.Items[i].Name] = &groups.Items[i]
	}
	resolved, problems := traffic.Resolve(ts, known)
	if traffic.Refused(problems) {
		return "", nil
	}
	return resolved.Digest(), nil
}

func reported(ts *splitv1.TrafficSplit, pod, digest string) bool {
	for _, p := range ts.Status.Proxies {
		if p.Name == pod {
			return p.ObservedGeneration == ts.Generation && p.Configuration == digest
		}
	}
	return false
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ready(ro *v1alpha1.Rollout) (bool, string, string) {
	c := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.ObservedGeneration != ro.Generation {
		return false, "", ""
	}
	return c.Status == "True", c.Reason, c.Message
}

// fail has the canary fail requests, or not any more.
func (m *measurements) fail(canary bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.badCanary = canary
}
