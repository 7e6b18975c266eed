// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

var begun = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// website is a Rollout in the second of two steps.
func website(reason string, change ...func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website"}}
	ro.Spec = v1alpha1.RolloutSpec{
		WorkloadRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "website"}, Service: "website",
		Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 20, Hold: "5m"}, {Weight: 60, Hold: "5m"}}},
	}
	began, live := metav1.NewTime(begun), metav1.NewMicroTime(begun.Add(6*time.Minute))
	next := metav1.NewTime(begun.Add(11 * time.Minute))
	ro.Status = v1alpha1.RolloutStatus{
		Stable: &v1alpha1.VersionStatus{Revision: "stable1", Replicas: 4, Ready: 4},
		Canary: &v1alpha1.VersionStatus{Revision: "canary2", Replicas: 3, Ready: 2, StartedAt: &began},
		Step:   &v1alpha1.StepStatus{Index: 1, Of: 2, Summary: "2/2", Weight: 60, StartedAt: live, ProgrammedAt: &live},
		Weight: &v1alpha1.WeightStatus{Requested: 60, Observed: new(int32(20))}, NextTransitionTime: &next,
		Analysis: &v1alpha1.AnalysisStatus{Verdict: "Pass", Evidence: "12.3", Threshold: "100", State: "secret"},
	}
	if reason != "" {
		status := metav1.ConditionFalse
		if reason == v1alpha1.ReasonStable {
			status = metav1.ConditionTrue
		}
		ro.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "A sentence."}}
	}
	for _, f := range change {
		f(ro)
	}
	return ro
}

func stalled(ro *v1alpha1.Rollout) {
	ro.Status.Conditions = append(ro.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue})
}

func rolledBack(ro *v1alpha1.Rollout) {
	ro.Status.Decision = &v1alpha1.Decision{Revision: "canary2", Action: v1alpha1.ActionRollBack}
}

func idle(ro *v1alpha1.Rollout) {
	ro.Status.Canary, ro.Status.Step, ro.Status.Weight, ro.Status.Analysis, ro.Status.NextTransitionTime = nil, nil, nil, nil, nil
}

