// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
)

// countedReader counts the lists past the cache.
type countedReader struct {
	client.Reader
	lists int
}

func (c *countedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, options...)
}

// Pods are read past the cache, so only for a policy that may distinguish between them.
func TestPodsAreReadOnlyForPoliciesThatConcernTheSplit(t *testing.T) {
	ofAnother := map[string]string{traffic.LabelProxy: "db", traffic.LabelProxyNamespace: "shop"}
	for name, test := range map[string]struct {
		namespace, spec string
		labels          map[string]string
		want            int // reads
	}{
		"none":                                {},
		"of the namespace":                    {namespace: "shop", spec: "{podSelector: {}}", want: 1},
		"that was made for the split":         {namespace: "shop", spec: "{podSelector: {}}", labels: map[string]string{traffic.LabelProxy: "web", traffic.LabelProxyNamespace: "shop"}},
		"that was made for another split":     {namespace: "shop", spec: "{podSelector: {}}", labels: ofAnother, want: 1},
		"of another split's proxies":          {namespace: "shop", spec: "{podSelector: {matchLabels: {serin.dev/proxy: db}}, policyTypes: [Ingress]}", labels: ofAnother},
		"of what these may send, too":         {namespace: "shop", spec: "{podSelector: {matchLabels: {serin.dev/proxy: db}}, policyTypes: [Ingress, Egress], egress: [{}]}", labels: ofAnother, want: 1},
		"of a user, for the same pods":        {namespace: "shop", spec: "{podSelector: {matchLabels: {serin.dev/proxy: db}}, policyTypes: [Ingress]}", want: 1},
		"of others, for ingress":              {namespace: "other", spec: "{podSelector: {}}"},
		"of others, among themselves":         {namespace: "other", spec: "{egress: [{to: [{podSelector: {}}]}]}"},
		"of others, to another namespace":     {namespace: "other", spec: "{egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]}]}"},
		"of others, to the split's namespace": {namespace: "other", spec: "{egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}]}]}", want: 1},
		"of others, to addresses":             {namespace: "other", spec: "{egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}", want: 1},
		"of others, to all":                   {namespace: "other", spec: "{egress: [{ports: [{port: 53}]}]}", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			target := shopTarget()
			target.Asked, target.Root = true, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: target.Resolved.Root}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
			}
			r, api := made(t, target)
			if test.spec != "" {
				p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "policy", Labels: test.labels}}
				must(t, yaml.UnmarshalStrict([]byte(test.spec), &p.Spec))
				must(t, api.Create(t.Context(), p))
			}
			pods := &countedReader{Reader: api}
			r.options.AppPods, r.options.Access.Restricted = pods, []string{"*"}
			for range 2 { // the second time nothing has changed
				o, restricted := conditions(t, r, target)["NetworkPolicy"]
				if test.want == 0 && (!restricted || !o.Unwanted && !o.Prepares) {
					t.Errorf("the policy that restricts the port of counters is %+v, want it to be made before the proxies", o)
				}
			}
			if pods.lists != test.want {
				t.Errorf("pods were read %d times, want %d", pods.lists, test.want)
			}
		})
	}
}
