// SPDX-License-Identifier: Apache-2.0

package canaryrights

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var account = Account{Namespace: "shop", Name: "serin-canary"}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Service"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	} {
		m.Add(k, meta.RESTScopeNamespace)
	}
	m.Add(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, meta.RESTScopeRoot)
	return m
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// written is what the command prints of the rights.
func written(t *testing.T, objects ...*unstructured.Unstructured) (text string, warnings []string) {
	t.Helper()
	rights, warnings, err := Compute(objects, account, mapper())
	if err != nil {
		t.Fatal(err)
	}
	var textSb46 strings.Builder
	for _, o := range rights {
		y, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		textSb46.WriteString("---\n" + string(y))
	}
	text += textSb46.String()
	return text, warnings
}

const ofANamespace = `---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: serin-canary
  namespace: shop
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: serin-canary
  namespace: shop
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  - secrets
  verbs:
  - get
  - list
  - create
  - update
  - patch
  - delete
- apiGroups:
  - ""
  resources:
  - persistentvolumeclaims
  verbs:
  - get
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - get
  - list
  - watch
  - create
  - update
  - patch
  - delete
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: serin-canary
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: serin-canary
subjects:
- kind: ServiceAccount
  name: serin-canary
  namespace: shop
`

func TestAKindOfTheChartIsOneRule(t *testing.T) {
	text, warnings := written(t, object("apps/v1", "Deployment", "", "a"), object("v1", "ConfigMap", "", "c"), object("apps/v1", "Deployment", "shop", "b"))
	if diff := cmp.Diff(ofANamespace, text); diff != "" || len(warnings) > 0 {
		t.Errorf("%v (-want +got):\n%s", warnings, diff)
	}
}

func TestObjectsOfTheClusterAreNamed(t *testing.T) {
	text, _ := written(t, object("scheduling.k8s.io/v1", "PriorityClass", "", "low"), object("scheduling.k8s.io/v1", "PriorityClass", "", "high"), object("scheduling.k8s.io/v1", "PriorityClass", "", "low"))
	for _, want := range []string{"kind: ClusterRole\nmetadata:\n  name: shop-serin-canary", "resourceNames:\n  - high\n  - low\n  resources:\n  - priorityclasses", "kind: ClusterRoleBinding"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

// rulesIn are the rules of the Role in a namespace, or of the ClusterRole for "".
func rulesIn(t *testing.T, namespace string, objects ...*unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	rights, _, err := Compute(objects, account, mapper())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rights {
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			if namespace == "" {
				return role.Rules
			}
		case *rbacv1.Role:
			if role.Namespace == namespace {
				return role.Rules
			}
		}
	}
	t.Fatalf("no role for %q", namespace)
	return nil
}

// One ConfigMap of a chart in kube-system must not open all ConfigMaps there, and one webhook
// must not let a tenant make others.
func TestNoRightReachesBeyondTheObjectsOfTheChartOutsideItsNamespace(t *testing.T) {
	for namespace, objects := range map[string][]*unstructured.Unstructured{
		"edge": {object("v1", "ConfigMap", "edge", "shop"), object("v1", "Service", "edge", "shop")},
		"":     {object("scheduling.k8s.io/v1", "PriorityClass", "", "shop")},
	} {
		for _, rule := range rulesIn(t, namespace, objects...) {
			if !slices.Equal(rule.ResourceNames, []string{"shop"}) || !slices.Equal(rule.Verbs, []string{"get", "patch", "update", "delete"}) {
				t.Errorf("in %q: %+v", namespace, rule)
			}
		}
	}
}

func TestObjectsOfAnotherNamespaceGetARoleThere(t *testing.T) {
	text, _ := written(t, object("v1", "Service", "edge", "shop"))
	if want := "kind: Role\nmetadata:\n  name: serin-canary\n  namespace: edge\n"; !strings.Contains(text, want) || !strings.Contains(text, "  name: serin-canary\n  namespace: edge\nroleRef:") {
		t.Errorf("lacks %q:\n%s", want, text)
	}
}

func TestRolesOfTheChartAreToldOf(t *testing.T) {
	_, warnings := written(t, object("rbac.authorization.k8s.io/v1", "RoleBinding", "", "reader"))
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "RoleBinding reader: the API server lets an account give only what it has itself") {
		t.Errorf("got %q", warnings)
	}
}

func TestAKindThatTheClusterDoesNotServeIsAnError(t *testing.T) {
	_, _, err := Compute([]*unstructured.Unstructured{object("example.org/v1", "Widget", "", "w")}, account, mapper())
	if err == nil || !strings.Contains(err.Error(), "Widget w: find its resource") {
		t.Errorf("error %v", err)
	}
}
