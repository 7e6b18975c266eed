// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

// counts are Measurements that a test fills.
type counts struct {
	c       *cluster
	weights map[string]analysis.Weight // of what is being measured
	windows []analysis.Window
	health  analysis.Health
}

func (m *counts) Measure(_ context.Context, split types.NamespacedName, of analysis.Subject, w analysis.Weight) error {
	if want := (analysis.Subject{Split: split.Name, Stable: split.Name + "-stable", Canary: split.Name + "-canary"}); of != want || split.Namespace != "shop" {
		m.c.Errorf("%s is measured by %+v", split, of)
	}
	m.weights[split.Name] = w
	return m.c.call("measure")
}

func (m *counts) Forget(split types.NamespacedName) { delete(m.weights, split.Name) }

func (m *counts) Windows(split types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	var out []analysis.Window
	if _, known := m.weights[split.Name]; !known {
		return nil, analysis.Health{}
	}
	for _, w := range m.windows {
		if w.End.After(after) {
			out = append(out, w)
		}
	}
	return out, m.health
}

// window of a quarter of a minute that ends so many seconds after the test began.
func window(end int, stable, canary analysis.Variant) analysis.Window {
	at := time.Unix(1e9, 0).Add(time.Duration(end) * time.Second)
	return analysis.Window{Start: at.Add(-15 * time.Second), End: at, Stable: stable, Canary: canary}
}

func TestFiguresAreTheSumOfWholeWindows(t *testing.T) {
	start := time.Unix(1e9, 0)
	windows := []analysis.Window{
		window(15, analysis.Variant{Requests: 1000}, analysis.Variant{Requests: 1000}),
		window(30, analysis.Variant{Requests: 90, Failures: 1}, analysis.Variant{Requests: 10, Failures: 2}),
		window(45, analysis.Variant{Requests: 80}, analysis.Variant{}),
	}
	both := &v1alpha1.CanaryTraffic{
		EndedAt: metav1.NewMicroTime(start.Add(45 * time.Second)), Seconds: 30,
		Stable: v1alpha1.CanaryCounts{Requests: 170, Failures: 1}, Canary: v1alpha1.CanaryCounts{Requests: 10, Failures: 2},
	}
	for name, test := range map[string]struct {
		windows []analysis.Window
		health  analysis.Health
		since   time.Time
		want    *v1alpha1.CanaryTraffic
	}{
		"of those that began with the weights":        {windows, analysis.Health{}, start.Add(15 * time.Second), both},
		"that is zero where no client called":         {[]analysis.Window{window(15, analysis.Variant{}, analysis.Variant{})}, analysis.Health{}, start, &v1alpha1.CanaryTraffic{EndedAt: metav1.NewMicroTime(start.Add(15 * time.Second)), Seconds: 15}},
		"and unknown without a window":                {nil, analysis.Health{}, start, nil},
		"and unknown while weights change":            {windows, analysis.Health{}, time.Time{}, nil},
		"and unknown when all began before them":      {windows, analysis.Health{}, start.Add(time.Minute), nil},
		"and unknown when a proxy could not be read":  {windows, analysis.Health{Pods: 2, Missed: 1}, start, nil},
		"and unknown when the last one did not close": {windows, analysis.Health{Reason: analysis.ReasonNoPods}, start, nil},
	} {
		if diff := cmp.Diff(test.want, figures(test.windows, test.health, test.since)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatTheVersionsAnsweredIsInTheStatusWhileTheCanaryIsThere(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	weight := c.counts.weights["web"]
	if weight.Percent != 1 || weight.Since.IsZero() {
		t.Fatalf("it is measured with %+v", weight)
	}
	if got := c.canaryRelease().Status.Services[0].Traffic; got != nil {
		t.Errorf("nothing was counted, and it says %+v", got)
	}
	end := c.clock.Now()
	c.counts.windows = []analysis.Window{{Start: end.Add(-10 * time.Second), End: end, Stable: analysis.Variant{Requests: 99, Failures: 3}, Canary: analysis.Variant{Requests: 1}}}
	writes := c.names["update status v1alpha1.CanaryRelease"]
	c.run(1)
	got := c.canaryRelease().Status.Services[0].Traffic
	if got == nil || got.Seconds != 10 || got.Stable.Requests != 99 || got.Stable.Failures != 3 || got.Canary.Requests != 1 {
		t.Fatalf("%+v", got)
	}
	for range 10 { // half a minute, with something new each time
		c.counts.windows = append(c.counts.windows, analysis.Window{Start: c.clock.Now().Add(-3 * time.Second), End: c.clock.Now(), Canary: analysis.Variant{Requests: 1}})
		c.run(1)
	}
	if more := c.names["update status v1alpha1.CanaryRelease"] - writes; more != 3 {
		t.Errorf("it wrote the status %d times", more)
	}
	c.transition(v1alpha1.CanaryTransitionDeprecated)
	c.run(15)
	if len(c.counts.weights) > 0 {
		t.Errorf("it still measures %v", c.counts.weights)
	}
}

func TestOtherWeightsAreMeasuredAnew(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	before := c.counts.weights["web"]
	c.change(func(s *v1alpha1.CanaryReleaseSpec) {
		weight := int32(40)
		s.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{{Port: 80, Config: v1alpha1.CanaryPortConfig{Weight: &weight}}}}}
	})
	c.run(4)
	if w := c.counts.weights["web"]; w.Percent != 40 || !w.Since.After(before.Since) {
		t.Errorf("it is measured with %+v", w)
	}
}

func TestWeightsThatAreNotLiveAreNotMeasured(t *testing.T) {
	k := &knowledge{}
	service := &helmrelease.Service{Name: "web", Split: helmrelease.Split{Split: kit.Split{Programmed: true}, Requested: []helmrelease.PortWeight{{Port: "80/TCP", Weight: 10}, {Port: "81/TCP"}}}}
	start := time.Unix(1e9, 0)
	if w := k.measure(service, start); w.Percent != 10 || !w.Since.Equal(start) {
		t.Errorf("at first %+v", w)
	}
	if w := k.measure(service, start.Add(time.Hour)); !w.Since.Equal(start) {
		t.Errorf("later %+v", w)
	}
	service.Split.Programmed = false
	if w := k.measure(service, start); w != (analysis.Weight{}) {
		t.Errorf("while they change %+v", w)
	}
	service.Split.Programmed = true
	if w := k.measure(service, start.Add(2*time.Hour)); !w.Since.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("afterwards %+v", w)
	}
}

