// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// totalWeight is the sum of the weights that Serin writes: they are percentages.
const totalWeight = 100

// matchKind is the only kind that a TrafficSplit can match by.
const matchKind = "HTTPRouteGroup"

// backendNames are the Services of stable and canary. A Service that is stable by the
// record stays so when the spec names two others.
func backendNames(ro *v1alpha1.Rollout) (stable, canary string) {
	if pair := ro.Spec.Services; pair != nil {
		if s := ro.Status.Stable; s != nil && s.Service != "" && s.Service != pair.Stable && s.Service != pair.Canary {
			return s.Service, pair.Canary
		}
		return pair.Stable, pair.Canary
	}
	return workload.BackendName(ro.Spec.Service, v1alpha1.RoleStable), workload.BackendName(ro.Spec.Service, v1alpha1.RoleCanary)
}

// unknownRoute is what a split says that is not what Serin writes: another actor's
// edit is drift, whatever it says.
var unknownRoute = strategy.Route{Weight: -1}

// requestedRoute is what the split sends to the canary; unknownRoute when it says anything
// that Serin would not write.
func requestedRoute(ts *splitv1.TrafficSplit, s *snapshot, stable, canary string) strategy.Route {
	routing, err := splitv1.RoutingOf(ts)
	if err != nil || ts.Spec.Service != s.Rollout.Spec.Service {
		return unknownRoute
	}
	weights := map[string]int32{}
	for _, b := range ts.Spec.Backends {
		weights[b.Service] = b.Weight
	}
	route := strategy.Route{Weight: canaryWeight(weights, stable, canary)}
	for _, m := range ts.Spec.Matches {
		if m.Kind != matchKind {
			return unknownRoute
		}
		route.Matches = append(route.Matches, m.Name)
	}
	slices.Sort(route.Matches)
	if routing.Mirror != nil {
		route.Mirror = routing.Mirror.Percent
	}
	if sticky := routing.StickyCookie; sticky != nil {
		sticky.Session = s.session() // the next write of a weight brings it up to date
	}
	if !apiequality.Semantic.DeepEqual(routing, s.routing(route)) {
		return unknownRoute
	}
	return route
}

// routing is what a split has to say of a route beyond the specification.
func (s *snapshot) routing(route strategy.Route) splitv1.Routing {
	r := splitv1.Routing{Router: string(s.splitRouter()), DefaultBackend: defaultBackend(s.Rollout, route), ProxyPods: s.proxyPods()}
	for _, ref := range s.Rollout.Spec.RouteRefs {
		r.Routes = append(r.Routes, splitv1.RouteReference{Kind: string(ref.Kind), Name: ref.Name, Section: ref.Section})
	}
	if affinity := s.Rollout.Spec.SessionAffinity; affinity != nil {
		r.StickyCookie = &splitv1.StickyCookie{Name: affinity.CookieName, MaxAge: string(affinity.MaxAge), Session: s.session()}
	}
	if route.Mirror > 0 {
		_, canary := backendNames(s.Rollout)
		r.Mirror = &splitv1.Mirror{Service: canary, Percent: route.Mirror}
	}
	return r
}

// proxyPods is how the proxies run: as the spec says or, where that can't be, as they do. The router
// confirms no weight of a split that it refuses, not even that of a rollback.
func (s *snapshot) proxyPods() *splitv1.ProxyPods {
	if s.ProxyPodsProblem == "" {
		return s.Rollout.Spec.ProxyPods
	}
	if s.split == nil {
		return nil
	}
	routing, _ := splitv1.RoutingOf(s.split)
	return routing.ProxyPods
}

// proxyPodsProblem says why proxies can't run as the spec wants; "" when they can, and where there
// are none. The schema did not check it.
func (s *snapshot) proxyPodsProblem() string {
	err := s.Rollout.Spec.ProxyPods.Check()
	if err == nil || s.splitRouter() != v1alpha1.RouterNginx {
		return ""
	}
	return err.Error()
}

