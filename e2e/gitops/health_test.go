// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	healthy     = "Healthy"
	progressing = "Progressing"
	suspended   = "Suspended"
	degraded    = "Degraded"
	// elsewhere marks a reason that the condition Ready never has.
	elsewhere = ""
)

// rolloutHealth is the health of a Rollout or CanaryRelease by the reason of Ready. Two
// reasons go by more than themselves: where a user is needed, the condition Stalled says so.
var rolloutHealth = map[v1alpha1.Reason][]string{
	v1alpha1.ReasonStable:                   {healthy},
	v1alpha1.ReasonDeploying:                {progressing},
	v1alpha1.ReasonPreparing:                {progressing},
	v1alpha1.ReasonWaitingForPods:           {progressing},
	v1alpha1.ReasonWaitingForTraffic:        {progressing},
	v1alpha1.ReasonHolding:                  {progressing, suspended}, // suspended with spec.paused
	v1alpha1.ReasonWaitingForEvidence:       {progressing},
	v1alpha1.ReasonWaitingForApproval:       {suspended},
	v1alpha1.ReasonWaitingForSchedule:       {suspended},
	v1alpha1.ReasonWaitingForHook:           {progressing},
	v1alpha1.ReasonAnalysisFailed:           {degraded},
	v1alpha1.ReasonPaused:                   {suspended},
	v1alpha1.ReasonPromoting:                {progressing},
	v1alpha1.ReasonRollingBack:              {progressing},
	v1alpha1.ReasonRolledBack:               {degraded},
	v1alpha1.ReasonSuperseded:               {progressing},
	v1alpha1.ReasonCleaningUp:               {progressing},
	v1alpha1.ReasonDeleting:                 {progressing},
	v1alpha1.ReasonWorkloadNotFound:         {degraded},
	v1alpha1.ReasonServiceNotFound:          {degraded},
	v1alpha1.ReasonInvalidService:           {degraded},
	v1alpha1.ReasonInvalidSpec:              {degraded},
	v1alpha1.ReasonConfigurationUnavailable: {degraded},
	v1alpha1.ReasonConfigurationChanged:     {progressing},
	v1alpha1.ReasonConflict:                 {degraded},
	v1alpha1.ReasonRouterUnavailable:        {degraded},
	v1alpha1.ReasonUnguardedChange:          {progressing},
	v1alpha1.ReasonStableLost:               {degraded},
	v1alpha1.ReasonObservationFailed:        {progressing},

	v1alpha1.ReasonServing:       {healthy},
	v1alpha1.ReasonAdopting:      {progressing},
	v1alpha1.ReasonAdopted:       {healthy},
	v1alpha1.ReasonDeprecating:   {progressing, degraded},
	v1alpha1.ReasonDeprecated:    {healthy, degraded}, // healthy where a user wanted that
	v1alpha1.ReasonRefused:       {progressing, degraded},
	v1alpha1.ReasonUpgradeFailed: {progressing, degraded},

	v1alpha1.ReasonAborted:                  {elsewhere},
	v1alpha1.ReasonHookRefused:              {elsewhere},
	v1alpha1.ReasonHookTimedOut:             {elsewhere},
	v1alpha1.ReasonControlIgnored:           {elsewhere},
	v1alpha1.ReasonRouterRefused:            {elsewhere},
	v1alpha1.ReasonProgressDeadlineExceeded: {elsewhere},
	v1alpha1.ReasonCanaryUnavailable:        {elsewhere},
	v1alpha1.ReasonProgrammed:               {elsewhere},
	v1alpha1.ReasonNoTrafficSplit:           {elsewhere},
	v1alpha1.ReasonNotMeasured:              {elsewhere},
	v1alpha1.ReasonNoRelease:                {elsewhere},
	v1alpha1.ReasonNothingPauses:            {elsewhere},
	v1alpha1.ReasonRequested:                {elsewhere},
	v1alpha1.ReasonActive:                   {elsewhere}, // of a Freeze
	v1alpha1.ReasonScheduled:                {elsewhere},
	v1alpha1.ReasonEnded:                    {elsewhere},

	// Of a CanaryRelease that ends because of them.
	v1alpha1.ReasonReleaseNotFound:    {degraded},
	v1alpha1.ReasonReleaseNotDeployed: {degraded},
	v1alpha1.ReasonReleaseChanged:     {degraded},
	v1alpha1.ReasonWorkloadChanged:    {degraded},
}

