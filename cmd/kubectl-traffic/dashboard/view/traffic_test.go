// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/config/golden"
)

// sent compares what a page is sent with a file.
func sent(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
}

// birds is a split that is programmed: 80 % stable, 20 % canary.
func birds(change ...func(*splitv1.TrafficSplit)) *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "birds", Generation: 3, Labels: map[string]string{v1alpha1.LabelRollout: "birds"}}}
	split.Spec = splitv1.TrafficSplitSpec{Service: "birds", Backends: []splitv1.Backend{{Service: "birds-stable", Weight: 80}, {Service: "birds-canary", Weight: 20}}}
	split.Status.Router = "nginx"
	for _, kind := range []string{splitv1.ConditionAccepted, splitv1.ConditionResolvedRefs, splitv1.ConditionProgrammed} {
		split.Status.Conditions = append(split.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, Message: kind + " it is.", ObservedGeneration: 3})
	}
	split.Status.Backends = []splitv1.BackendStatus{{Service: "birds-stable", Weight: 80, ReadyEndpoints: 4}, {Service: "birds-canary", Weight: 20, ReadyEndpoints: 1}}
	for _, f := range change {
		f(split)
	}
	return split
}

// fails sets a condition of a split to false.
func fails(kind, reason string) func(*splitv1.TrafficSplit) {
	return func(split *splitv1.TrafficSplit) {
		for i := range split.Status.Conditions {
			if c := &split.Status.Conditions[i]; c.Type == kind {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, "It says why."
			}
		}
	}
}

// window has what both versions answered in the 30 seconds before a time.
func window(end time.Time, stable, canary int64) (items []metricsv1.TrafficMetrics) {
	for name, requests := range map[string]int64{"birds-stable": stable, "birds-canary": canary} {
		m := metricsv1.TrafficMetrics{
			Resource: corev1.ObjectReference{Kind: "TrafficSplit", Namespace: "shop", Name: "birds"},
			Edge:     metricsv1.Edge{Direction: metricsv1.DirectionFrom, Side: metricsv1.SideServer}, Backend: &metricsv1.Backend{Apex: "birds", Name: name},
			Timestamp: metav1.NewTime(end), Window: metav1.Duration{Duration: 30 * time.Second},
			Metrics: []metricsv1.Metric{
				{Name: metricsv1.MetricSuccessCount, Value: *resource.NewQuantity(requests-requests/100, resource.DecimalSI)},
				{Name: metricsv1.MetricFailureCount, Value: *resource.NewQuantity(requests/100, resource.DecimalSI)},
				{Name: metricsv1.MetricP99Latency, Value: resource.MustParse("25m")},
			},
		}
		items = append(items, m)
	}
	return items
}

// looked is a split at which a page has looked for some windows of the same traffic.
func looked(split *splitv1.TrafficSplit, windows int, stable, canary int64) view.Split {
	at := begun
	w := view.Watched{}.Next(split, nil, at)
	var items []metricsv1.TrafficMetrics
	for range windows {
		at = at.Add(30 * time.Second)
		items = window(at, stable, canary)
		w = w.Next(split, items, at)
	}
	return view.MakeSplit(split, items, w)
}

func TestASplitHasItsDeclaredItsProgrammedAndItsMeasuredShares(t *testing.T) {
	sent(t, "split", looked(birds(), 2, 800, 200))
	sent(t, "split-not-programmed", view.MakeSplit(birds(func(s *splitv1.TrafficSplit) {
		s.Status.Backends = nil
		fails(splitv1.ConditionProgrammed, splitv1.ReasonWaitingForProxies)(s)
	}), nil, view.Watched{}))
}

func TestTheStateOfASplitIsTheGravestOfItsConditions(t *testing.T) {
	for _, test := range []struct {
		name  string
		split *splitv1.TrafficSplit
		want  view.Group
		state string
	}{
		{"all is well", birds(), view.Stable, "Programmed"},
		{"nothing was looked at", birds(func(s *splitv1.TrafficSplit) { s.Status = splitv1.TrafficSplitStatus{} }), view.Unknown, "Unknown"},
		{"the spec was changed since", birds(func(s *splitv1.TrafficSplit) { s.Generation = 4 }), view.InProgress, "Pending"},
		{"it is refused", birds(fails(splitv1.ConditionAccepted, splitv1.ReasonConflict)), view.Failed, "Conflict"},
		{"a backend is missing", birds(fails(splitv1.ConditionResolvedRefs, splitv1.ReasonBackendNotFound)), view.NeedsUser, "BackendNotFound"},
		{"proxies start", birds(fails(splitv1.ConditionProgrammed, splitv1.ReasonWaitingForProxies)), view.InProgress, "WaitingForProxies"},
		{"a proxy can't follow", birds(fails(splitv1.ConditionProgrammed, splitv1.ReasonProxyError)), view.Failed, "ProxyError"},
	} {
		if got := view.MakeSplit(test.split, nil, view.Watched{}); got.Group != test.want || got.State != test.state || got.Message == "" {
			t.Errorf("%s: %s %s: %s", test.name, got.Group, got.State, got.Message)
		}
	}
}