func TestOnlyWhatSpeaksHTTPIsMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		ask  v1alpha1.CanaryProtocol
		port string
		want bool
	}{
		"a port that says nothing":         {"", "main", true},
		"a port that says that it is not":  {"", "tcp-main", false},
		"a port that the spec says is TCP": {v1alpha1.CanaryProtocolTCP, "http", false},
		"a port that the spec says is not": {v1alpha1.CanaryProtocolHTTPS, "http", false},
		"a port that the spec says is":     {v1alpha1.CanaryProtocolHTTP, "tcp-main", true},
	} {
		c := newCluster(t)
		root := &corev1.Service{}
		c.must(c.Get(t.Context(), key("web"), root))
		root.Spec.Ports[0].Name = test.port
		c.must(c.Update(t.Context(), root))
		c.change(func(s *v1alpha1.CanaryReleaseSpec) {
			s.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{{Port: 80, Protocol: test.ask}}}}
		})
		c.run(12)
		if _, got := c.counts.weights["web"]; got != test.want {
			t.Errorf("%s: measured is %v", name, got)
		}
	}
}

func TestACanaryReleaseThatIsGoneIsNotMeasured(t *testing.T) {
	c := newCluster(t)
	c.run(12)
	c.must(c.Delete(t.Context(), c.canaryRelease()))
	gone := c.canaryRelease()
	gone.Finalizers = nil // a user forces it
	c.must(c.Update(t.Context(), gone))
	c.reconcile()
	if len(c.counts.weights) > 0 {
		t.Errorf("it still measures %v", c.counts.weights)
	}
}

func TestWithoutMeasurementsEverythingGoesOn(t *testing.T) {
	c := newCluster(t)
	c.counts.health = analysis.Health{Reason: analysis.ReasonNoPods, Message: "there are no proxies to read"}
	c.run(12)
	if ready := c.ready(); ready.Reason != v1alpha1.ReasonServing || strings.Contains(ready.Message, "proxies") {
		t.Errorf("%+v", ready)
	}
}