// splitHealth is the health of a TrafficSplit by the reason of the condition that is not True.
var splitHealth = map[string]string{
	splitv1.ReasonAccepted:           healthy,
	splitv1.ReasonResolved:           healthy,
	splitv1.ReasonProgrammed:         healthy,
	splitv1.ReasonUnsupported:        degraded,
	splitv1.ReasonUnknownRouter:      degraded,
	splitv1.ReasonConflict:           degraded,
	splitv1.ReasonInvalid:            degraded,
	splitv1.ReasonCircular:           degraded,
	splitv1.ReasonServiceNotFound:    degraded,
	splitv1.ReasonBackendNotFound:    degraded,
	splitv1.ReasonGroupNotFound:      degraded,
	splitv1.ReasonBackendUnsupported: degraded,
	splitv1.ReasonPortMismatch:       degraded,
	splitv1.ReasonRouteRefused:       degraded,
	splitv1.ReasonProxyError:         degraded,
	splitv1.ReasonWaitingForProxies:  progressing,
	splitv1.ReasonWaitingForRoutes:   progressing,
	splitv1.ReasonSettling:           progressing,
	splitv1.ReasonWaitingForService:  progressing,
	splitv1.ReasonPending:            progressing,
	// Of the distribution of the traffic, which health does not go by.
	splitv1.ReasonOverridden:   elsewhere,
	splitv1.ReasonUnknownValue: elsewhere,
	splitv1.ReasonNoEndpoints:  elsewhere,
	splitv1.ReasonHintsMissing: elsewhere,
	splitv1.ReasonZonesDiffer:  elsewhere,
}

// fluxStatus is what Flux has to make of an object with a health.
var fluxStatus = map[string]string{healthy: "Current", progressing: "InProgress", suspended: "InProgress", degraded: "Failed"}

func TestEveryReasonHasAHealth(t *testing.T) {
	for _, reason := range reasons(t, "api/v1alpha1") {
		if rolloutHealth[reason] == nil {
			t.Errorf("the reason %s of serin.dev has no health: say which in rolloutHealth, and see that config/gitops/argocd-cm.yaml agrees", reason)
		}
	}
	for _, reason := range reasons(t, "api/split/v1alpha4") {
		if _, found := splitHealth[reason]; !found {
			t.Errorf("the reason %s of TrafficSplits has no health: say which in splitHealth, and see that config/gitops/argocd-cm.yaml agrees", reason)
		}
	}
}

func TestReleasesHaveTheHealthOfTheirReason(t *testing.T) {
	argo, flux := readSettings(t, "argocd-cm.yaml"), readChecks(t)
	reached := map[string]bool{}
	for _, s := range append(recorded(t, "controllers/release"), recorded(t, "controllers/release/helmrelease")...) {
		t.Run(s.object.GetKind()+" "+s.name, func(t *testing.T) {
			ready := conditionOf(s.object, v1alpha1.ConditionReady)
			reason, h := ready["reason"].(string), argo.health(t, s.object)
			if !slices.Contains(rolloutHealth[reason], h.Status) {
				t.Errorf("health %s, want one of %q", h.Status, rolloutHealth[reason])
			}
			if h.Status == healthy != (ready["status"] == "True") {
				t.Errorf("health %s with Ready=%s", h.Status, ready["status"])
			}
			if stalled := conditionOf(s.object, v1alpha1.ConditionStalled)["status"] == "True"; stalled != (h.Status == degraded) {
				t.Errorf("health %s with Stalled=%t", h.Status, stalled)
			}
			if h.Message != ready["message"] {
				t.Errorf("message %q, and the condition says %q", h.Message, ready["message"])
			}
			if got := flux.status(t, s.object); got != fluxStatus[h.Status] {
				t.Errorf("Flux says %s, and Argo CD %s", got, h.Status)
			}
			reached[reason+h.Status] = true
		})
	}
	for reason, allowed := range rolloutHealth {
		for _, status := range allowed {
			if status != elsewhere && !reached[reason+status] && !slices.Contains(unrecorded, reason) {
				t.Errorf("no recorded object is %s with the reason %s", status, reason)
			}
		}
	}
}

