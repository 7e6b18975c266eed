// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of the namespaces in which the chart's policies are in force. On a cluster they
// are everywhere; here tests without them run beside those with them.
const (
	// labelGuarded marks those in which a policy, or a webhook, holds changed Deployments, and
	// policies keep Serin's keys in the selectors of Services.
	labelGuarded = "serin.dev/test-guarded"
	// labelDecisions marks those in which decisions are checked: "signed" as on a cluster
	// that serves the kind that signs them, "unsigned" where nothing does.
	labelDecisions   = "serin.dev/test-decisions"
	signed, unsigned = "signed", "unsigned"
	// byWebhook is the value of both where webhooks do it.
	byWebhook = "webhook"
)

// inNamespaces are the values of a label for which a binding holds, by the binding's
// name. That of the policy for pods that read copies holds everywhere.
var inNamespaces = map[string]struct {
	label  string
	values []any
}{
	guardName:         {labelGuarded, []any{"true"}},
	selectorsPolicy:   {labelGuarded, []any{"true"}},
	decisionsPolicy:   {labelDecisions, []any{signed, unsigned, byWebhook}},
	promotersPolicy:   {labelDecisions, []any{signed, unsigned, byWebhook}},
	canaryDecisions:   {labelDecisions, []any{signed, unsigned, byWebhook}},
	rightsPolicy:      {labelDecisions, []any{signed, unsigned, byWebhook}},
	splitRightsPolicy: {labelDecisions, []any{signed, unsigned, byWebhook}},
	signingPolicy:     {labelDecisions, []any{signed}},
}

// policies are those of the chart, and their bindings.
func policies() []client.Object {
	names, bindings := []string{"ValidatingAdmissionPolicy"}, []string{"ValidatingAdmissionPolicyBinding"}
	if servesPolicies {
		names, bindings = append(names, "MutatingAdmissionPolicy"), append(bindings, "MutatingAdmissionPolicyBinding")
	}
	objects := kinds(chart, names...)
	for _, o := range kinds(chart, bindings...) {
		if where, found := inNamespaces[o.GetName()]; found {
			selector := []any{map[string]any{"key": where.label, "operator": "In", "values": where.values}}
			spec := o.(*unstructured.Unstructured).Object["spec"].(map[string]any)
			spec["matchResources"] = map[string]any{"namespaceSelector": map[string]any{"matchExpressions": selector}}
		}
		objects = append(objects, o)
	}
	return objects
}

// labelled has a namespace carry a label from its first moment.
func labelled(key, value string) func(map[string]string) {
	return func(labels map[string]string) { labels[key] = value }
}

// guardedIf has a policy hold the changed Deployments of a namespace.
func guardedIf(guarded bool) func(map[string]string) {
	return func(labels map[string]string) {
		if guarded {
			labels[labelGuarded] = "true"
		}
	}
}

// withoutFixedPolicies takes those policies away for the time of a test that have one
// name whatever the release is called. The test must not run in parallel.
func withoutFixedPolicies(t *testing.T) {
	t.Helper()
	for _, o := range policies() {
		if !slices.Contains([]string{guardName, configurationPolicy}, o.GetName()) {
			continue
		}
		if err := admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Create(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
}
