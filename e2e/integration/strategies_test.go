// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// edit changes the Rollout as kubectl apply does.
func (s *scene) edit(change func(*v1alpha1.RolloutSpec)) {
	s.Helper()
	ro := s.rollout()
	next := ro.DeepCopy()
	change(&next.Spec)
	if err := admin.Patch(s.Context(), next, client.MergeFrom(ro)); err != nil {
		s.Fatal(err)
	}
}

// decide is what a person decides about the revision that is being released.
func (s *scene) decide(action v1alpha1.ControlAction) {
	s.Helper()
	s.edit(func(spec *v1alpha1.RolloutSpec) {
		spec.Control = &v1alpha1.Control{Revision: s.rollout().Status.Canary.Revision, Action: action}
	})
}

// under brings a website up under a Rollout of the given strategy.
func under(t *testing.T, m *measurements, change func(*v1alpha1.RolloutSpec)) *scene {
	t.Helper()
	s := newScene(t)
	ro := newRollout()
	change(&ro.Spec)
	s.create(deployment("website", 4), service("website"), ro)
	s.serveProxies()
	s.startOperator(m)
	s.waitReady()
	return s
}

func TestSharesOfReplicasPutNothingInThePath(t *testing.T) {
	t.Parallel()
	s := under(t, newMeasurements(), func(spec *v1alpha1.RolloutSpec) {
		spec.Router = v1alpha1.RouterNone
		spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Until: v1alpha1.UntilManual}, {Weight: 50}}
	})
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	if pods := s.pods(); len(pods[imageV2]) != 1 || len(pods[imageV1]) != 4 {
		t.Errorf("pods %v, want 1 of the canary beside 4", pods)
	}
	if w := s.rollout().Status.Weight; w == nil || w.Observed == nil || *w.Observed != 20 {
		t.Errorf("weight %+v, want 20 observed: 1 of 5 pods", w)
	}
	canary := s.pods()[imageV2]
	s.decide(v1alpha1.ControlPromote)
	s.waitReady()
	if pods := s.pods(); len(pods[imageV1]) != 0 || len(pods[imageV2]) != 4 || !slices.Contains(pods[imageV2], canary[0]) {
		t.Errorf("pods %v, want 4 of v2 with %s among them", pods, canary[0])
	}
	splits, services := &splitv1.TrafficSplitList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{splits, services} {
		if err := admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	if len(splits.Items) != 0 || len(services.Items) != 1 {
		t.Errorf("%d splits and %d Services, want none and the root", len(splits.Items), len(services.Items))
	}
}

func TestBlueGreenKeepsTheOldVersionUntilTheNewOneHasProvedItself(t *testing.T) {
	t.Parallel()
	s := under(t, newMeasurements(), func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, ScaleDownDelay: "1s"}}
	})
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	if pods := s.pods(); len(pods[imageV2]) != 4 || len(pods[imageV1]) != 4 {
		t.Errorf("pods %v, want 4 of both", pods)
	}
	if w := s.rollout().Status.Weight; w == nil || w.Requested != 0 {
		t.Errorf("weight %+v before the switch", w)
	}
	green := s.pods()[imageV2]
	s.decide(v1alpha1.ControlPromote)
	s.waitReady()
	if diff := cmp.Diff(map[string][]string{imageV2: green}, s.pods()); diff != "" {
		t.Errorf("the pods are not those of the preview (-preview +now):\n%s", diff)
	}
	s.checkGivenBack()
}

func TestThePreviewServiceLeadsToTheNewVersionWhileItIsTried(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ro, preview := newRollout(), service("website")
	preview.Name = "website-preview"
	declared := preview.Spec.Selector
	ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{PreviewService: preview.Name, Until: v1alpha1.UntilManual, ScaleDownDelay: "1s"}}
	s.create(deployment("website", 2), service("website"), preview, ro)
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReady()
	selector := func() map[string]string {
		live := &corev1.Service{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: preview.Name}, live); err != nil {
			t.Fatal(err)
		}
		return live.Spec.Selector
	}
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	if got, want := selector()["pod-template-hash"], s.rollout().Status.Canary.Revision; got != want {
		t.Errorf("while it is tried, it selects %q, want %q", got, want)
	}
	s.decide(v1alpha1.ControlPromote)
	s.waitReady()
	if diff := cmp.Diff(declared, selector()); diff != "" {
		t.Errorf("the selector is not what its owner declared (-declared +now):\n%s", diff)
	}
}

