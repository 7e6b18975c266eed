// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/controllers/rollout"
	"github.com/serin-dev/serin/controllers/trafficsplit"
	splitserved "github.com/serin-dev/serin/controllers/trafficsplit/served"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
	"github.com/serin-dev/serin/traffic/selector"
	"github.com/serin-dev/serin/traffic/smi"
)

// sight is what an operator sees: the namespaces that are named, or all, and in these
// perhaps Secrets; and what it serves beyond splits and Rollouts.
type sight struct {
	namespaces []string
	secrets    []string
	canaries   bool
	// gateway is whether it asks the cluster for the Gateway API, and sessionless whether it then
	// takes the routes for those of the standard channel.
	gateway, sessionless bool
	// guarded is whether it knows the policy that holds Deployments; elsewhere than in
	// guarded namespaces that is not in force.
	guarded bool
	// admission is what it takes for what holds Deployments, when it is another thing.
	admission *rollout.Admission
	// proxies, when set, changes what its proxies are made from. By itself it knows of no nodes: those
	// of other tests come and go.
	proxies func(*nginx.Options)
	// passes, when set, counts those of its controller of TrafficSplits.
	passes *passes
	// noTrafficMetrics is whether it finds that the cluster serves none.
	noTrafficMetrics bool
}

func withGateway(see *sight)  { see.gateway = true }
func sessionless(see *sight)  { see.sessionless = true }
func withCanaries(see *sight) { see.canaries = true }

// counted has the operator count its passes over splits.
func counted(see *sight) { see.passes = &passes{of: map[string]int{}} }

// everywhere is for what must not run in parallel: it sees the objects of all tests.
func everywhere(see *sight) { see.namespaces = nil }

// startOperator runs the controllers for the namespace of the scene until the test ends
// or stop is called.
func (s *scene) startOperator(m *measurements, change ...func(*sight)) *operator {
	s.Helper()
	see := sight{namespaces: []string{s.namespace}, guarded: s.guarded}
	for _, f := range change {
		f(&see)
	}
	byObject := trafficsplit.CacheOptions()
	maps.Copy(byObject, splitserved.CacheOptions(served))
	maps.Copy(byObject, rollout.CacheOptions())
	if see.admission != nil {
		maps.Copy(byObject, admission.CacheOptions(see.admission.Webhooks))
	}
	log := logOf(s.T)
	if see.passes != nil {
		log = logr.New(counting{LogSink: log.GetSink(), passes: see.passes})
	}
	mgr := s.newManager(log, byObject, see.namespaces...)
	addControllers(s.T, mgr, m, see)
	o := run(s.T, mgr)
	o.passes = see.passes
	s.operators = append(s.operators, o)
	return o
}

// mutations are what the operator takes for what changes writes of other actors.
func (see *sight) mutations() rollout.Admission {
	switch {
	case see.admission != nil:
		return *see.admission
	case !servesPolicies:
		return rollout.Admission{}
	case see.guarded:
		return rollout.Admission{Mode: rollout.AdmissionPolicies, Hold: guardName, Configure: configurationPolicy}
	}
	return rollout.Admission{Mode: rollout.AdmissionPolicies, Hold: guardName + "-which-is-not-there", Configure: configurationPolicy}
}

func addControllers(t *testing.T, mgr ctrl.Manager, m *measurements, see sight) {
	t.Helper()
	ctx := t.Context()
	pods := nginx.Options{
		Image: "example.invalid/serin:test", Reports: proxies, AppPods: mgr.GetAPIReader(), WithoutNodes: true,
		Access: nginx.Access{Restricted: []string{"*"}}, // as the chart does
	}
	if see.proxies != nil {
		see.proxies(&pods)
	}
	router, err := nginx.New(mgr.GetClient(), pods)
	if err != nil {
		t.Fatal(err)
	}
	err = trafficsplit.SetupWithManager(ctx, mgr, trafficsplit.Options{
		Routers: []traffic.Router{router, addGateway(ctx, t, mgr, see), smi.New(meshSettle), selector.New(meshSettle)}, DefaultRouter: nginx.Name, Clock: clock.RealClock{}, Served: served,
		Recorder: mgr.GetEventRecorder("serin-trafficsplit"), Changed: proxies.changed(t, see.namespaces),
	})
	if err != nil {
		t.Fatal(err)
	}
	outbox := notify.New(mgr.GetAPIReader(), egress.Policy{}, clock.RealClock{}, notify.Options{UserAgent: "serin/test"})
	if err := mgr.Add(outbox); err != nil {
		t.Fatal(err)
	}
	named := metricsOf(t, mgr, m)
	if err := mgr.Add(named); err != nil {
		t.Fatal(err)
	}
	r := rollout.New(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.FieldManager), rollout.Options{
		DefaultRouter: v1alpha1.RouterNginx, Routers: []v1alpha1.RouterName{v1alpha1.RouterNginx, v1alpha1.RouterSMI, v1alpha1.RouterGatewayAPI, v1alpha1.RouterNone},
		Drain: map[v1alpha1.RouterName]time.Duration{smi.Name: meshSettle}, Served: served, Measurements: m, Metrics: named, Outbox: outbox, Live: mgr.GetAPIReader(), Recordings: uncached(t, mgr), TrafficMetrics: func() bool { return !see.noTrafficMetrics }, Clock: m, Admission: see.mutations(), Concurrency: 4, CanaryReleases: true,
		Configuration: rollout.ConfigurationOptions{SecretNamespaces: see.secrets, Reader: mgr.GetAPIReader()},
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
	looks   int
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
	m.looks++
	return time.Now().Add(m.skipped)
}

// looked is how often the operator has looked at the clock.
func (m *measurements) looked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looks
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
			Proxies: analysis.Variant{Requests: 1000},
		})
	}
	return out, analysis.Health{}
}

// answered are requests that took at most 100 milliseconds.
func answered(n int64) analysis.Variant {
	return analysis.Variant{Requests: n, Latency: &analysis.Histogram{LE: []float64{0.1, 0.5}, Counts: []int64{n, n}}}
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
