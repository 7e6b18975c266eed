// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/analysis"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/changes"
)

// api is an API server of a test: 30 seconds are a window, and each split has ten
// requests for the canary in it.
type api struct {
	mu     sync.Mutex
	asked  []string
	splits []types.NamespacedName
	sets   []string // ReplicaSets of each namespace
	err    func(namespace string) error
}

func (a *api) list(_ context.Context, resource, namespace, continued string) (*metricsv1.TrafficMetricsList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, strings.TrimPrefix(resource, trafficSplits)+namespace+continued)
	if a.err != nil {
		if err := a.err(namespace); err != nil {
			return nil, err
		}
	}
	list := &metricsv1.TrafficMetricsList{}
	end := time.Now().Truncate(30 * time.Second)
	for _, name := range a.sets {
		if resource == replicaSets {
			list.Items = append(list.Items, item(end, "", "9", "1", func(m *metricsv1.TrafficMetrics) {
				m.Resource.Namespace, m.Resource.Name, m.Backend = namespace, name, nil
			}))
		}
	}
	if resource == replicaSets {
		return list, nil
	}
	for _, split := range a.splits {
		if namespace != "" && namespace != split.Namespace {
			continue
		}
		for _, backend := range []string{"website-stable", "website-canary"} {
			list.Items = append(list.Items, item(end, backend, "9", "1", func(m *metricsv1.TrafficMetrics) { m.Resource.Namespace, m.Resource.Name = split.Namespace, split.Name }))
		}
	}
	return list, nil
}

func (a *api) took() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func (a *api) answer(err func(namespace string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// running starts a TrafficMetrics in a bubble.
func running(t *testing.T, a *api) *TrafficMetrics {
	t.Helper()
	m := NewTrafficMetrics(a.list, clock.RealClock{}, changes.New())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return m
}

// pass lets time pass, and everything that is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func measured(t *testing.T, m *TrafficMetrics, keys ...types.NamespacedName) {
	t.Helper()
	for _, key := range keys {
		if err := m.Measure(t.Context(), key, analysis.Subject{Split: key.Name, Stable: "website-stable", Canary: "website-canary"}, analysis.Weight{Percent: 10, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
}

func forbidden(namespace string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "metrics.smi-spec.io", Resource: "trafficsplits"}, "", fmt.Errorf("secret words about %s", namespace))
}

func TestARolloutIsMeasuredByASplitOfAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := running(t, &api{splits: []types.NamespacedName{website}})
		ro := types.NamespacedName{Namespace: website.Namespace, Name: "rollout"}
		of := analysis.Subject{Split: website.Name, Stable: "website-stable", Canary: "website-canary"}
		if err := m.Measure(t.Context(), ro, of, analysis.Weight{Percent: 10, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if windows, health := m.Windows(ro, time.Time{}); len(windows) == 0 || health.Message != "" {
			t.Errorf("%d windows, %+v", len(windows), health)
		}
		if windows, _ := m.Windows(website, time.Time{}); len(windows) > 0 {
			t.Error("what has the split's name is measured, and not the Rollout")
		}
		if e := <-m.changes; e.Object != ro {
			t.Errorf("notified of %v", e.Object)
		}
	})
}

func TestReplicaSetsAreMeasuredInTheirNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{sets: []string{"website-1", "website-2", "other-7"}}
		m := running(t, a)
		lacking := types.NamespacedName{Namespace: "shop", Name: "lacking"}
		for ro, canary := range map[types.NamespacedName]string{website: "website-2", lacking: "website-3"} {
			of := analysis.Subject{Stable: "website-1", Canary: canary}
			if err := m.Measure(t.Context(), ro, of, analysis.Weight{Percent: 20, Since: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		pass(3 * time.Minute)
		windows, health := m.Windows(website, time.Time{})
		if len(windows) == 0 || health.Message != "" || windows[0].Canary.Requests != 10 || windows[0].Stable.Failures != 1 {
			t.Errorf("%+v, %+v", windows, health)
		}
		if windows, health := m.Windows(lacking, time.Time{}); len(windows) > 0 || !strings.Contains(health.Message, `no metrics of the ReplicaSet "website-3"`) {
			t.Errorf("a version without metrics has %d windows, %+v", len(windows), health)
		}
		for _, asked := range a.took() {
			if asked != replicaSets+website.Namespace {
				t.Errorf("asked for %q", asked)
			}
		}
	})
}

func TestAllReleasesAreMeasuredByOneListInEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		for i := range 50 {
			a.splits = append(a.splits, types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", i%7), Name: fmt.Sprintf("website-%d", i)})
		}
		m := running(t, a)
		pass(time.Minute)
		if asked := a.took(); asked != nil {
			t.Errorf("asked %v although nothing is measured", asked)
		}
		measured(t, m, a.splits...)
		pass(10 * time.Minute)
		if n := len(a.took()); n < 19 || n > 22 {
			t.Errorf("asked %d times in 20 windows", n)
		}
		for _, key := range a.splits {
			windows, health := m.Windows(key, time.Time{})
			if len(windows) < 17 || health.Reason != "" || health.Message != "" {
				t.Fatalf("%s: %d windows, %+v", key, len(windows), health)
			}
			for i, w := range windows {
				if w.Canary.Requests != 10 || w.Stable.Failures != 1 || w.Weight != 10 || i > 0 && w.Start.Before(windows[i-1].End) {
					t.Fatalf("%s: %+v", key, w)
				}
			}
			if rest, _ := m.Windows(key, windows[3].End); len(rest) != len(windows)-4 {
				t.Errorf("%d windows after the fourth of %d", len(rest), len(windows))
			}
		}
		for _, key := range a.splits {
			m.Forget(key)
		}
		a.took()
		pass(time.Minute)
		if asked := a.took(); asked != nil {
			t.Errorf("asked %v after all were forgotten", asked)
		}
	})
}

func TestEachNamespaceIsListedWhereAllAreForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{splits: []types.NamespacedName{{Namespace: "a", Name: "website"}, {Namespace: "b", Name: "website"}}}
		a.answer(func(namespace string) error {
			if namespace != "a" {
				return forbidden(namespace)
			}
			return nil
		})
		m := running(t, a)
		measured(t, m, a.splits...)
		pass(2 * time.Minute)
		if windows, health := m.Windows(a.splits[0], time.Time{}); len(windows) == 0 || health.Message != "" {
			t.Errorf("a: %v %+v", windows, health)
		}
		windows, health := m.Windows(a.splits[1], time.Time{})
		if want := `the operator is not allowed to list trafficsplits of metrics.smi-spec.io in the namespace "b"; grant its service account that`; len(windows) > 0 || health.Message != want || health.Reason != analysis.ReasonNoData {
			t.Errorf("b: %v %+v", windows, health)
		}
		if asked := strings.Join(a.took(), " "); strings.Count(asked, "a") < 3 || strings.HasSuffix(asked, " ") {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestTheAPIMayComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{splits: []types.NamespacedName{website}}
		gone := func(string) error { return apierrors.NewNotFound(schema.GroupResource{}, "") }
		a.answer(gone)
		m := running(t, a)
		measured(t, m, website)
		pass(time.Minute)
		if windows, health := m.Windows(website, time.Time{}); len(windows) > 0 || health.Message != notServed {
			t.Errorf("before: %v %+v", windows, health)
		}
		if e := <-m.changes; e.Object != website {
			t.Errorf("notified of %v", e.Object)
		}
		a.answer(nil)
		pass(2 * time.Minute)
		before, health := m.Windows(website, time.Time{})
		if len(before) == 0 || health.Message != "" {
			t.Errorf("there: %v %+v", before, health)
		}
		a.answer(func(string) error { return apierrors.NewServiceUnavailable("details of the backend") })
		pass(time.Minute)
		after, health := m.Windows(website, time.Time{})
		if want := "the TrafficMetrics API is not available; see kubectl get apiservice v1alpha1.metrics.smi-spec.io"; len(after) != len(before) || health.Message != want {
			t.Errorf("gone: %d windows, before %d; %+v", len(after), len(before), health)
		}
	})
}

