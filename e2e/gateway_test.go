// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/gateway"
)

// minimumRate is how many requests a second the load has to make all along.
const minimumRate = 1000

// TestGatewayStory releases a website behind a gateway that is not Serin's: v2 is
// promoted and v3 is aborted, under a constant load through the gateway. No request
// fails, each weight is the share that users see, and in the end the route is what
// its people wrote. v4, which fails, is rolled back by what the gateway's metrics say.
func TestGatewayStory(test *testing.T) {
	t := loud{test}
	s := newSite(t, "serin-gateway", true)
	s.apply("website.yaml")
	s.waitAvailable("website")
	written := s.route()
	s.applyLoad()
	s.apply("rollout.yaml")
	s.follow(nil, v1alpha1.ReasonStable)
	before := s.loadReport()
	shares := &shares{t: t}

	s.setImage("v2")
	s.follow(shares, v1alpha1.ReasonStable)
	s.requireRoute(written)

	s.setImage("v3")
	s.follow(shares, v1alpha1.ReasonWaitingForEvidence)
	s.requireBorrowed()
	s.abort()
	s.follow(shares, v1alpha1.ReasonRolledBack)
	s.requireRoute(written)

	shares.require(20)
	served := s.loadReport()
	s.requireRolledBackByEvidence()
	s.requireRoute(written)
	requireServed(t, before, served, s.notJudged...)
}

// requireRolledBackByEvidence releases a version that fails one answer in twenty, which
// nobody tells Serin but the API of TrafficMetrics: it asks a Prometheus that reads the
// gateway.
func (s *site) requireRolledBackByEvidence() {
	s.t.Helper()
	if !s.storeMetrics("traefik", 8080, client.InNamespace(gateway.Namespace), client.MatchingLabels{"app": gateway.Name}) {
		return
	}
	s.kubectl("patch", "--namespace", s.namespace, "rollout", siteName, "--type=merge", "-p", `{"spec":{"strategy":{"steps":[{"weight":20,"hold":"5m"}]}}}`)
	s.kubectl("patch", "--namespace", s.namespace, "deployment", siteName, "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"website","image":"docker.io/serin-dev/demo-app:v4","env":[{"name":"FAIL_PERCENT","value":"5"}]}]}}}}`)
	s.await("the release of v4", func(ro *v1alpha1.Rollout) bool {
		return ro.Status.Weight != nil && ro.Status.Weight.Observed != nil && *ro.Status.Weight.Observed == 20
	})
	s.follow(nil, v1alpha1.ReasonRolledBack)
	ended := s.rollout().Status.History[0]
	s.t.Logf("v4 was rolled back: %s", ended.Message)
	if ended.Outcome != v1alpha1.OutcomeRolledBack || !strings.Contains(ended.Message, "more often than stable") {
		s.t.Errorf("the release of v4 ended otherwise: %+v", ended)
	}
}

// requireRoute compares the route with what its people wrote.
func (s *site) requireRoute(written routeText) {
	s.t.Helper()
	if diff := cmp.Diff(written, s.route()); diff != "" {
		s.t.Errorf("the route of the website (-written +now):\n%s", diff)
	}
}

// requireBorrowed fails the test when the route does not share the requests while a
// release is in progress: the rest would show nothing.
func (s *site) requireBorrowed() {
	s.t.Helper()
	var names []string
	for _, rule := range s.httpRoute().Spec.Rules {
		for _, ref := range rule.BackendRefs {
			names = append(names, string(ref.Name))
		}
	}
	if diff := cmp.Diff([]string{siteName + "-stable", siteName + "-canary"}, names); diff != "" {
		s.t.Errorf("the Services that the route names in the middle of a release (-want +got):\n%s", diff)
	}
}