func TestTrafficMovesBetweenTwoServicesThatPeopleKeep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	blue, green := deployment("website", 2), deployment("next", 2)
	blue.Spec.Template.Labels["version"], green.Spec.Template.Labels["version"] = "v1", "v2"
	green.Spec.Template.Labels["app"], green.Spec.Selector.MatchLabels = "website", map[string]string{"version": "v2"}
	blue.Spec.Selector.MatchLabels = map[string]string{"version": "v1"}
	one, two := service("website"), service("website")
	one.Name, two.Name = "website-v1", "website-v2"
	one.Spec.Selector, two.Spec.Selector = map[string]string{"app": "website", "version": "v1"}, map[string]string{"app": "website", "version": "v2"}
	ro := newRollout()
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{}
	ro.Spec.Services = &v1alpha1.ServicePair{Stable: "website-v1", Canary: "website-v2"}
	s.create(blue, service("website"), one, two, ro)
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReason(v1alpha1.ReasonStable)
	s.create(green)
	s.eventually("all traffic on the second Service", func(context.Context) bool {
		st := s.rollout().Status
		return st.Stable != nil && st.Stable.Service == "website-v2"
	})
	s.waitReason(v1alpha1.ReasonStable)
	if h := s.rollout().Status.History; len(h) != 1 || h[0].Outcome != v1alpha1.OutcomePromoted {
		t.Errorf("history %+v", h)
	}
	if w := s.rollout().Status.Weight; w == nil || w.Observed == nil || *w.Observed != 100 {
		t.Errorf("weight %+v, want 100: the split stays", w)
	}
}

func TestAPersonAbortsAndRetries(t *testing.T) {
	t.Parallel()
	s := under(t, newMeasurements(), func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Until: v1alpha1.UntilManual}}
	})
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	s.decide(v1alpha1.ControlAbort)
	s.waitReason(v1alpha1.ReasonRolledBack)
	s.checkGivenBack()
	s.decide(v1alpha1.ControlRetry)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	s.decide(v1alpha1.ControlPromoteFull)
	s.waitReady()
	h := s.rollout().Status.History
	if len(h) < 2 || h[0].Outcome != v1alpha1.OutcomePromoted || h[1].Outcome != v1alpha1.OutcomeRolledBack {
		t.Fatalf("history %+v", h)
	}
	if i := h[0].Interventions; len(i) != 2 || i[0].Action != v1alpha1.ControlRetry || i[1].Action != v1alpha1.ControlPromoteFull {
		t.Errorf("interventions %+v", i)
	}
	if i := h[1].Interventions; len(i) != 1 || i[0].Action != v1alpha1.ControlAbort {
		t.Errorf("interventions %+v", i)
	}
}

func TestAFreezeOfThePlatformHoldsAReleaseAndNotARollback(t *testing.T) {
	t.Parallel()
	m := newMeasurements()
	s := under(t, m, func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Until: v1alpha1.UntilManual}, {Weight: 60}}
	})
	freeze := &v1alpha1.Freeze{}
	freeze.GenerateName = "audit-"
	freeze.Spec.Reason = "audit"
	freeze.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	if err := admin.Create(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForSchedule)
	if pods := s.pods(); len(pods[imageV2]) != 0 {
		t.Errorf("pods %v in a freeze", pods)
	}
	if err := admin.Delete(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	again := freeze.DeepCopy()
	again.ResourceVersion, again.UID = "", ""
	if err := admin.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), again); err != nil {
			t.Error(err)
		}
	})
	s.decide(v1alpha1.ControlPromote)
	s.waitReason(v1alpha1.ReasonWaitingForSchedule)
	s.decide(v1alpha1.ControlAbort)
	s.waitReason(v1alpha1.ReasonRolledBack)
}

func TestPeopleWhoMatchMeetTheCanaryFirstAndCopiesBeforeThem(t *testing.T) {
	t.Parallel()
	s := under(t, newMeasurements(), func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy.Steps = []v1alpha1.Step{
			{Weight: 100, Matches: []string{"testers"}, Mirror: new(int32(10)), Until: v1alpha1.UntilManual}, {Weight: 20, Until: v1alpha1.UntilManual},
		}
	})
	testers := &specsv1.HTTPRouteGroup{}
	testers.Name = "testers"
	testers.Spec.Matches = []specsv1.HTTPMatch{{Name: "beta", Headers: specsv1.Headers{Items: []specsv1.Header{{Name: "x-beta", Regex: "yes"}}}}}
	s.create(testers)
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	ts := &splitv1.TrafficSplit{}
	if err := admin.Get(t.Context(), s.key("website"), ts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]splitv1.Match{{Kind: "HTTPRouteGroup", Name: "testers"}}, ts.Spec.Matches); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	if m := ts.Status.Mirror; m == nil || m.Service != "website-canary" || m.Percent != 10 {
		t.Errorf("mirror %+v in effect", m)
	}
	if got := traffic.DefaultBackend(ts); got != "website-stable" {
		t.Errorf("requests that match none go to %q", got)
	}
	s.decide(v1alpha1.ControlPromote)
	s.eventually("all requests are split", func(ctx context.Context) bool {
		err := admin.Get(ctx, s.key("website"), ts)
		step := s.rollout().Status.Step
		return err == nil && len(ts.Spec.Matches) == 0 && ts.Status.Mirror == nil && step != nil && step.Index == 1 && step.ProgrammedAt != nil
	})
	s.decide(v1alpha1.ControlPromoteFull)
	s.waitReady()
	s.checkGivenBack()
}
