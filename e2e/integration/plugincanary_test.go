// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// tryCanary creates a CanaryRelease that gets a tenth of the traffic, by what its status says.
func tryCanary(s *scene) {
	s.Helper()
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "website"}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Config: "replicas: 3\n"}
	s.create(cr)
	cr.Status = v1alpha1.CanaryReleaseStatus{
		ObservedGeneration: cr.Generation,
		Services: []v1alpha1.CanaryServiceStatus{{
			Service: "website", Programmed: true, Ports: []v1alpha1.CanaryPortStatus{{Port: "80/TCP", Weight: 10}, {Port: "53/UDP", Weight: 0}},
		}},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing,
			Message: "The canary gets its traffic.\x1b[2J", LastTransitionTime: metav1.Now(),
		}},
	}
	s.reportCanary(cr)
}

func (s *scene) reportCanary(cr *v1alpha1.CanaryRelease) {
	s.Helper()
	if err := admin.Status().Update(s.Context(), cr); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) websiteCanary() *v1alpha1.CanaryRelease {
	s.Helper()
	return s.get(s.Context(), "website", &v1alpha1.CanaryRelease{}).(*v1alpha1.CanaryRelease)
}

func TestACanaryIsListedAndEndedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	tryCanary(s)
	if a := s.does("canary list -A -o wide"); !strings.Contains(a.out, s.namespace) || !strings.Contains(a.out, "website:80/TCP=10%,website:53/UDP=0%") ||
		!strings.Contains(a.out, "0-10%") || strings.Contains(a.out, "\x1b") {
		t.Errorf("got %q", a.out)
	}
	if a := s.does("canary list -o name"); a.out != "canaryrelease.serin.dev/website\n" {
		t.Errorf("got %q", a.out)
	}
	if a := s.traffic("", "__complete canary adopt web"); !strings.Contains(a.out, "website\n") {
		t.Errorf("not completed: %s", a.out)
	}
	for _, step := range []struct {
		line   string
		status int
		want   string
		has    v1alpha1.CanaryTransition
	}{
		{"canary adopt none", 1, `"none" not found`, ""},
		{"canary adopt website --dry-run=client", 0, "canaryrelease.serin.dev/website requested: Adopted (dry run)\n", ""},
		{"canary adopt website --dry-run=server", 0, "requested: Adopted (server dry run)\n", ""},
		{"canary adopt canary/website", 0, "canaryrelease.serin.dev/website requested: Adopted\n", v1alpha1.CanaryTransitionAdopted},
		{"canary adopt website -o yaml", 0, "transition: Adopted\n", v1alpha1.CanaryTransitionAdopted},
		{"canary adopt website --wait=1s", 3, "is not adopted yet, and the time limit of 1s has passed", v1alpha1.CanaryTransitionAdopted},
		{"canary deprecate website", 0, "requested: Deprecated\n", v1alpha1.CanaryTransitionDeprecated},
		{"canary deprecate website", 0, "canaryrelease.serin.dev/website unchanged\n", v1alpha1.CanaryTransitionDeprecated},
		{"canary adopt website", 1, "is deprecated, and that is final", v1alpha1.CanaryTransitionDeprecated},
	} {
		if a := s.traffic("", step.line); a.status != step.status || !strings.Contains(a.out+a.errs, step.want) {
			t.Errorf("%s: exit status %d: %s%s", step.line, a.status, a.out, a.errs)
		}
		if got := s.websiteCanary().Spec.Transition; got != step.has {
			t.Errorf("%s: %q", step.line, got)
		}
	}
	now, cr := metav1.NowMicro(), s.websiteCanary()
	cr.Status.ObservedGeneration = cr.Generation
	cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionDeprecated, Reason: v1alpha1.ReasonRequested, Message: "Asked for.", Time: now, EndedAt: &now}
	s.reportCanary(cr)
	if a := s.does("canary deprecate website --wait"); a.out != "canaryrelease.serin.dev/website deprecated\n" {
		t.Errorf("got %q and %q", a.out, a.errs)
	}
	cr.Spec.Transition = v1alpha1.CanaryTransitionAdopted
	if err := admin.Update(t.Context(), cr); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Deprecated is final") {
		t.Errorf("the API takes it back: %v", err)
	}
}

func TestWhoMayNotEditACanaryIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	tryCanary(s)
	a := s.traffic("nobody", "canary adopt website")
	if a.status != 1 || !strings.Contains(a.errs, `the user "nobody" may not get canaryreleases.serin.dev in the namespace `+s.namespace) {
		t.Errorf("exit status %d: %s%s", a.status, a.out, a.errs)
	}
	if got := s.websiteCanary().Spec.Transition; got != v1alpha1.CanaryTransitionNone {
		t.Errorf("it is %s", got)
	}
}
