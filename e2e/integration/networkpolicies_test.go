// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
)

// networkPolicy is one of a user.
func networkPolicy(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// ofProxies are what the NetworkPolicies of the website's proxies select, each with its owners.
func (p *stage) ofProxies(ctx context.Context) []string {
	list := &networkingv1.NetworkPolicyList{}
	if err := admin.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{traffic.LabelProxy: "website"}); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, policy := range list.Items {
		if !policy.DeletionTimestamp.IsZero() {
			continue
		}
		words := []string{metav1.FormatLabelSelector(&policy.Spec.PodSelector)}
		for _, t := range policy.Spec.PolicyTypes {
			words = append(words, string(t))
		}
		for _, owner := range policy.OwnerReferences {
			words = append(words, owner.Name)
		}
		out = append(out, strings.Join(words, " "))
	}
	slices.Sort(out)
	return out
}

// TestANamespaceThatDeniesByDefault has a release in a namespace whose policies let only the
// website's clients reach it. The proxies get what they need, before they start; what goes with
// a policy of the user goes with it; and nothing stays.
func TestANamespaceThatDeniesByDefault(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) {
		c.extras = append(c.extras,
			networkPolicy(t, "default-deny", `{podSelector: {}, policyTypes: [Ingress, Egress]}`),
			networkPolicy(t, "website", `{podSelector: {matchLabels: {app: website}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]}`),
			networkPolicy(t, "clients", `{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: website}}}]}]}`),
		)
	})
	p.release()
	proxies := traffic.LabelProxy + "=website Ingress Egress"
	all := []string{"app=client Egress clients", "app=website Ingress default-deny website", proxies}
	if got := p.ofProxies(t.Context()); !slices.Equal(got, all) {
		t.Errorf("the policies of the proxies are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
	has := func(what string, want ...string) {
		t.Helper()
		p.eventually(what, func(ctx context.Context) bool { return slices.Equal(p.ofProxies(ctx), want) })
	}
	p.delete(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "clients"}})
	has("clients that no policy limits any more are not isolated by one of the proxies'", all[1], all[2])
	made := &networkingv1.NetworkPolicyList{}
	if err := admin.List(t.Context(), made, client.InNamespace(p.namespace), client.MatchingLabels{traffic.LabelProxy: "website"}); err != nil {
		t.Fatal(err)
	}
	for i := range made.Items {
		if policy := &made.Items[i]; len(policy.OwnerReferences) == 0 {
			policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
			if err := admin.Update(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			p.eventually("what another actor opened is closed again", func(ctx context.Context) bool {
				now := &networkingv1.NetworkPolicy{}
				return admin.Get(ctx, client.ObjectKeyFromObject(policy), now) == nil && len(now.Spec.Ingress) == 2
			})
		}
	}
	p.delete(p.rolloutNamed("website"))
	has("no policy is left")
}