func TestARowSaysWhatAUserHasToDoAndWhatHappensNext(t *testing.T) {
	at := begun.Add(11 * time.Minute)
	for _, test := range []struct {
		name string
		ro   *v1alpha1.Rollout
		want view.Group
		next view.Next
	}{
		{"a hold ends at a time", website(v1alpha1.ReasonHolding), view.InProgress, view.Next{What: "The canary is promoted", At: &at}},
		{"another step follows", website(v1alpha1.ReasonHolding, func(ro *v1alpha1.Rollout) { ro.Status.Step.Index = 0 }), view.InProgress, view.Next{What: "The next step begins", At: &at}},
		{"an approval is waited for", website(v1alpha1.ReasonWaitingForApproval, stalled), view.NeedsUser, view.Next{What: "A user approves the step"}},
		{"a failed analysis leaves it to a user", website(v1alpha1.ReasonAnalysisFailed), view.NeedsUser, view.Next{What: "A user decides: the analysis failed"}},
		{"a rollback", website(v1alpha1.ReasonRolledBack, stalled), view.Failed, view.Next{What: "A user changes the workload or the Rollout"}},
		{"a stable version", website(v1alpha1.ReasonStable, idle), view.Stable, view.Next{What: "The next change is released"}},
		{"nothing was looked at", website("", idle), view.Unknown, view.Next{What: "Serin processes it"}},
		{"a reason that this program does not know", website("Brandnew", idle), view.InProgress, view.Next{What: "Serin continues"}},
	} {
		row := view.MakeRow(test.ro)
		if row.Group != test.want {
			t.Errorf("%s: %s, want %s", test.name, row.Group, test.want)
		}
		if diff := cmp.Diff(test.next, row.Next); diff != "" {
			t.Errorf("%s: next (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestARowHasTheWeightsAndTheEvidence(t *testing.T) {
	got := view.MakeRow(website(v1alpha1.ReasonHolding))
	at := begun.Add(11 * time.Minute)
	want := view.Row{
		Namespace: "shop", Name: "website", Group: view.InProgress, State: "Holding", Message: "A sentence.", Step: "2/2", StepIndex: 1, StepCount: 2,
		Requested: new(int32(60)), Live: new(int32(20)), Evidence: "12.3", Threshold: "100", Verdict: "Pass", StableRevision: "stable1", CanaryRevision: "canary2",
		Next: view.Next{What: "The canary is promoted", At: &at},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

var everything = view.Rights{User: "jane", Promote: true, Patch: true, Update: true, PatchDeployment: true, GetReplicaSet: true}

// without takes rights away.
func without(change func(*view.Rights)) view.Rights {
	r := everything
	change(&r)
	return r
}

func TestButtonsArePossibleWhereTheRightAndTheStateAllowThem(t *testing.T) {
	release := website(v1alpha1.ReasonHolding)
	for _, test := range []struct {
		name   string
		ro     *v1alpha1.Rollout
		rights view.Rights
		want   string
		why    map[string]string
	}{
		{"a release", release, everything, "Promote Skip PromoteFull Abort Pause Undo", map[string]string{"Retry": "was not rolled back", "Resume": "is not paused"}},
		{"a paused release", website(v1alpha1.ReasonPaused, func(ro *v1alpha1.Rollout) { ro.Spec.Paused = true }), everything, "Promote Skip PromoteFull Abort Resume Undo", map[string]string{"Pause": "is paused already"}},
		{"a rollback", website(v1alpha1.ReasonRolledBack, rolledBack), everything, "Retry Pause Undo", map[string]string{"Abort": "is rolled back"}},
		{"nothing to release", website(v1alpha1.ReasonStable, idle), everything, "Pause", map[string]string{"Promote": "releases nothing at present", "Undo": "has the template of the stable revision stable1"}},
		{"a decision that was made before", website(v1alpha1.ReasonHolding, func(ro *v1alpha1.Rollout) {
			ro.Spec.Control = &v1alpha1.Control{Revision: "canary2", Action: v1alpha1.ControlAbort}
		}), everything, "Promote Skip PromoteFull Abort Pause Undo", nil},
		{"two Services", website(v1alpha1.ReasonHolding, func(ro *v1alpha1.Rollout) { ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{} }), everything, "Promote Skip PromoteFull Abort Pause", map[string]string{"Undo": "put them back yourself"}},
		{"a CanaryRelease", website(v1alpha1.ReasonHolding, func(ro *v1alpha1.Rollout) {
			ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{Kind: v1alpha1.KindCanaryRelease, Name: "try"}
		}), everything, "Promote Skip PromoteFull Abort Pause", map[string]string{"Undo": "releases the CanaryRelease try, and Helm knows its revisions: use `helm rollback`"}},
		{"an editor", release, without(func(r *view.Rights) { r.Promote = false }), "Pause Undo", map[string]string{"Abort": `The user jane may not promote the Rollout website in the namespace shop: ask for a role with the verbs "promote" and "patch"`}},
		{"a promoter may only decide", release, without(func(r *view.Rights) { r.Update, r.PatchDeployment = false, false }), "Promote Skip PromoteFull Abort", map[string]string{"Pause": "may not update", "Undo": `"deployments.apps"`}},
		{"a viewer", release, view.Rights{}, "", map[string]string{"Promote": "You may not promote", "Undo": "Undo changes the Deployment website"}},
		{"a viewer whose rights are not known", release, without(func(r *view.Rights) { r.Unknown = true }), "", map[string]string{"Undo": "has not said what you may do", "Promote": "has not said what you may do"}},
		{"read-only", release, without(func(r *view.Rights) { r.ReadOnly = true }), "", map[string]string{"Undo": "--read-only", "Promote": "--read-only"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var possible []string
			for _, a := range view.MakeActions(test.ro, test.rights) {
				if a.Disabled == "" {
					possible = append(possible, a.Name)
				}
				if (a.Confirm == "") != (a.Disabled != "") {
					t.Errorf("%s: asks %q and is disabled since %q", a.Name, a.Confirm, a.Disabled)
				}
				if why := test.why[a.Name]; why != "" && !strings.Contains(a.Disabled, why) {
					t.Errorf("%s is disabled since %q, want %q", a.Name, a.Disabled, why)
				}
			}
			if got := strings.Join(possible, " "); got != test.want {
				t.Errorf("possible: %s, want %s", got, test.want)
			}
		})
	}
}

func TestAnErrorBecomesASentence(t *testing.T) {
	for text, want := range map[string]string{"": "", "the user may not": "The user may not.", "Done.": "Done.", "élan": "Élan.", "a": "A."} {
		if got := view.Sentence(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestQuestionsNameTheRevision(t *testing.T) {
	names := map[string]string{
		"Promote": "Promote step 2/2 of revision canary2?", "Skip": "Skip step 2/2 of revision canary2?", "PromoteFull": "Promote revision canary2 fully?", "Abort": "Abort revision canary2?",
		"Pause": "Pause the release of revision canary2?", "Undo": "Put the template of revision stable1 back into the Deployment website?",
	}
	for _, a := range view.MakeActions(website(v1alpha1.ReasonHolding), everything) {
		if want := names[a.Name]; !strings.HasPrefix(a.Confirm, want) {
			t.Errorf("%s asks %q, want %q", a.Name, a.Confirm, want)
		}
	}
}

func TestAReleaseHasItsStepsPodsAndEvents(t *testing.T) {
	ro := website(v1alpha1.ReasonHolding)
	set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "website-canary2", UID: "set", Labels: map[string]string{"pod-template-hash": "canary2"}}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Image: "example.org/website:2"}, {Image: "example.org/website:2"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "website-canary2-x", Labels: map[string]string{"pod-template-hash": "canary2"}, OwnerReferences: []metav1.OwnerReference{{UID: "set"}}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}, {RestartCount: 1}}}
	other := pod
	other.Name, other.OwnerReferences = "other", []metav1.OwnerReference{{UID: "of another workload"}}
	event := func(after time.Duration, message string) corev1.Event {
		return corev1.Event{Reason: "WeightLive", Message: message, LastTimestamp: metav1.NewTime(begun.Add(after))}
	}
	s := view.Sources{Now: begun.Add(8 * time.Minute), Rights: everything, Missing: []string{"The Freezes are left out."}, Events: []corev1.Event{
		event(-time.Hour, "Step 1/2: 20 % goes to the canary"), event(time.Minute, "Step 1/2: 20 % goes to the canary"), event(6*time.Minute, "Step 2/2: 60 % goes to the canary"),
	}}
	s.Rollout, s.ReplicaSets, s.Pods = ro, []appsv1.ReplicaSet{set}, []corev1.Pod{pod, other}
	r := view.MakeRelease(s)

	var steps []string
	for _, step := range r.Steps {
		began := ""
		if step.Began != nil {
			began = step.Began.Sub(begun).String()
		}
		steps = append(steps, step.State+" "+began)
	}
	if diff := cmp.Diff([]string{"Done 1m0s", "Present ", "Promotion "}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wantVersion := view.Version{
		Role: "canary", Revision: "canary2", Weight: "20%", Ready: 2, Replicas: 3, Images: []string{"example.org/website:2"},
		Pods: []view.Pod{{Name: "website-canary2-x", State: "Running", Ready: true, Restarts: 3}},
	}
	if diff := cmp.Diff(wantVersion, r.Versions[1]); diff != "" {
		t.Errorf("canary (-want +got):\n%s", diff)
	}
	if len(r.Events) != 3 || !strings.HasPrefix(r.Events[0].Message, "Step 2/2") {
		t.Errorf("the newest event comes first: %+v", r.Events)
	}
	if r.Analysis.State != "" || ro.Status.Analysis.State == "" {
		t.Errorf("the state of the judge is for Serin alone, and stays with it")
	}
	if len(r.Missing) != 1 {
		t.Errorf("missing: %q", r.Missing)
	}
}

func TestStepsThatCannotBeReadAreNamed(t *testing.T) {
	s := view.Sources{}
	s.Rollout = website(v1alpha1.ReasonHolding, func(ro *v1alpha1.Rollout) { ro.Spec.Schedule = &v1alpha1.Schedule{TimeZone: "Moon/Crater"} })
	if r := view.MakeRelease(s); len(r.Steps) != 0 || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "Moon/Crater") {
		t.Errorf("steps %v, missing %q", r.Steps, r.Missing)
	}
}

const settings = `"settings":{"hold":30,"onInconclusive":"Hold","judge":{"maxFalseRollback":0.01,"tolerance":0.005,"usualFailureRate":0.001,"minRequests":50,"staleAfter":20,"startup":{"for":15,"tolerate":0.25}}}`

const lines = `{"release":{"rollout":"shop/website","revision":"canary2","began":"2026-11-24T12:00:00Z"},` + settings + `,"t":12.5,"seconds":5,"weight":20,"step":0,"canary":{"requests":80,"failures":48,"latency":{"le":[0.1,0.5],"counts":[70,80,80]}},"stable":{"requests":0,"failures":0},"judged":{"verdict":"Inconclusive","reason":"StartingUp","action":"Hold","rollback":0.83,"promote":1}}
{"t":17.5,"step":0,"values":[{"name":"queue","value":3}]}
{"t":22.5,"seconds":5,"weight":60,"step":1,"canary":{"requests":0,"failures":0},"stable":{"requests":70,"failures":56},"gap":"Restarted"}
`

// packed is a recording as it is stored.
func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestARecordingBecomesPointsWithTheDifferenceSoFar(t *testing.T) {
	r, err := view.MakeRecording(packed(t, lines))
	if err != nil {
		t.Fatal(err)
	}
	if r.Revision != "canary2" || len(r.Points) != 2 || r.Tolerance != 0.5 || r.Threshold != 100 {
		t.Fatalf("recording: %+v", r)
	}
	if s := r.Settings; s.Tolerance != "0.5pp" || s.MaxFalseRollback != "1%" || s.MinRequests != "50" || s.Startup != "15s" || s.Hold != "30s" || s.OnInconclusive != "Hold" {
		t.Errorf("settings: %+v", s)
	}
	// The canary answered the only requests that were timed; stable's were not.
	if c, s := r.Versions[0], r.Versions[1]; c.Requests != 80 || *c.P50 != 0.1 || *c.P95 != 0.5 || s.Failures != 56 || s.P50 != nil {
		t.Errorf("versions: %+v %+v", c, s)
	}
	first, last := r.Points[0], r.Points[1]
	if first.At != float64(begun.Unix())+12.5 || *first.Evidence != 0.83 || *first.CanaryP99 != 0.5 || first.StableP99 != nil || first.Difference != nil {
		t.Errorf("first point: %+v", first)
	}
	// Newcombe's own example, 56/70 against 48/80, the other way around.
	for name, got := range map[string][2]float64{"difference": {*last.Difference, -20}, "low": {*last.Low, -33.39}, "high": {*last.High, -5.24}} {
		if math.Abs(got[0]-got[1]) > 0.01 {
			t.Errorf("%s: %.3f, want %.2f", name, got[0], got[1])
		}
	}
	if last.Gap != "Restarted" || last.Weight != 60 || last.Step != 1 || last.Verdict != "" {
		t.Errorf("last point: %+v", last)
	}
}

func TestARecordingThatIsBrokenIsAnError(t *testing.T) {
	for name, stored := range map[string]string{"no base64": "%", "no gzip": "aGVsbG8=", "no JSON": packed(t, "{\n")} {
		if r, err := view.MakeRecording(stored); err == nil {
			t.Errorf("%s is read as %+v", name, r)
		}
	}
}

func TestTheWindowThatWasJudgedLastIsShownBeforeItIsStored(t *testing.T) {
	end := metav1.NewMicroTime(begun.Add(7 * time.Minute))
	judged := func(ro *v1alpha1.Rollout) {
		a := ro.Status.Analysis
		a.LastWindowEnd, a.CanaryRequests, a.CanaryFailures, a.StableRequests, a.StableFailures = &end, 1000, 30, 4000, 40
	}
	got := view.MakeRelease(view.Sources{Snapshot: rolloutview.Snapshot{Rollout: website(v1alpha1.ReasonHolding, judged)}, Now: begun}).Measured
	if got == nil || got.Difference == nil || got.Evidence == nil {
		t.Fatalf("got %+v", got)
	}
	if !got.Live || got.At != float64(end.Unix()) || got.Weight != 20 || got.Step != 1 || got.CanaryFailures != 30 || *got.Evidence != 12.3 || got.Verdict != "Pass" {
		t.Errorf("got %+v", got)
	}
	if d := *got.Difference; d < 1.999 || d > 2.001 || *got.Low >= d || *got.High <= d {
		t.Errorf("the difference is %g between %g and %g", d, *got.Low, *got.High)
	}
	for name, change := range map[string]func(*v1alpha1.Rollout){
		"nothing is released": idle,
		"nothing is judged":   func(ro *v1alpha1.Rollout) { ro.Status.Analysis.LastWindowEnd = nil },
	} {
		if got := view.MakeRelease(view.Sources{Snapshot: rolloutview.Snapshot{Rollout: website(v1alpha1.ReasonHolding, judged, change)}, Now: begun}).Measured; got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
