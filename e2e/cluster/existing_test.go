// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/tools"
)

func TestAClusterThatIsNamedIsUsedAndLeftAlone(t *testing.T) {
	existing, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := existing.Stop(); err != nil {
			t.Error(err)
		}
	})
	var told strings.Builder
	options := cluster.Options{Kubeconfig: existing.Kubeconfig, Out: &told}
	c, err := cluster.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if c.Local || c.Kubeconfig != existing.Kubeconfig || c.Kubectl == "" || c.Helm == "" {
		t.Errorf("the cluster is %+v, want the named one with its programs", c)
	}
	if !strings.Contains(told.String(), "Kubernetes "+tools.KubernetesVersion) {
		t.Errorf("said %q, want the version of the cluster in it", told.String())
	}
	if err := cluster.Down(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Up(t.Context(), options); err != nil {
		t.Errorf("after it was told to remove it: %v", err)
	}
}

func TestANamedClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	stopped, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := stopped.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Up(t.Context(), cluster.Options{Kubeconfig: stopped.Kubeconfig, Out: testWriter{t}})
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v, want one that says so", err)
	}
}
