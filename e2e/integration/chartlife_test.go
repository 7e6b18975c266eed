// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kindsversion "github.com/serin-dev/serin/skew/kinds"
)

// clusterWide are the names of the cluster-wide objects of a release, but for
// definitions.
func clusterWide(t *testing.T, release string) []string {
	t.Helper()
	var names []string
	for _, list := range []client.ObjectList{
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
		&admissionv1.MutatingAdmissionPolicyList{}, &admissionv1.MutatingAdmissionPolicyBindingList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, apiServices(),
	} {
		if err := admin.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			names = append(names, o.(client.Object).GetName())
		}
	}
	return names
}

// apiServices is an empty list of them.
func apiServices() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiregistration.k8s.io/v1")
	list.SetKind("APIServiceList")
	return list
}

// The definitions and the operator's own release are installed for all tests, so
// this one is a second release.
func TestUninstallingLeavesNoPolicyAndNoRoleBehind(t *testing.T) {
	const second = "second"
	s := newScene(t)
	helmAs := func(args ...string) {
		t.Helper()
		args = append(args, "--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace)
		if out, err := helm(t, args...); err != nil {
			t.Fatalf("helm %v: %v\n%s", args, err, out)
		}
	}
	withoutFixedPolicies(t)
	chartDir := filepath.Join("..", "..", "charts", "serin")
	values := []string{"--set", "crds.serin=false,crds.smi=false"}
	defer helmAs("uninstall", second, "--no-hooks", "--ignore-not-found") // also when the test fails, for those that follow
	helmAs(append([]string{"install", second, chartDir}, values...)...)
	policies := []string{second + "-serin-decisions", second + "-serin-decided-by", guardName, configurationPolicy, apiService}
	for _, name := range policies {
		if !slices.Contains(clusterWide(t, second), name) {
			t.Errorf("installed, %s is not there", name)
		}
	}
	helmAs(append([]string{"upgrade", second, chartDir, "--set", "decisionPolicy.enabled=false"}, values...)...)
	for _, name := range policies[:2] {
		if slices.Contains(clusterWide(t, second), name) {
			t.Errorf("not wanted any more, %s is still there", name)
		}
	}
	helmAs(append([]string{"upgrade", second, chartDir}, values...)...)
	refuseToSkip(s, second)
	helmAs("uninstall", second, "--no-hooks", "--wait") // there is no node that runs what is before it
	if left := clusterWide(t, second); len(left) > 0 {
		t.Errorf("uninstalled, these are left: %v", left)
	}
}

// refuseToSkip checks that an upgrade by more than one minor version is refused, and a rollback of as many.
func refuseToSkip(s *scene, release string) {
	s.Helper()
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: release + "-serin-manager"}}
	for version, refused := range map[string]bool{"0.0.9": false, "0.2.0": false, "0.3.0": true, "1.1.0": true, "dev": false} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"app.kubernetes.io/version":%q}}}`, version))
		if err := admin.Patch(s.Context(), manager, patch); err != nil {
			s.Fatal(err)
		}
		out, err := helm(s.T, "upgrade", release, filepath.Join("..", "..", "charts", "serin"), "--set", "crds.serin=false,crds.smi=false", "--dry-run=server",
			"--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace)
		if (err != nil) != refused || refused && !strings.Contains(out, "version "+version+" is installed") {
			s.Errorf("an upgrade from %s: %v\n%s", version, err, out)
		}
	}
}

// Every client with an identity reads there of which version the operator's kinds are.
func TestTheKindsSayTheVersionOfTheChart(t *testing.T) {
	cluster, err := discovery.NewDiscoveryClientForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "serin", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the description of the kinds is served", func() error {
		got, err := kindsversion.Version(cluster.OpenAPIV3())
		if err == nil && (got == "" || !strings.Contains(string(text), fmt.Sprintf("appVersion: %q", got))) {
			err = fmt.Errorf("it says %q", got)
		}
		return err
	})
}

// One server at a time can serve the API of a cluster.
func TestAnotherImplementationOfTrafficMetricsIsLeftAlone(t *testing.T) {
	const second = "third"
	s := newScene(t)
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": apiService},
		"spec": map[string]any{
			"group": "metrics.smi-spec.io", "version": "v1alpha1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"name": "mesh-metrics", "namespace": s.namespace},
		},
	}}
	createForTest(t, other)
	withoutFixedPolicies(t)
	for _, args := range [][]string{
		{"install", second, filepath.Join("..", "..", "charts", "serin"), "--set", "crds.serin=false,crds.smi=false"},
		{"uninstall", second, "--no-hooks", "--wait"},
	} {
		if out, err := helm(t, append(args, "--kubeconfig", plane.Kubeconfig, "--namespace", s.namespace)...); err != nil {
			t.Fatalf("helm %v: %v\n%s", args, err, out)
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
			t.Fatalf("after %s: %v", args[0], err)
		}
		if name, _, _ := unstructured.NestedString(other.Object, "spec", "service", "name"); name != "mesh-metrics" {
			t.Errorf("after %s it leads to %q", args[0], name)
		}
	}
}
