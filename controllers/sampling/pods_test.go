// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/traffic"
)

// recorder is a source that remembers its targets.
type recorder struct {
	targets chan analysis.Target
}

func (r *recorder) Scrape(_ context.Context, t analysis.Target, at time.Time) (analysis.Scrape, error) {
	r.targets <- t.Clone()
	return analysis.Scrape{At: at, Pods: map[string]analysis.PodCounters{"a": {}}}, nil
}

func pod(name, split, ip string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: meta(name, split, "ReplicaSet", traffic.ProxyName(split)+"-1"),
		Status:     corev1.PodStatus{PodIP: ip, Phase: phase},
	}
}

// meta is of an object with a controller, whose UID is its name.
func meta(name, split, kind, controller string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{traffic.LabelProxy: split}}
	if controller != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: controller, UID: types.UID(controller), Controller: new(true)}}
	}
	return m
}

// makers are what makes the pods of a split.
func makers(split string) []client.Object {
	name := traffic.ProxyName(split)
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta(name, split, "", "")},
		&appsv1.ReplicaSet{ObjectMeta: meta(name+"-1", split, "Deployment", name)},
	}
}

// A user who may create pods counts what they like, but for these.
func TestOnlyPodsThatTheRouterMadeAreCounted(t *testing.T) {
	byHand := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod("forged", "website", "10.244.0.6", corev1.PodRunning)
		change(p)
		return p
	}
	other := []client.Object{
		&appsv1.Deployment{ObjectMeta: meta("mine", "website", "", "")},
		&appsv1.ReplicaSet{ObjectMeta: meta("mine-1", "website", "Deployment", "mine")},
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"the router's":                      {pod("a", "website", "10.244.0.2", corev1.PodRunning), true},
		"with the label alone":              {byHand(func(p *corev1.Pod) { p.OwnerReferences = nil }), false},
		"of a ReplicaSet that is not there": {byHand(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "gone" }), false},
		"of one that was there before":      {byHand(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "gone" }), false},
		"of another Deployment":             {byHand(func(p *corev1.Pod) { p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "mine-1", "mine-1" }), false},
		"of another kind":                   {byHand(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" }), false},
		"of another split's Deployment":     {byHand(func(p *corev1.Pod) { p.OwnerReferences = pod("b", "shop", "", "").OwnerReferences }), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat(makers("website"), makers("shop"), other, []client.Object{test.pod})
			p := NewProxies(ProxiesOptions{Pods: fake.NewClientBuilder().WithObjects(objects...).Build(), Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0))})
			key := types.NamespacedName{Namespace: "shop", Name: "website"}
			if err := p.Measure(t.Context(), key, analysis.Subject{Split: "website"}, analysis.Weight{}); err != nil {
				t.Fatal(err)
			}
			if counted := len(p.targets[key].spec.Pods) == 1; counted != test.want {
				t.Errorf("counted: %v, want %v", counted, test.want)
			}
		})
	}
}

func TestTheRunningProxiesOfTheSplitAreMeasuredAndTheOwnerIsTold(t *testing.T) {
	pods := fake.NewClientBuilder().WithObjects(slices.Concat(makers("website"), makers("shop"))...).WithObjects(
		pod("b", "website", "10.244.0.2", corev1.PodRunning), pod("a", "website", "fd00::1", corev1.PodRunning),
		pod("starting", "website", "", corev1.PodPending), pod("done", "website", "10.244.0.9", corev1.PodFailed),
		pod("other", "shop", "10.244.0.3", corev1.PodRunning),
	).Build()
	source := &recorder{targets: make(chan analysis.Target, 10)}
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	p := NewProxies(ProxiesOptions{Pods: pods, Port: 15020, Source: source, Clock: clock, Changes: changes.New()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	key := types.NamespacedName{Namespace: "shop", Name: "rollout"} // whose split has another name
	if err := p.Measure(ctx, key, analysis.Subject{Split: "website", Stable: "website-stable", Canary: "website-canary"}, analysis.Weight{Percent: 10, Since: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	var got analysis.Target
	for got.Pods == nil {
		select {
		case got = <-source.targets:
		case <-time.After(10 * time.Millisecond):
			clock.Step(5 * time.Second)
		}
	}
	want := analysis.Target{
		Stable: "website-stable", Canary: "website-canary",
		Pods: []analysis.Pod{{UID: "a", Address: "[fd00::1]:15020"}, {UID: "b", Address: "10.244.0.2:15020"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e := <-p.Changes; e.Object != key {
		t.Errorf("notified of %v", e.Object)
	}
	p.Forget(key)
	if windows, health := p.Windows(key, time.Time{}); len(windows) > 0 || health != (analysis.Health{}) {
		t.Errorf("still measured: %v %v", windows, health)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !p.NeedLeaderElection() {
		t.Error("a standby judges")
	}
}
