// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// unmatchedWeb are the Services of a split with that for the requests that match none.
func unmatchedWeb() (*splitv1.TrafficSplit, map[string]*corev1.Service) {
	split, services := webSplit(), web()
	split.Annotations = nil
	services["serin-unmatched-birds"] = service("serin-unmatched-birds", "10.0.0.9", map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
	return split, services
}

func TestRequestsThatMatchNoneGoToTheRootServicesOwnPods(t *testing.T) {
	split, services := unmatchedWeb()
	if names := resolve.ServiceNames(split); !slices.Contains(names, "serin-unmatched-birds") {
		t.Errorf("the split refers to %v", names)
	}
	got, problems := resolve.Split(split, resolve.Known{Services: services, Groups: webGroups(), Proxied: true})
	if d := got.Ports[0].Default; len(problems) > 0 || d == nil || d.Address != "10.0.0.9" || len(got.Unroutable()) > 0 {
		t.Errorf("default %+v, problems %v", d, problems)
	}
	// A gateway or mesh leaves them to the root Service itself.
	got, problems = resolve.Split(split, resolve.Known{Services: services, Groups: webGroups()})
	if len(problems) > 0 || got.Ports[0].Default != nil {
		t.Errorf("without proxies: default %+v, problems %v", got.Ports[0].Default, problems)
	}
}

func TestWhileTheServiceIsMadeNothingNewIsServed(t *testing.T) {
	for name, edit := range map[string]func(map[string]*corev1.Service){
		"it does not exist":  func(s map[string]*corev1.Service) { delete(s, "serin-unmatched-birds") },
		"it has no address":  func(s map[string]*corev1.Service) { s["serin-unmatched-birds"].Spec.ClusterIP = "" },
		"it is not settled":  func(s map[string]*corev1.Service) { resolve.Settle(webWithout(), s, time.Time{}) },
		"it was just made":   func(s map[string]*corev1.Service) { young(s, 0) },
		"it is a second old": func(s map[string]*corev1.Service) { young(s, time.Second) },
	} {
		split, services := unmatchedWeb()
		services["serin-unmatched-birds"].CreationTimestamp = metav1.NewTime(made)
		edit(services)
		got, problems := resolve.Split(split, resolve.Known{Services: services, Groups: webGroups(), Proxied: true})
		if len(got.Ports) > 0 || traffic.Refused(problems) || len(problems) != 1 || problems[0].Reason != splitv1.ReasonPending {
			t.Errorf("%s: ports %+v, problems %v", name, got.Ports, problems)
		}
	}
}

var made = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func webWithout() *splitv1.TrafficSplit {
	split, _ := unmatchedWeb()
	return split
}

func young(services map[string]*corev1.Service, age time.Duration) {
	resolve.Settle(webWithout(), services, made.Add(age))
}

func TestTheServiceSettles(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Hour:  2 * time.Second, // the clock of the API server is ahead
		0:           2 * time.Second,
		time.Second: time.Second, 2 * time.Second: 0, time.Hour: 0,
	} {
		split, services := unmatchedWeb()
		services["serin-unmatched-birds"].CreationTimestamp = metav1.NewTime(made)
		left := resolve.Settle(split, services, made.Add(age))
		if kept := services["serin-unmatched-birds"] != nil; left != want || kept != (want == 0) {
			t.Errorf("at the age of %s: %s left, and it may be used: %t", age, left, kept)
		}
	}
	split, services := unmatchedWeb()
	services["serin-unmatched-birds"].CreationTimestamp = metav1.NewTime(made)
	splitv1.SetRouting(split, splitv1.Routing{DefaultBackend: "web-stable"})
	if left := resolve.Settle(split, services, made); left != 0 {
		t.Errorf("a split that names a default waits %s", left)
	}
}

func TestTheServiceHasTheNameOfAService(t *testing.T) {
	seen := map[string]bool{}
	for _, split := range []string{"web", "a.b", "a-b", strings.Repeat("a", 47), strings.Repeat("a", 48), strings.Repeat("a", 63)} {
		name := traffic.UnmatchedName(split)
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 || seen[name] {
			t.Errorf("%s of %s: %v", name, split, problems)
		}
		seen[name] = true
	}
}
