// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func canary(edits ...func(*v1alpha1.CanaryRelease)) *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{}
	cr.Name, cr.Namespace, cr.Generation = "web", "shop", 2
	cr.Spec.Release, cr.Spec.Version = "shop", 4
	cr.Status.ObservedGeneration = 2
	for _, edit := range edits {
		edit(cr)
	}
	return cr
}

func asked(t v1alpha1.CanaryTransition) func(*v1alpha1.CanaryRelease) {
	return func(cr *v1alpha1.CanaryRelease) { cr.Spec.Transition = t }
}

func decided(t v1alpha1.CanaryTransition, ended bool) func(*v1alpha1.CanaryRelease) {
	return func(cr *v1alpha1.CanaryRelease) {
		cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: t, Reason: "Requested", Message: "because of it"}
		if ended {
			cr.Status.Decision.EndedAt = &metav1.MicroTime{}
		}
	}
}

func condition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.CanaryRelease) {
	return func(cr *v1alpha1.CanaryRelease) {
		cr.Status.Conditions = append(cr.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason + " now."})
	}
}

const (
	adopted    = v1alpha1.CanaryTransitionAdopted
	deprecated = v1alpha1.CanaryTransitionDeprecated
)

func TestATransitionIsAskedForWhileItCanStillCome(t *testing.T) {
	for name, test := range map[string]struct {
		cr     *v1alpha1.CanaryRelease
		wanted v1alpha1.CanaryTransition
		ask    bool
		says   string
	}{
		"a canary is adopted":                           {canary(), adopted, true, ""},
		"it is being adopted already":                   {canary(asked(adopted)), adopted, false, ""},
		"a canary is deprecated":                        {canary(), deprecated, true, ""},
		"it is deprecated already":                      {canary(asked(deprecated), decided(deprecated, true)), deprecated, false, ""},
		"one whose adoption does not end is deprecated": {canary(asked(adopted), decided(adopted, false)), deprecated, true, ""},
		"one that is being deprecated is not adopted":   {canary(asked(deprecated)), adopted, false, "is final"},
		"one that Serin deprecated is not adopted":      {canary(decided(deprecated, false)), adopted, false, "is deprecated (because of it); create another one"},
		"one that was adopted is not deprecated":        {canary(asked(adopted), decided(adopted, true)), deprecated, false, "helm rollback shop 4 --namespace shop"},
		"one that is being deleted is not adopted": {canary(func(cr *v1alpha1.CanaryRelease) {
			now := metav1.Now()
			cr.DeletionTimestamp = &now
		}), adopted, false, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			ask, err := Transit(test.cr, test.wanted)
			if ask != test.ask || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("ask %t: %v", ask, err)
			}
		})
	}
}

func TestATransitionHasEnded(t *testing.T) {
	stalled := condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, "Refused")
	for name, test := range map[string]struct {
		cr     *v1alpha1.CanaryRelease
		wanted v1alpha1.CanaryTransition
		ended  bool
		says   string
	}{
		"nothing has happened yet":               {canary(asked(adopted)), adopted, false, ""},
		"it is being adopted":                    {canary(decided(adopted, false)), adopted, false, ""},
		"it was adopted":                         {canary(decided(adopted, true)), adopted, true, ""},
		"it was deprecated":                      {canary(decided(deprecated, true)), deprecated, true, ""},
		"it is being deprecated instead":         {canary(decided(deprecated, false)), adopted, false, "is not Adopted, but Deprecated: because of it"},
		"it was adopted before it was asked for": {canary(decided(adopted, true)), deprecated, false, "is not Deprecated, but Adopted"},
		"the adoption is still being stopped":    {canary(decided(adopted, false)), deprecated, false, ""},
		"a user has to do something":             {canary(decided(adopted, false), condition(v1alpha1.ConditionReady, "False", "Refused"), stalled), adopted, false, "by itself: Refused now."},
		"the upgrade failed":                     {canary(decided(adopted, false), condition(v1alpha1.ConditionReady, "False", v1alpha1.ReasonUpgradeFailed)), adopted, false, "by itself: UpgradeFailed now."},
		"what is said is about an older spec":    {canary(decided(deprecated, true), func(cr *v1alpha1.CanaryRelease) { cr.Generation = 3 }), deprecated, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ended, err := Transited(test.cr, test.wanted)
			if ended != test.ended || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("ended %t: %v", ended, err)
			}
		})
	}
}

func TestTheShareOfACanaryIsThatOfItsPorts(t *testing.T) {
	services := func(programmed bool, weights ...int32) []v1alpha1.CanaryServiceStatus {
		s := v1alpha1.CanaryServiceStatus{Service: "web", Programmed: programmed}
		for i, w := range weights {
			s.Ports = append(s.Ports, v1alpha1.CanaryPortStatus{Port: []string{"80/TCP", "53/UDP"}[i], Weight: w})
		}
		return []v1alpha1.CanaryServiceStatus{s}
	}
	for name, test := range map[string]struct {
		services     []v1alpha1.CanaryServiceStatus
		share, ports string
	}{
		"nothing is known":    {nil, "-", ""},
		"of one port":         {services(true, 10), "10%", "web:80/TCP=10%"},
		"nothing":             {services(true, 0, 0), "0%", "web:80/TCP=0%,web:53/UDP=0%"},
		"ports differ":        {services(true, 100, 0), "0-100%", "web:80/TCP=100%,web:53/UDP=0%"},
		"not programmed yet":  {services(false, 10), "-", ""},
		"one of two is":       {append(services(true, 10), services(false, 20)...), "-", "web:80/TCP=10%"},
		"of no port":          {services(true), "-", ""},
		"of several Services": {append(services(true, 10), services(true, 20)...), "10-20%", "web:80/TCP=10%,web:80/TCP=20%"},
	} {
		t.Run(name, func(t *testing.T) {
			cr := canary(func(cr *v1alpha1.CanaryRelease) { cr.Status.Services = test.services })
			if share, ports := CanaryShare(cr), CanaryPorts(cr); share != test.share || ports != test.ports {
				t.Errorf("share %q, ports %q", share, ports)
			}
		})
	}
}

func TestFailuresAreToldOfServicesThatWereMeasured(t *testing.T) {
	cr := canary(func(cr *v1alpha1.CanaryRelease) {
		cr.Status.Services = []v1alpha1.CanaryServiceStatus{
			{Service: "web", Programmed: true, Traffic: &v1alpha1.CanaryTraffic{Stable: v1alpha1.CanaryCounts{Requests: 1188, Failures: 3}, Canary: v1alpha1.CanaryCounts{Requests: 12}}},
			{Service: "dns", Programmed: true},
		}
	})
	if got, want := CanaryFailures(cr), "web:canary=0/12,web:stable=3/1188"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
