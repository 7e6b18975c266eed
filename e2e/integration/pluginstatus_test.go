// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// reportRollout writes the status of the Rollout as the operator would.
func (s *scene) reportRollout(ready metav1.ConditionStatus, message string, edit func(*v1alpha1.RolloutStatus)) {
	s.Helper()
	ro := s.rollout()
	ro.Status.ObservedGeneration = ro.Generation
	ro.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: "Reported", Message: message, LastTransitionTime: metav1.Now()}}
	edit(&ro.Status)
	if err := admin.Status().Update(s.Context(), ro); err != nil {
		s.Fatal(err)
	}
}

func TestAPipelineWaitsForItsOwnVersion(t *testing.T) {
	t.Parallel()
	s, stable, canary := inRelease(t)
	const missed = 3
	wants := func(line string, status int, text string) {
		t.Helper()
		if a := s.traffic("", "rollout status website "+line); a.status != status || !strings.Contains(a.out+a.errs, text) {
			t.Errorf("%q: exit status %d, want %d with %q; it says %q %q", line, a.status, status, text, a.out, a.errs)
		}
	}
	// The Rollout is Ready for the version before, which kubectl wait takes for an answer.
	s.reportRollout(metav1.ConditionTrue, "All is well.", func(st *v1alpha1.RolloutStatus) { st.Canary, st.Step = nil, nil })
	wants("--timeout=2s", missed, "the time limit of 2s has passed")
	wants("--revision="+stable, 0, "Revision "+stable+" is stable.")
	wants("--image=example.org/other:1 --timeout=2s", missed, "No container of the Deployment website has the image example.org/other:1 yet.")

	s.reportRollout(metav1.ConditionFalse, "It fails too often.", func(st *v1alpha1.RolloutStatus) {
		st.Canary = &v1alpha1.VersionStatus{Revision: canary}
		st.Decision = &v1alpha1.Decision{Revision: canary, Action: v1alpha1.ActionRollBack, Reason: "WorseThanStable", Time: metav1.NowMicro()}
	})
	wants("", missed, "Revision "+canary+" does not become stable: It fails too often.")

	s.reportRollout(metav1.ConditionTrue, "All is well.", func(st *v1alpha1.RolloutStatus) {
		st.Stable, st.Canary, st.Decision = &v1alpha1.VersionStatus{Revision: canary}, nil, nil
	})
	wants("", 0, "Revision "+canary+" is stable.")
	wants("--image="+imageV2, 0, "Revision "+canary+" is stable.")
	wants("--revision="+stable, missed, "Revision "+stable+" does not become stable")
	wants("--revision=x --image=y", 2, "name a version by one of them")
}
