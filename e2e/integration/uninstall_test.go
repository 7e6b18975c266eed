// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// uninstallCheck runs what helm uninstall runs first: with the arguments and the rights that
// the chart gives it.
type uninstallCheck struct {
	*scene
	args []string
	user string
}

func newUninstallCheck(s *scene) *uninstallCheck {
	s.Helper()
	objects, err := renderChart(s.Context(), "--namespace", s.namespace, "--no-hooks=false", "--show-only", "templates/uninstall.yaml",
		"--set", "watchNamespaces={"+s.namespace+"}")
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range kinds(objects, "ServiceAccount", "Role", "RoleBinding") {
		s.create(o)
	}
	job := &batchv1.Job{}
	for _, o := range objects {
		if o.GetKind() != "Job" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, job); err != nil {
			s.Fatal(err)
		}
	}
	pod := job.Spec.Template.Spec
	return &uninstallCheck{scene: s, args: pod.Containers[0].Args, user: pod.ServiceAccountName}
}

func (c *uninstallCheck) run() (string, error) {
	c.Helper()
	binary, err := builtCommand()
	if err != nil {
		c.Fatal(err)
	}
	config, err := plane.ConfigFor("system:serviceaccount:"+c.namespace+":"+c.user, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		c.Fatal(err)
	}
	// The check waits as long for what is being restored. Where it could not even ask in that time,
	// the machine was too slow for it.
	for timeout := time.Second; ; timeout *= 4 {
		command := exec.CommandContext(c.Context(), binary, append(slices.Clone(c.args), "--timeout="+timeout.String())...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(c, config, c.namespace))
		out, err := command.CombinedOutput()
		if err == nil || timeout > neverAfter || !strings.Contains(string(out), "what is left to restore is not known") {
			// The log has the error as a string of JSON or text.
			return strings.NewReplacer(`\n`, "\n").Replace(string(out)), err
		}
	}
}

// refused checks that uninstalling is refused with some words.
func (c *uninstallCheck) refused(words ...string) {
	c.Helper()
	out, err := c.run()
	if err == nil {
		c.Errorf("uninstalling is not refused: %s", out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			c.Errorf("the refusal lacks %q:\n%s", word, out)
		}
	}
}

func TestUninstallingIsRefusedUntilEverythingIsRestored(t *testing.T) {
	t.Parallel()
	p := begin(t)
	c := newUninstallCheck(p.scene)
	p.release()
	c.refused("rollouts.serin.dev "+p.namespace+"/website", "trafficsplits.split.smi-spec.io "+p.namespace+"/website",
		"kubectl --namespace "+p.namespace+" delete rollouts.serin.dev", "helm rollback serin 1 --namespace "+p.namespace)
	p.delete(p.rollout())
	p.eventually("the Rollout is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(p.reader.Get(ctx, p.key("website"), &v1alpha1.Rollout{}))
	})
	p.reader = admin
	p.eventually("only the paused Deployment is left", func(context.Context) bool {
		out, err := c.run()
		return err != nil && !strings.Contains(out, "trafficsplits.split.smi-spec.io "+p.namespace)
	})
	c.refused("deployment "+p.namespace+"/website", "rollout resume deployment/NAME")
	p.setImage(imageV1)
	if out, err := p.kubectl("rollout", "resume", "deployment/website"); err != nil {
		t.Fatal(err, out)
	}
	if out, err := c.run(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
