// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestOnlyWhatCanBeDoneNowIsOffered(t *testing.T) {
	argo := readSettings(t, "argocd-cm.yaml")
	for _, s := range recorded(t, "controllers/release") {
		var ro v1alpha1.Rollout
		read(t, s.object, &ro)
		want := []string{}
		for name, action := range controls {
			if slices.Contains(s.possible, string(action)) && useful(&ro, action) {
				want = append(want, name)
			}
		}
		switch {
		case ro.DeletionTimestamp != nil:
		case ro.Spec.Paused:
			want = append(want, "resume")
		default:
			want = append(want, "pause")
		}
		slices.Sort(want)
		got := slices.Sorted(maps.Keys(argo.actions(t, s.object).offered(t, s.object)))
		if !slices.Equal(got, want) {
			t.Errorf("%s: offered are %q, and Serin would apply %q", s.name, got, want)
		}
	}
}

// useful reports whether an action that Serin would apply also does anything now: a paused
// release goes on when it is resumed, and one whose analysis failed is not promoted by evidence.
func useful(ro *v1alpha1.Rollout, action v1alpha1.ControlAction) bool {
	goesOn := action != v1alpha1.ControlAbort && action != v1alpha1.ControlRetry
	failed := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonAnalysisFailed
	return (!ro.Spec.Paused || !goesOn) && (!failed || action != v1alpha1.ControlPromote)
}

func TestACanaryReleaseCanBeEndedUntilItHasEnded(t *testing.T) {
	argo := readSettings(t, "argocd-cm.yaml")
	for _, s := range recorded(t, "controllers/release/helmrelease") {
		var cr v1alpha1.CanaryRelease
		read(t, s.object, &cr)
		d, want := cr.Status.Decision, ""
		switch {
		case cr.DeletionTimestamp != nil || cr.Spec.Transition == v1alpha1.CanaryTransitionDeprecated || d != nil && d.Transition == v1alpha1.CanaryTransitionDeprecated:
		case strings.HasPrefix(s.name, "Ready=True "+v1alpha1.ReasonServing):
			want = "adopt deprecate"
		case cr.Status.Release == nil || cr.Status.Release.AdoptedRevision == 0:
			want = "deprecate"
		}
		if got := strings.Join(slices.Sorted(maps.Keys(argo.actions(t, s.object).offered(t, s.object))), " "); got != want {
			t.Errorf("%s: offered is %q, want %q", s.name, got, want)
		}
	}
}

// patched is an object after an action: Argo CD sends what is different as a merge patch.
func patched(t *testing.T, before, after *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	from, err := before.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	to, err := after.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(patch, &spec); err != nil {
		t.Fatal(err)
	}
	for key := range spec {
		if key != "spec" {
			t.Errorf("the action changes %s: %s", key, patch)
		}
	}
	return after
}

func TestActionsDecideAboutTheRevisionThatIsSeen(t *testing.T) {
	argo := readSettings(t, "argocd-cm.yaml")
	const reason = "action in Argo CD, 2026-01-02T03:04:05Z"
	done := map[string]bool{}
	for _, s := range recorded(t, "controllers/release") {
		a := argo.actions(t, s.object)
		for action := range a.offered(t, s.object) {
			done[action] = true
			var before, after v1alpha1.Rollout
			read(t, s.object, &before)
			read(t, patched(t, s.object, a.do(t, action, s.object)), &after)
			want := before.DeepCopy()
			switch action {
			case "pause":
				want.Spec.Paused = true
			case "resume":
				want.Spec.Paused = false
			default:
				want.Spec.Control = &v1alpha1.Control{Revision: before.Status.Canary.Revision, Action: controls[action], Reason: reason}
				if action == "promote" || action == "skip" {
					want.Spec.Control.StepIndex = new(before.Status.Step.Index)
				}
			}
			if diff := cmp.Diff(want.Spec, after.Spec); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", action, s.name, diff)
			}
		}
	}
	if want := append(slices.Sorted(maps.Keys(controls)), "pause", "resume"); len(done) != len(want) {
		t.Errorf("done: %v, want %v", slices.Sorted(maps.Keys(done)), want)
	}
}

// controls are the actions of Argo CD that are decisions.
var controls = map[string]v1alpha1.ControlAction{
	"promote": v1alpha1.ControlPromote, "skip": v1alpha1.ControlSkip, "promote-full": v1alpha1.ControlPromoteFull,
	"abort": v1alpha1.ControlAbort, "retry": v1alpha1.ControlRetry,
}

func TestActionsEndACanaryRelease(t *testing.T) {
	argo := readSettings(t, "argocd-cm.yaml")
	transitions := map[string]v1alpha1.CanaryTransition{"adopt": v1alpha1.CanaryTransitionAdopted, "deprecate": v1alpha1.CanaryTransitionDeprecated}
	done := map[string]bool{}
	for _, s := range recorded(t, "controllers/release/helmrelease") {
		a := argo.actions(t, s.object)
		for action := range a.offered(t, s.object) {
			done[action] = true
			var before, after v1alpha1.CanaryRelease
			read(t, s.object, &before)
			read(t, patched(t, s.object, a.do(t, action, s.object)), &after)
			before.Spec.Transition = transitions[action]
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", action, s.name, diff)
			}
		}
	}
	if len(done) != len(transitions) {
		t.Errorf("done: %v", done)
	}
}

// cleaned has the empty objects of old again, which Lua makes lists of. Argo CD does so too.
func cleaned(now, old map[string]any) map[string]any {
	for key, value := range now {
		switch v := value.(type) {
		case map[string]any:
			if o, ok := old[key].(map[string]any); ok {
				cleaned(v, o)
			}
		case []any:
			if o, ok := old[key].(map[string]any); ok && len(v) == 0 {
				now[key] = o
			}
		}
	}
	return now
}

// read reads an object strictly, as the API server does.
func read(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}
