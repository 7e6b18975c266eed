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

// TestGateway releases a website behind a gateway that is not Serin's, under a constant load
// through the gateway: v2 is promoted, and v3 is aborted. Nothing is lost, each weight is the share
// that users see, and in the end the route is what its users wrote.
func TestGateway(t *testing.T) {
	play(t, func(a *attempt) {
		s := newGatewaySite(a, "serin-gateway", gateway.Host)
		written := s.route()
		shares := &shares{}

		s.setImage("v2", "v1")
		s.follow(shares, v1alpha1.ReasonStable)
		s.requireRoute(written)

		s.kubectl("patch", "rollout", siteName, "--type=merge", "-p", byHand)
		s.setImage("v3", "v2")
		s.follow(shares, v1alpha1.ReasonWaitingForApproval)
		s.requireShared()
		s.decide(v1alpha1.ControlAbort)
		s.follow(shares, v1alpha1.ReasonRolledBack)
		s.requireRoute(written)
		s.requireAsBefore(false)
		s.endLoad()
		s.addShares(shares, 20)
		s.judge()
	})
}

// TestGatewayMetrics rolls back a version behind the gateway, which fails one answer in twenty. Serin
// learns of that from the API of TrafficMetrics alone, which asks a Prometheus that reads the gateway.
// Nothing is lost but what that version fails.
func TestGatewayMetrics(t *testing.T) {
	play(t, func(a *attempt) {
		s := newGatewaySite(a, "serin-gateway-metrics", gateway.LongHost)
		written := s.route()
		s.requireRolledBackByEvidence()
		s.requireRoute(written)
		s.requireAsBefore(false)
		s.endLoad()
		s.judge()
	})
}

// newGatewaySite has v1 stable behind the gateway at a host of its own, under a load.
func newGatewaySite(a *attempt, namespace, host string) *site {
	a.Helper()
	s := newSite(a, namespace, "gateway")
	s.apply("gateway/website.yaml", "${HOST}", host)
	s.waitAvailable(siteName)
	s.record.PodsStay = true // those of the gateway
	s.startLoad("http://" + host)
	s.applyOwn("rollout.yaml")
	s.follow(nil, v1alpha1.ReasonStable)
	s.begin()
	return s
}

// requireRolledBackByEvidence releases the version that fails.
func (s *site) requireRolledBackByEvidence() {
	s.t.Helper()
	s.storeMetrics("traefik", 8080, client.InNamespace(gateway.Namespace), client.MatchingLabels{"app": gateway.Name})
	s.record.Bad = "v2"
	s.kubectl("patch", "rollout", siteName, "--type=merge", "-p", `{"spec":{"strategy":{"steps":[{"weight":20,"hold":"5m"}]}}}`)
	s.kubectl("patch", "deployment", siteName, "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"website","image":"docker.io/serin-dev/demo-app:v2","env":[{"name":"FAIL_PERCENT","value":"5"}]}]}}}}`)
	s.await("the release of v2", func(ro *v1alpha1.Rollout) bool {
		return ro.Status.Weight != nil && ro.Status.Weight.Observed != nil && *ro.Status.Weight.Observed == 20
	})
	s.follow(nil, v1alpha1.ReasonRolledBack)
	ended := s.rollout().Status.History[0]
	s.t.Logf("v2 was rolled back: %s", ended.Message)
	if ended.Outcome != v1alpha1.OutcomeRolledBack || !strings.Contains(ended.Message, "more often than stable") {
		s.t.Errorf("the release of v2 ended otherwise: %+v", ended)
	}
}

// requireRoute compares the route with what its users wrote.
func (s *site) requireRoute(written routeText) {
	s.t.Helper()
	if diff := cmp.Diff(written, s.route()); diff != "" {
		s.t.Errorf("the route of the website (-written +now):\n%s", diff)
	}
}

// requireShared fails the test when the route does not share the requests while a
// release is in progress: the rest would show nothing.
func (s *site) requireShared() {
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
