// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/judgement"
)

// byHand has a Rollout wait for a decision of its users.
const byHand = `{"spec":{"strategy":{"steps":[{"weight":20,"until":"Manual"}]}}}`

// TestRollout releases a website behind Serin's proxies, under a constant load: v2 is promoted, and v3
// is aborted. No request, probe or long answer is lost at any cut-over, each weight is the share that
// users see, and in the end the namespace is as before.
func TestRollout(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-rollout", "long")
		s.startWebsite("[{weight: 20, hold: 4s}]", "replicas: 3")
		// What measures may be another scenario's Prometheus, which does not know the website.
		s.kubectl("patch", "rollouts.serin.dev", siteName, "--type=merge", "-p", `{"spec":{"analysis":{"onInconclusive":"Promote"}}}`)
		s.follow(nil, v1alpha1.ReasonStable)
		shares := &shares{}

		s.setImage("v2", "v1")
		s.follow(shares, v1alpha1.ReasonStable)
		s.requireEndedPromoted()

		s.kubectl("patch", "rollouts.serin.dev", siteName, "--type=merge", "-p", byHand)
		s.setImage("v3", "v2")
		s.follow(nil, v1alpha1.ReasonWaitingForApproval)
		s.awaitWeight(20)
		s.measure("weight 20 of v3", map[string]float64{"v2": 0.8, "v3": 0.2})
		s.decide(v1alpha1.ControlAbort)
		s.follow(nil, v1alpha1.ReasonRolledBack)
		s.awaitConnections()
		s.measure("after the rollback", map[string]float64{"v2": 1})
		s.requireAsBefore(false)
		s.endLoad()
		s.addShares(shares, 20)
		s.judge()
	})
}

// setImage releases a version of the website beside the stable one, and returns when Serin has
// seen it.
func (s *site) setImage(version, stable string) {
	s.t.Helper()
	before := readyReason(s.rollout())
	s.canary, s.stable = version, stable
	s.kubectl("set", "image", "deployment/"+siteName, siteName+"=docker.io/serin-dev/demo-app:"+version)
	s.await("Serin to see "+version, func(ro *v1alpha1.Rollout) bool { return readyReason(ro) != before })
}

// follow measures the shares of the versions until the release is in a state.
func (s *site) follow(shares *shares, state v1alpha1.Reason) {
	s.t.Helper()
	s.await("the state "+state, func(ro *v1alpha1.Rollout) bool {
		if st := &ro.Status; shares != nil && st.Step != nil && st.Decision == nil {
			// That a weight is live is on record only later; that the step ended is at once.
			if w, live := s.window(); live && w.weight == st.Step.Weight {
				shares.add(w, s.loadReport)
			}
		}
		return readyReason(ro) == state
	})
}

// decide decides about the release, as a user would.
func (s *site) decide(action v1alpha1.ControlAction) {
	s.t.Helper()
	ro := s.rollout()
	patch := fmt.Appendf(nil, `{"spec":{"control":{"revision":%q,"action":%q}}}`, ro.Status.Canary.Revision, action)
	if err := s.api.Patch(s.t.Context(), ro, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) await(what string, done func(*v1alpha1.Rollout) bool) {
	s.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) {
		ro := s.rollout()
		// With the time, by which failures of the load can be told what they belong to.
		if message := readyMessage(ro); message != last {
			last = message
			s.t.Log(time.Now().UTC().Format(timeOfDay), last)
		}
		return done(ro), nil
	})
	if err != nil {
		s.t.Fatalf("wait for %s: %v; the Rollout says: %s", what, err, last)
	}
}

func (s *site) rollout() *v1alpha1.Rollout {
	s.t.Helper()
	ro := &v1alpha1.Rollout{}
	s.get(siteName, ro)
	return ro
}

func readyReason(ro *v1alpha1.Rollout) string {
	if c := apimeta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.ObservedGeneration == ro.Generation {
		return c.Reason
	}
	return ""
}

func readyMessage(ro *v1alpha1.Rollout) string {
	if c := apimeta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// routeText is what users wrote of a route, as text.
type routeText struct{ Labels, Annotations, Spec string }

func (s *site) route() routeText {
	s.t.Helper()
	route := s.httpRoute()
	text := func(part any) string {
		content, err := yaml.Marshal(part)
		if err != nil {
			s.t.Fatal(err)
		}
		return string(content)
	}
	return routeText{Labels: text(route.Labels), Annotations: text(route.Annotations), Spec: text(route.Spec)}
}

func (s *site) httpRoute() *gatewayv1.HTTPRoute {
	s.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	s.get(siteName, route)
	return route
}

// window is the traffic of a time in which one weight was programmed all along.
type window struct {
	canary, stable string
	// weight of the canary in percent, and the generation of the split that has it.
	weight      int32
	generation  int64
	first, last generator.Report
	// unproven is the latest report; whether the weight was still programmed at its
	// time, the next look tells.
	unproven *generator.Report
}

// window begins one with the weight that the TrafficSplit says is live, if it says so.
func (s *site) window() (w window, live bool) {
	s.t.Helper()
	split := &splitv1.TrafficSplit{}
	err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: siteName}, split)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
		return window{}, false
	}
	c := splitv1.CurrentCondition(split, splitv1.ConditionProgrammed)
	i := slices.IndexFunc(split.Status.Backends, func(b splitv1.BackendStatus) bool { return b.Service == siteName+"-canary" })
	if c == nil || c.Status != metav1.ConditionTrue || i < 0 {
		return window{}, false
	}
	return window{canary: s.canary, stable: s.stable, weight: split.Status.Backends[i].Weight, generation: split.Generation}, true
}

// shares are the windows of a scenario.
type shares struct{ windows []window }

// add looks at the traffic. The status has been read before: a report counts only
// when the status before it and the one after it say the same.
func (s *shares) add(next window, report func() generator.Report) {
	now := report()
	if len(s.windows) > 0 {
		w := &s.windows[len(s.windows)-1]
		if w.canary == next.canary && w.weight == next.weight && w.generation == next.generation {
			w.last, w.unproven = *w.unproven, &now
			return
		}
	}
	if now.Proxied < enoughProxied {
		return // connections lead past what has the weight
	}
	next.first, next.last, next.unproven = now, now, &now
	s.windows = append(s.windows, next)
}

// addShares has the windows judged, and fails the attempt when one of the weights was not
// measured.
func (s *site) addShares(list *shares, weights ...int32) {
	s.t.Helper()
	measured := map[int32]bool{}
	for _, w := range list.windows {
		share := float64(w.weight) / 100
		what := fmt.Sprintf("weight %d of %s", w.weight, w.canary)
		span := judgement.NewSpan(what, map[string]float64{w.canary: share, w.stable: 1 - share}, w.first, w.last)
		if span.All() < sizes().some {
			continue
		}
		measured[w.weight] = true
		s.record.Spans = append(s.record.Spans, span)
	}
	for _, weight := range weights {
		if !measured[weight] {
			s.t.Errorf("weight %d was not programmed for %d requests", weight, sizes().some)
		}
	}
}
