// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is looked up by one label is what has all of them.
func TestReplicaSetsAreLookedUpByTheLabelThatFewestHave(t *testing.T) {
	replicaSet := func(name string, labels map[string]string) client.Object {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
	}
	_, c, _ := newReconcilerOf(t, func(string) error { return nil },
		replicaSet("website-1", map[string]string{"name": "website", "part-of": "the-product", "pod-template-hash": "1"}),
		replicaSet("website-2", map[string]string{"name": "website", "part-of": "the-product", "pod-template-hash": "2", "tier": ""}),
		replicaSet("shop-1", map[string]string{"name": "shop", "part-of": "the-product", "pod-template-hash": "1"}),
		replicaSet("bare", nil),
	)
	for name, test := range map[string]struct {
		labels map[string]string
		by     string // the label that is looked up
		want   []string
	}{
		"the name of the workload":         {map[string]string{"name": "website", "part-of": "the-product"}, "name=website", []string{"website-1", "website-2"}},
		"the longest value":                {map[string]string{"name": "shop", "part-of": "the-product"}, "part-of=the-product", []string{"shop-1"}},
		"no value":                         {map[string]string{"tier": ""}, "tier=", []string{"website-2"}},
		"a label that none has":            {map[string]string{"name": "other"}, "name=other", nil},
		"never the one of a template":      {map[string]string{"pod-template-hash": "1"}, "", []string{"shop-1", "website-1"}},
		"nor where there is another label": {map[string]string{"pod-template-hash": "1", "name": "shop"}, "name=shop", []string{"shop-1"}},
		"no label at all":                  {nil, "", []string{"bare", "shop-1", "website-1", "website-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			by := byLabel(&metav1.LabelSelector{MatchLabels: test.labels}, "website")
			var fields client.ListOptions
			if fields.ApplyOptions(by); fields.FieldSelector != nil {
				if got, _ := fields.FieldSelector.RequiresExactMatch(indexLabels); got != test.by {
					t.Errorf("looked up %q, want %q", got, test.by)
				}
			} else if test.by != "" {
				t.Errorf("looked up nothing, want %q", test.by)
			}
			list := &appsv1.ReplicaSetList{}
			if err := c.List(t.Context(), list, append(by, client.InNamespace("shop"), client.MatchingLabels(test.labels))...); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
	if by := byLabel(nil, "website"); by != nil {
		t.Errorf("of no selector %v is looked up", by)
	}
}
