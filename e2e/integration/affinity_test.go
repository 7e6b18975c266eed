// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// cookie is the sticky cookie of the Rollout's split, once a condition of it holds.
func (s *scene) cookie(what string, is func(*splitv1.StickyCookie) bool) (found splitv1.StickyCookie) {
	s.Helper()
	s.eventually(what, func(ctx context.Context) bool {
		ts := &splitv1.TrafficSplit{}
		if admin.Get(ctx, s.key("website"), ts) != nil {
			return false
		}
		routing, err := splitv1.RoutingOf(ts)
		if err != nil || routing.StickyCookie == nil || len(ts.Status.Backends) != 2 || ts.Status.Backends[1].Weight == 0 || !is(routing.StickyCookie) {
			return false
		}
		found = *routing.StickyCookie
		return true
	})
	return found
}

func TestClientsOfOneReleaseDoNotStayInTheNext(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ro := newRollout(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual})
	ro.Spec.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: "version", MaxAge: "2h"}
	s.create(deployment("website", 2), service("website"), ro)
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReady()
	s.setImage(imageV2)
	first := s.cookie("the first release has a cookie", func(c *splitv1.StickyCookie) bool { return c.Session != "" })
	if first.Name != "version" || first.MaxAge != "2h" {
		t.Errorf("the cookie is %+v", first)
	}
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	s.setImage("example.invalid/app:v3")
	s.cookie("the next release has another", func(c *splitv1.StickyCookie) bool { return c.Session != "" && c.Session != first.Session })
	s.waitReason(v1alpha1.ReasonWaitingForApproval)

	edit(s, "website", ro, func(ro *v1alpha1.Rollout) { ro.Spec.Router = v1alpha1.RouterNone })
	s.waitReason(v1alpha1.ReasonInvalidSpec)
}