func TestMeasuredSharesAreComparedWithTheWeights(t *testing.T) {
	for _, test := range []struct {
		name           string
		windows        int
		stable, canary int64
		want           string
		group          view.Group
	}{
		{"no window yet", 0, 0, 0, view.Waiting, view.Stable},
		{"no request", 2, 0, 0, view.Waiting, view.Stable},
		{"the weight", 3, 810, 190, view.Fits, view.Stable},
		{"few requests", 1, 9, 1, view.Fits, view.Stable},
		{"clients that bypass the router", 5, 950, 50, view.Differs, view.NeedsUser},
	} {
		got := looked(birds(), test.windows, test.stable, test.canary)
		for _, share := range got.Shares {
			if share.Check == nil || share.Check.Verdict != test.want || share.Check.Message == "" {
				t.Errorf("%s: %s: %+v, want %s", test.name, share.Service, share.Check, test.want)
			}
		}
		if got.Group != test.group {
			t.Errorf("%s: %s %s", test.name, got.Group, got.Message)
		}
	}
}

func TestOnlyWindowsOfTheLiveWeightsCount(t *testing.T) {
	split := birds()
	w := view.Watched{}.Next(split, window(begun, 100, 0), begun)
	requests := func() int64 { return view.MakeSplit(split, nil, w).Shares[0].Check.Requests }
	for _, step := range []struct {
		name string
		end  time.Duration
		want int64
	}{
		{"a window that began before the weights were seen", 20 * time.Second, 0},
		{"one that began after", 40 * time.Second, 100},
		{"the same again", 40 * time.Second, 100},
		{"the next", 70 * time.Second, 200},
	} {
		if w = w.Next(split, window(begun.Add(step.end), 80, 20), begun.Add(step.end)); requests() != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, requests(), step.want)
		}
	}
	// Other weights begin anew, and so does a split that is not programmed meanwhile.
	split.Status.Backends[0].Weight, split.Status.Backends[1].Weight = 50, 50
	if w = w.Next(split, window(begun.Add(100*time.Second), 80, 20), begun.Add(100*time.Second)); requests() != 0 {
		t.Errorf("after a change of the weights: %d requests", requests())
	}
	split.Generation = 4
	w = w.Next(split, window(begun.Add(130*time.Second), 80, 20), begun.Add(130*time.Second))
	if check := view.MakeSplit(split, nil, w).Shares[0].Check; check != nil {
		t.Errorf("while the weights are not live: %+v", check)
	}
}

func TestSharesThatNeedNotFitAreNotCompared(t *testing.T) {
	for name, change := range map[string]func(*splitv1.TrafficSplit){
		"match": func(s *splitv1.TrafficSplit) { s.Spec.Matches = []splitv1.Match{{Name: "testers"}} },
		"come back": func(s *splitv1.TrafficSplit) {
			s.Annotations = map[string]string{splitv1.AnnotationRouting: "stickyCookie: {name: version}"}
		},
		"mirrored": func(s *splitv1.TrafficSplit) {
			s.Annotations = map[string]string{splitv1.AnnotationRouting: "mirror: {service: x, percent: 10}"}
		},
		"weights of their": func(s *splitv1.TrafficSplit) {
			s.Status.Backends[0].Ports = []splitv1.PortStatus{{Port: 80, Protocol: "TCP", Weight: 80}}
		},
		"routing": func(s *splitv1.TrafficSplit) { s.Annotations = map[string]string{splitv1.AnnotationRouting: "x: ["} },
	} {
		got := looked(birds(change), 5, 0, 1000)
		if !strings.Contains(got.Unchecked, name) || got.Shares[0].Check.Verdict == view.Differs {
			t.Errorf("%s: %q, %+v", name, got.Unchecked, got.Shares[0].Check)
		}
	}
	whole := birds(func(s *splitv1.TrafficSplit) { s.Status.Backends[0].Weight, s.Status.Backends[1].Weight = 100, 0 })
	if got := looked(whole, 5, 500, 500); got.Shares[0].Check != nil || got.Shares[1].Check != nil {
		t.Errorf("all or nothing was compared: %+v", got.Shares)
	}
}