// session names the release whose cookies count, so that a client of one release does not stay
// with the canary of the next, whose Service has the same name. While none is in progress, it is
// the one that the split has.
func (s *snapshot) session() string {
	if c := s.Rollout.Status.Canary; c != nil && c.StartedAt != nil {
		return c.Revision + "-" + strconv.FormatInt(c.StartedAt.Unix(), 36)
	}
	if s.split == nil {
		return ""
	}
	routing, _ := splitv1.RoutingOf(s.split)
	if routing.StickyCookie == nil {
		return ""
	}
	return routing.StickyCookie.Session
}

// defaultBackend is the Service that gets the requests that are not split: those that
// match nothing, and those that reach the root Service past a gateway or mesh. With all
// traffic on the canary it is the canary, since stable is about to lose its pods. Of two
// Services that users keep, it is not known whether they share the root Service.
func defaultBackend(ro *v1alpha1.Rollout, route strategy.Route) string {
	stable, canary := backendNames(ro)
	switch {
	case len(route.Matches) > 0:
		return stable
	case ro.Spec.Services != nil:
		return ""
	case route.Weight == totalWeight:
		return canary
	}
	return stable
}

// splitRouter is the router that the split names: the one of the spec. Where that
// can serve no split, one that is there keeps its own, which restores the traffic.
func (s *snapshot) splitRouter() v1alpha1.RouterName {
	if s.split == nil || s.RouterOffered && !strategy.ByReplicas(&s.Rollout.Spec, s.RouterName) {
		return s.RouterName
	}
	return v1alpha1.RouterName(traffic.RouterName(s.split, string(s.RouterName)))
}

// routerless reports whether no router counts the requests: none is wanted, and no split is
// there that another one serves.
func (s *snapshot) routerless() bool {
	return s.RouterName == v1alpha1.RouterNone && (s.split == nil || traffic.RouterName(s.split, string(s.RouterName)) == string(v1alpha1.RouterNone))
}

// setSplit makes a TrafficSplit what it has to be for a route, whatever other actors
// made of it meanwhile.
func setSplit(ts *splitv1.TrafficSplit, s snapshot, route strategy.Route) {
	stable, canary := backendNames(s.Rollout)
	workload.Mark(ts, s.Rollout)
	splitv1.SetRouting(ts, s.routing(route))
	ts.Spec = splitv1.TrafficSplitSpec{
		Service:  s.Rollout.Spec.Service,
		Backends: []splitv1.Backend{{Service: stable, Weight: totalWeight - route.Weight}, {Service: canary, Weight: route.Weight}},
	}
	for _, name := range route.Matches {
		ts.Spec.Matches = append(ts.Spec.Matches, splitv1.Match{Kind: matchKind, Name: name})
	}
}

// observedWeight is the canary's live weight, or -1 when it is unknown.
func observedWeight(backends []splitv1.BackendStatus, stable, canary string) int32 {
	weights := map[string]int32{}
	for _, b := range backends {
		if slices.ContainsFunc(b.Ports, func(p splitv1.PortStatus) bool { return p.Weight != b.Weight }) {
			return -1 // ports differ, by another actor's edit that is still live
		}
		weights[b.Service] = b.Weight
	}
	return canaryWeight(weights, stable, canary)
}

func canaryWeight(weights map[string]int32, stable, canary string) int32 {
	w, found := weights[canary]
	if !found || len(weights) != 2 || w < 0 || w > totalWeight || weights[stable] != totalWeight-w {
		return -1
	}
	return w
}

// mirrored is the percentage of mirrored requests that the router reports.
func mirrored(ts *splitv1.TrafficSplit) int32 {
	if ts.Status.Mirror == nil {
		return 0
	}
	return ts.Status.Mirror.Percent
}

// unresolved says what the split refers to that does not exist; "" when all does.
func unresolved(ts *splitv1.TrafficSplit) string {
	if c := splitv1.CurrentCondition(ts, splitv1.ConditionResolvedRefs); c != nil && c.Status == metav1.ConditionFalse {
		return c.Message
	}
	return ""
}
