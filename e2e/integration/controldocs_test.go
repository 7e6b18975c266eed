// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// shell is a block of commands in a page.
var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// actionOf is the action that commands decide on.
var actionOf = regexp.MustCompile(`action: (\w+)`)

// inRelease is a Rollout in the first step of a release from v1 to v2. There is no
// operator: the Deployment controller makes the ReplicaSets, and the status is written here.
func inRelease(t *testing.T, label ...func(map[string]string)) (s *scene, stable, canary string) {
	t.Helper()
	s = newScene(t, label...)
	s.create(deployment("website", 1), service("website"), newRollout())
	stable = s.revisionOf(imageV1)
	s.setImage(imageV2)
	canary = s.revisionOf(imageV2)
	ro, now := s.rollout(), metav1.NowMicro()
	ro.Status.Stable = &v1alpha1.VersionStatus{Revision: stable, Replicas: 1, Ready: 1}
	ro.Status.Canary = &v1alpha1.VersionStatus{Revision: canary, Replicas: 1, Ready: 1}
	ro.Status.Step = &v1alpha1.StepStatus{Index: 1, Of: 2, StartedAt: now}
	ro.Status.Interventions = []v1alpha1.Intervention{{Action: v1alpha1.ControlSkip, StepIndex: new(int32(1)), By: "jane", Reason: "known", Time: now}}
	ro.Status.History = []v1alpha1.HistoryEntry{
		{Revision: stable, Outcome: "Promoted", EndedAt: metav1.Now(), Interventions: ro.Status.Interventions},
		{Revision: "6c", Outcome: "RolledBack", EndedAt: metav1.Now()},
	}
	if err := admin.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	return s, stable, canary
}

// revisionOf waits until the Deployment controller has made the version of an image.
func (s *scene) revisionOf(image string) (revision string) {
	s.Helper()
	s.eventually("a ReplicaSet of "+image, func(context.Context) bool {
		for _, rs := range s.replicaSets() {
			if rs.Spec.Template.Spec.Containers[0].Image == image {
				revision = rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
			}
		}
		return revision != ""
	})
	return revision
}

// sh runs commands as a user would who has chosen the namespace.
func (s *scene) sh(kubeconfig, commands string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "sh", "-euc", commands)
	cmd.Env = environment(kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Errorf("%v\n%s\n%s", err, commands, out)
	}
	return logLine.ReplaceAllString(string(out), "")
}

// logLine is one that a client logs for information only. kubectl wait has one at times about the
// watch that it ends itself.
var logLine = regexp.MustCompile(`(?m)^I\d{4} \d\d:\d\d:\d\d\.\d{6} .*\n`)

func TestWhatAClientLogsIsNotWhatItPrints(t *testing.T) {
	const printed = "image updated\nI1128 05:52:40.142371   30510 reflector.go:664] \"Warning: watch ended with error\"\ncondition met\nI am no log line\nE1128 05:52:40.142371   30510 x.go:1] failed\n"
	const want = "image updated\ncondition met\nI am no log line\nE1128 05:52:40.142371   30510 x.go:1] failed\n"
	if diff := cmp.Diff(want, logLine.ReplaceAllString(printed, "")); diff != "" {
		t.Error(diff)
	}
}

// environment is that of a user's shell. Kubectl keeps what it knows of kinds beside the kubeconfig, so that a test with
// one of its own does not hand that on.
func environment(kubeconfig string) []string {
	cache := filepath.Join(filepath.Dir(kubeconfig), "cache")
	return append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+cache, "PATH="+filepath.Dir(plane.Programs.Path("kubectl"))+":"+os.Getenv("PATH"))
}

func TestTheCommandsOfThePageAboutDecisionsWork(t *testing.T) {
	t.Parallel()
	s, stable, canary := inRelease(t, labelled(labelDecisions, signed))
	s.waitForPolicies(signed)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content, err := os.ReadFile(plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sh(kubeconfig, "kubectl config set-context --current --namespace="+s.namespace)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "control.md"))
	if err != nil {
		t.Fatal(err)
	}
	printed, decided := &strings.Builder{}, map[string]bool{}
	for _, block := range shell.FindAllStringSubmatch(string(page), -1) {
		printed.WriteString(s.sh(kubeconfig, block[1]))
		action := actionOf.FindStringSubmatch(block[1])
		if action == nil {
			continue
		}
		decided[action[1]] = true
		c := s.rollout().Spec.Control
		if c == nil || string(c.Action) != action[1] || c.Revision != canary || c.By == "" || c.Reason == "" {
			t.Errorf("control is %+v after\n%s", c, block[1])
			continue
		}
		if (c.StepIndex != nil) != strings.Contains(block[1], "stepIndex:") || c.StepIndex != nil && *c.StepIndex != 1 {
			t.Errorf("stepIndex is %v after\n%s", c.StepIndex, block[1])
		}
	}
	if len(decided) != 5 {
		t.Errorf("the page shows %v, want all five actions", decided)
	}
	for _, want := range []string{canary, "yes", " Skip at stepIndex 1 by jane: known\n", stable + " Promoted\n  ", " 6c RolledBack\n"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("nothing printed %q:\n%s", want, printed)
		}
	}
	if image := s.deployment().Spec.Template.Spec.Containers[0].Image; image != imageV1 {
		t.Errorf("after undo, the Deployment is of %s", image)
	}
	if paused := s.rollout().Spec.Paused; paused {
		t.Error("still paused after resume")
	}
	s.eventually("undo makes no third ReplicaSet", func(context.Context) bool { return s.deployment().Status.UpdatedReplicas == 1 })
	if n := len(s.replicaSets()); n != 2 {
		t.Errorf("after undo, there are %d ReplicaSets", n)
	}
	s.waitRights("jane", may{"promote", "rollouts", "website"})
}
