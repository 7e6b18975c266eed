// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// kubectl runs kubectl as a user in the namespace, with a manifest as its input.
func (s *scene) kubectl(user, manifest string, args ...string) (string, error) {
	s.Helper()
	args = append([]string{"--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace, "--as", user, "--as-group", "system:authenticated"}, args...)
	cmd := exec.CommandContext(s.Context(), plane.Programs.Path("kubectl"), args...)
	cmd.Stdin = strings.NewReader(manifest)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.String(), err
}

// mustKubectl fails the test when kubectl does.
func (s *scene) mustKubectl(user, manifest string, args ...string) {
	s.Helper()
	if out, err := s.kubectl(user, manifest, args...); err != nil {
		s.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// decisionInGit is a manifest with a decision and without a name.
const decisionInGit = smallest + `  control: {revision: 5d4f8c7b9, action: Promote, stepIndex: 0, reason: seen}
`

// waysToApply are those of people, and of GitOps tools.
var waysToApply = map[string][]string{
	"client-side": {"apply", "-f", "-"},
	"server-side": {"apply", "--server-side", "-f", "-"},
	"by replace":  {"replace", "-f", "-"},
}

// stays applies a manifest again and again: nothing of the object changes.
func (s *scene) stays(user, manifest string, apply []string) {
	s.Helper()
	before := s.rollout()
	for range 3 {
		s.mustKubectl(user, manifest, apply...)
	}
	if now := s.rollout(); now.Generation != before.Generation || now.ResourceVersion != before.ResourceVersion {
		s.Errorf("applied again, it changed (-before +now):\n%s", cmp.Diff(before, now))
	}
}

func TestAManifestWithADecisionCanBeAppliedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, apply := range waysToApply {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := team(t, signed)
			if apply[0] == "replace" {
				s.mustKubectl("admin", smallest, "create", "-f", "-")
			}
			s.mustKubectl("admin", decisionInGit, apply...)
			if by := s.rollout().Spec.Control.By; by != "admin" {
				t.Fatalf("decided by %q", by)
			}
			s.stays("admin", decisionInGit, apply)
			if apply[0] != "replace" {
				diff := append([]string{"diff"}, apply[1:]...)
				s.mustKubectl("admin", decisionInGit, diff...)
			}
			s.changesAndIsTakenAway(apply)
		})
	}
}

// changesAndIsTakenAway: another action in the manifest is another decision, and a
// manifest without one takes all of it away, the name too.
func (s *scene) changesAndIsTakenAway(apply []string) {
	s.Helper()
	s.mustKubectl("admin", strings.Replace(decisionInGit, "Promote", "Abort", 1), apply...)
	if c := s.rollout().Spec.Control; c.Action != v1alpha1.ControlAbort || c.By != "admin" {
		s.Errorf("control is %+v", c)
	}
	s.mustKubectl("admin", smallest, apply...)
	if c := s.rollout().Spec.Control; c != nil {
		s.Errorf("taken away, control is %+v", c)
	}
	s.stays("admin", smallest, apply)
}

// The decision of a person is not in Git, so Git leaves it alone.
func TestAManifestWithoutADecisionLeavesThatOfAPersonAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"client-side", "server-side"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, apply := team(t, signed), waysToApply[name]
			s.mustKubectl("editor", smallest, apply...)
			s.mustKubectl("oncall", "", "patch", "rollouts.serin.dev", "website", "--type=merge", "-p",
				`{"spec":{"control":{"revision":"5d4f8c7b9","action":"Promote"}}}`)
			s.stays("editor", smallest, apply)
			s.mustKubectl("editor", strings.Replace(smallest, "5m", "6m", 1), apply...)
			want := &v1alpha1.Control{Revision: "5d4f8c7b9", Action: v1alpha1.ControlPromote, By: "oncall"}
			if diff := cmp.Diff(want, s.rollout().Spec.Control); diff != "" {
				t.Errorf("control (-want +got):\n%s", diff)
			}
		})
	}
}

// The name of who decided belongs to no manager of fields: it is neither a conflict
// between two of them, nor left over when one takes the decision away.
func TestTwoManagersOfFieldsShareARolloutWithADecision(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	const plugin = `
apiVersion: serin.dev/v1alpha1
kind: Rollout
metadata: {name: website}
spec: {control: {revision: 5d4f8c7b9, action: Abort}}
`
	asGit := []string{"apply", "--server-side", "--field-manager=git", "-f", "-"}
	asPlugin := []string{"apply", "--server-side", "--field-manager=plugin", "-f", "-"}
	s.mustKubectl("editor", smallest, asGit...)
	s.mustKubectl("oncall", plugin, asPlugin...)
	s.stays("editor", smallest, asGit)
	s.stays("oncall", plugin, asPlugin)
	s.stays("admin", plugin, asPlugin)
	if by := s.rollout().Spec.Control.By; by != "oncall" {
		t.Errorf("decided by %q", by)
	}
	out, err := s.kubectl("admin", decisionInGit, asGit...)
	if err == nil || !strings.Contains(out, ".spec.control.action") || strings.Contains(out, ".spec.control.by") {
		t.Errorf("want a conflict over the action and not over the name: %v\n%s", err, out)
	}
	s.mustKubectl("admin", decisionInGit, append(asGit, "--force-conflicts")...)
	if c := s.rollout().Spec.Control; c.Action != v1alpha1.ControlPromote || c.By != "admin" {
		t.Errorf("control is %+v", c)
	}
	s.stays("admin", decisionInGit, asGit)
}

func TestARefusalSaysToAPersonWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := team(t, signed)
	s.mustKubectl("editor", smallest, "apply", "-f", "-")
	out, err := s.kubectl("editor", decisionInGit, "apply", "-f", "-")
	const rule = `{apiGroups: [serin.dev], resources: [rollouts], resourceNames: [website], verbs: [promote]}`
	if err == nil || !strings.Contains(out, `user "editor" may not decide about this release`) || !strings.Contains(out, rule) {
		t.Fatalf("error %v\n%s", err, out)
	}
	t.Log(out)
	s.allow("editor", promote("website"))
	s.waitRights("editor", may{"promote", "rollouts", "website"})
	s.mustKubectl("editor", decisionInGit, "apply", "-f", "-")
}