// unrecorded are reasons that the planners' scenarios do not end a look with.
var unrecorded = []v1alpha1.Reason{
	v1alpha1.ReasonReleaseNotFound, v1alpha1.ReasonReleaseNotDeployed, v1alpha1.ReasonReleaseChanged, v1alpha1.ReasonWorkloadChanged,
}

func TestTrafficSplitsHaveTheHealthOfTheirReason(t *testing.T) {
	argo, flux := readSettings(t, "argocd-cm.yaml"), readChecks(t)
	for _, s := range recordedSplits(t) {
		t.Run(s.name, func(t *testing.T) {
			want := healthy
			for _, kind := range []string{splitv1.ConditionProgrammed, splitv1.ConditionResolvedRefs, splitv1.ConditionAccepted} {
				c := conditionOf(s.object, kind)
				switch {
				case c["observedGeneration"] != s.object.GetGeneration():
					want = progressing
				case c["status"] != "True" && want != degraded:
					want = splitHealth[c["reason"].(string)]
				}
			}
			h := argo.health(t, s.object)
			if h.Status != want || h.Message == "" {
				t.Errorf("health %q, want %s", h, want)
			}
			if got := flux.status(t, s.object); got != fluxStatus[want] {
				t.Errorf("Flux says %s, and Argo CD %s", got, want)
			}
		})
	}
	for reason, want := range splitHealth {
		kind := splitv1.ConditionProgrammed
		switch {
		case want == healthy || want == elsewhere:
			continue
		case strings.HasSuffix(reason, "NotFound") || reason == splitv1.ReasonPortMismatch:
			kind = splitv1.ConditionResolvedRefs
		case want == degraded && reason != splitv1.ReasonRouteRefused && reason != splitv1.ReasonProxyError:
			kind = splitv1.ConditionAccepted
		}
		t.Run("only "+reason, func(t *testing.T) {
			split := withConditions(object(t, newSplit()), map[string]any{
				"type": kind, "status": "False", "reason": reason, "message": "why", "observedGeneration": int64(1),
			})
			if h := argo.health(t, split); h != (health{want, "why"}) {
				t.Errorf("health %q, want %s", h, want)
			}
			if got := flux.status(t, split); got != fluxStatus[want] {
				t.Errorf("Flux says %s, want %s", got, fluxStatus[want])
			}
		})
	}
}

// withConditions is an object of generation 1 that has conditions.
func withConditions(o *unstructured.Unstructured, conditions ...any) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetGeneration(1)
	o.Object["status"] = map[string]any{"conditions": conditions}
	return o
}

func TestFreezesAreHealthyUnlessTheyCantBeRead(t *testing.T) {
	argo, flux := readSettings(t, "argocd-cm.yaml"), readChecks(t)
	for _, s := range freezes(t) {
		want := healthy
		if s.name == v1alpha1.ReasonInvalidSpec {
			want = degraded
		}
		if h := argo.health(t, s.object); h.Status != want || h.Message != conditionOf(s.object, v1alpha1.ConditionInForce)["message"] {
			t.Errorf("%s: health %q, want %s", s.name, h, want)
		}
		if got := flux.status(t, s.object); got != fluxStatus[want] {
			t.Errorf("%s: Flux says %s", s.name, got)
		}
	}
}

