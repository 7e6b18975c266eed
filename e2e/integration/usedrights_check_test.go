// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A chart that grants the manager five rights, and its dashboard another.
func TestRightsThatNoOperatorUsesAreReported(t *testing.T) {
	t.Parallel()
	objects := []*unstructured.Unstructured{
		role("manager", "apps", "deployments", "get", "list", "watch", "create", "patch"), role("split", "split.smi-spec.io", "trafficsplits/status", "patch"), role("helm", "", "serviceaccounts", "impersonate"),
		role("dashboard", "", "secrets", "get"),
		binding("manager", release), binding("split", release), binding("helm", release), binding("dashboard", release+"-dashboard"),
	}
	request := func(user, verb, more string) string {
		return fmt.Sprintf(`{"verb":%q,"user":{"username":%q}%s}`, verb, user, more)
	}
	deployment, status := `,"objectRef":{"resource":"deployments","apiGroup":"apps"}`, `,"objectRef":{"resource":"trafficsplits","apiGroup":"split.smi-spec.io","subresource":"status"}`
	everything := []string{
		request(operatorUser, "watch", deployment), request(operatorUser, "patch", deployment+`,"responseStatus":{"code":201}`), request(operatorUser, "patch", status),
		request(operatorUser, "create", deployment+`,"impersonatedUser":{"username":"system:serviceaccount:website:serin-canary"}`),
	}
	for name, test := range map[string]struct {
		log       []string
		elsewhere map[string]string
		want      []string
	}{
		"every right is used": {log: everything},
		"by another user": {
			log:  append([]string{request("oncall", "get", deployment)}, everything[1:]...),
			want: []string{"the chart grants the manager the right read apps/deployments, which no operator of any test used"},
		},
		"of the object, not of its status": {
			log:  append([]string{request(operatorUser, "patch", `,"objectRef":{"resource":"trafficsplits","apiGroup":"split.smi-spec.io"}`)}, everything[0], everything[1], everything[3]),
			want: []string{"the chart grants the manager the right patch split.smi-spec.io/trafficsplits/status, which no operator of any test used"},
		},
		"what acts as another account uses that right alone": {
			log: everything[2:],
			want: []string{
				"the chart grants the manager the right create apps/deployments, which no operator of any test used",
				"the chart grants the manager the right patch apps/deployments, which no operator of any test used",
				"the chart grants the manager the right read apps/deployments, which no operator of any test used",
			},
		},
		"an object that is there already is changed, not made": {
			log:  append([]string{request(operatorUser, "patch", deployment+`,"responseStatus":{"code":200}`)}, everything[0], everything[2], everything[3]),
			want: []string{"the chart grants the manager the right create apps/deployments, which no operator of any test used"},
		},
		"an exception": {log: everything[1:], elsewhere: map[string]string{"read apps/deployments": "TestUpgrade"}},
		"exceptions that are none": {
			log: everything, elsewhere: map[string]string{"read apps/deployments": "TestUpgrade", "read secrets": "TestLogin"},
			want: []string{
				"an operator uses the right read apps/deployments, which is called used elsewhere",
				"the chart does not grant the right read secrets, which is called used elsewhere",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := checkUsed(objects, strings.NewReader(strings.Join(test.log, "\n")+"\n{half a li"), test.elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got, err := checkUsed(nil, strings.NewReader(""), nil); err != nil || len(got) != 1 {
		t.Errorf("of a chart without roles: %q, %v", got, err)
	}
}

func role(name, group, resource string, verbs ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}},
	}}
}

func binding(role, account string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "ClusterRoleBinding", "metadata": map[string]any{"name": role},
		"roleRef":  map[string]any{"kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account}},
	}}
}