func TestOtherBackendsBeginAnew(t *testing.T) {
	m := NewTrafficMetrics(nil, clock.RealClock{}, nil)
	measured(t, m, website)
	m.splits[website].windows = []analysis.Window{{End: epoch}}
	measured(t, m, website)
	if windows, _ := m.Windows(website, time.Time{}); len(windows) != 1 {
		t.Error("the same backends forget their windows")
	}
	if err := m.Measure(t.Context(), website, analysis.Subject{Split: website.Name, Stable: "website-stable", Canary: "another"}, analysis.Weight{}); err != nil {
		t.Fatal(err)
	}
	if windows, _ := m.Windows(website, time.Time{}); len(windows) != 0 {
		t.Error("windows of other backends are kept")
	}
}

func TestTheListIsReadFromAnAPIServerToItsEnd(t *testing.T) {
	var asked []string
	status, warning := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if warning != "" {
			w.Header().Set("Warning", warning)
		}
		w.WriteHeader(status)
		var answer any = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Message: "do not tell"}
		if status == http.StatusOK {
			list := &metricsv1.TrafficMetricsList{TypeMeta: metav1.TypeMeta{Kind: "TrafficMetricsList", APIVersion: "metrics.smi-spec.io/v1alpha1"}, Items: both(second(60))[:1]}
			if list.Continue = "more"; r.URL.Query().Get("continue") == "more" {
				list.Continue, list.Items = "", both(second(60))[1:]
			}
			answer = list
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	lister, err := NewLister(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	m := NewTrafficMetrics(lister, clock.RealClock{}, nil)
	got, err := m.all(t.Context(), trafficSplits, "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := reading{start: second(30), end: second(60), arms: map[string]analysis.Variant{"website-stable": {Requests: 91, Failures: 1}, "website-canary": {Requests: 10, Failures: 2}}}
	if diff := cmp.Diff(map[types.NamespacedName]reading{website: want}, got.readings, cmp.AllowUnexported(reading{})); diff != "" {
		t.Error(diff)
	}
	if _, err := m.all(t.Context(), trafficSplits, ""); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{
		"/apis/metrics.smi-spec.io/v1alpha1/namespaces/shop/trafficsplits?limit=500",
		"/apis/metrics.smi-spec.io/v1alpha1/namespaces/shop/trafficsplits?continue=more&limit=500",
		"/apis/metrics.smi-spec.io/v1alpha1/trafficsplits?limit=500",
		"/apis/metrics.smi-spec.io/v1alpha1/trafficsplits?continue=more&limit=500",
	}, asked); diff != "" {
		t.Error(diff)
	}
	warning = `299 - "1 of 2 proxies could not be read; their requests are missing"`
	if a, err := m.all(t.Context(), trafficSplits, ""); err == nil || len(a.readings) > 0 || a.problem != "the TrafficMetrics API says that its answer is not complete" {
		t.Errorf("with a warning: %+v %v", a, err)
	}
	warning = ""
	for code, want := range map[int]string{
		http.StatusNotFound:           notServed,
		http.StatusForbidden:          "the operator is not allowed to list trafficsplits of metrics.smi-spec.io in any namespace; grant its service account that",
		http.StatusServiceUnavailable: "the TrafficMetrics API is not available; see kubectl get apiservice v1alpha1.metrics.smi-spec.io",
		http.StatusUnauthorized:       "the TrafficMetrics API refuses the list with status 401",
	} {
		status = code
		if a, err := m.all(t.Context(), trafficSplits, ""); err == nil || a.problem != want {
			t.Errorf("%d: %q %v", code, a.problem, err)
		}
	}
	server.Close()
	if a, _ := m.all(t.Context(), trafficSplits, ""); a.problem != "the TrafficMetrics API could not be reached" {
		t.Errorf("closed: %q", a.problem)
	}
}

func TestAListThatNeverEndsIsNotFollowed(t *testing.T) {
	var asked int
	m := NewTrafficMetrics(func(context.Context, string, string, string) (*metricsv1.TrafficMetricsList, error) {
		asked++
		return &metricsv1.TrafficMetricsList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	}, clock.RealClock{}, nil)
	if a, err := m.all(t.Context(), trafficSplits, ""); err != nil || a.problem != "the list of TrafficMetrics does not end" || asked != pages {
		t.Errorf("%+v %v after %d", a, err, asked)
	}
}