// TestWhatWasNotLookedAtIsInProgress: a status of the generation before is no answer.
func TestWhatWasNotLookedAtIsInProgress(t *testing.T) {
	argo, flux := readSettings(t, "argocd-cm.yaml"), readChecks(t)
	all := slices.Concat(recorded(t, "controllers/release"), recorded(t, "controllers/release/helmrelease"), recordedSplits(t), freezes(t))
	for _, s := range all {
		o := s.object.DeepCopy()
		o.SetGeneration(o.GetGeneration() + 1)
		if h := argo.health(t, o); h.Status != progressing || h.Message == "" {
			t.Errorf("%s %s of the generation before: health %q", o.GetKind(), s.name, h)
		}
		if got := flux.status(t, o); got != "InProgress" {
			t.Errorf("%s %s of the generation before: Flux says %s", o.GetKind(), s.name, got)
		}
		delete(o.Object, "status")
		if h := argo.health(t, o); h.Status != progressing {
			t.Errorf("%s %s without a status: health %q", o.GetKind(), s.name, h)
		}
	}
}

func TestAnAnalysisResultIsDegradedWhenAMetricCantBeMeasured(t *testing.T) {
	argo := readSettings(t, "argocd-cm.yaml")
	for message, want := range map[string]string{"": healthy, "the template errors does not exist": degraded} {
		o := object(t, &v1alpha1.AnalysisResult{Status: v1alpha1.AnalysisResultStatus{Message: message}})
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AnalysisResult"))
		if h := argo.health(t, o); h != (health{want, message}) {
			t.Errorf("%q: health %q", message, h)
		}
	}
}

// deployments are Deployments by what Argo CD has to make of them.
var deployments = map[string]struct {
	annotated, paused   bool
	observed            int64
	updated, all, ready int64
	deadlineExceeded    bool
	want                string
}{
	"managed, between releases":             {annotated: true, observed: 2, updated: 4, all: 4, ready: 4, want: healthy},
	"managed, kept paused between releases": {annotated: true, paused: true, observed: 2, updated: 4, all: 4, ready: 4, want: healthy},
	"managed, paused by the write":          {annotated: true, paused: true, observed: 1, updated: 4, all: 4, ready: 4, want: suspended},
	"managed, in a release or rolled back":  {annotated: true, paused: true, observed: 2, updated: 0, all: 4, ready: 4, want: suspended},
	"managed, the old pods end":             {annotated: true, paused: true, observed: 2, updated: 4, all: 6, ready: 6, want: suspended},
	"paused by a user":                      {paused: true, observed: 2, updated: 4, all: 4, ready: 4, want: suspended},
	"complete":                              {observed: 2, updated: 4, all: 4, ready: 4, want: healthy},
	"not looked at":                         {observed: 1, updated: 4, all: 4, ready: 4, want: progressing},
	"rolling":                               {observed: 2, updated: 1, all: 5, ready: 4, want: progressing},
	"old pods end":                          {observed: 2, updated: 4, all: 5, ready: 5, want: progressing},
	"pods are not available":                {observed: 2, updated: 4, all: 4, ready: 3, want: progressing},
	"its deadline is over":                  {observed: 2, updated: 1, all: 5, ready: 4, deadlineExceeded: true, want: degraded},
}

func TestAManagedDeploymentIsHealthyWhenItRunsWhatGitAsksFor(t *testing.T) {
	argo := readSettings(t, "argocd-cm-deployment.yaml")
	for _, name := range slices.Sorted(maps.Keys(deployments)) {
		d := deployments[name]
		reason := "NewReplicaSetAvailable"
		if d.deadlineExceeded {
			reason = "ProgressDeadlineExceeded"
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "website", "generation": int64(2)},
			"spec": map[string]any{"replicas": int64(4), "paused": d.paused},
			"status": map[string]any{
				"observedGeneration": d.observed, "updatedReplicas": d.updated, "replicas": d.all, "availableReplicas": d.ready,
				"conditions": []any{map[string]any{"type": "Progressing", "status": "True", "reason": reason, "message": "why"}},
			},
		}}
		if d.annotated {
			o.SetAnnotations(map[string]string{v1alpha1.AnnotationRollout: "website"})
		}
		if h := argo.health(t, o); h.Status != d.want {
			t.Errorf("%s: health %q, want %s", name, h, d.want)
		}
	}
}
