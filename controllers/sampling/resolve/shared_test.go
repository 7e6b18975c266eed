// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func TestWhoMayUseAClusterMetricProvider(t *testing.T) {
	selecting := func(s *metav1.LabelSelector) v1alpha1.ClusterMetricProviderSpec {
		return v1alpha1.ClusterMetricProviderSpec{Type: v1alpha1.ProviderPrometheus, Address: "http://p", NamespaceSelector: s}
	}
	teams := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}}
	for name, test := range map[string]struct {
		shared Shared
		kind   v1alpha1.ProviderType
		want   string
	}{
		"everybody":          {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(nil)}}, v1alpha1.ProviderPrometheus, ""},
		"every namespace":    {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(&metav1.LabelSelector{})}}, v1alpha1.ProviderPrometheus, ""},
		"that namespace":     {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(teams)}, Namespace: map[string]string{"team": "shop"}}, v1alpha1.ProviderPrometheus, ""},
		"another namespace":  {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(teams)}, Namespace: map[string]string{"team": "bank"}}, v1alpha1.ProviderPrometheus, "the namespaceSelector of the ClusterMetricProvider p does not select this namespace"},
		"no labels at all":   {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(teams)}}, v1alpha1.ProviderPrometheus, "does not select this namespace"},
		"a broken selector":  {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(broken)}}, v1alpha1.ProviderPrometheus, "ask a cluster admin to correct it"},
		"another type":       {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(nil)}}, v1alpha1.ProviderGraphite, "is of the type prometheus, and the metric of graphite; name another one"},
		"none of that name":  {Shared{}, v1alpha1.ProviderPrometheus, "there is no ClusterMetricProvider p; correct the name"},
		"no right to read":   {Shared{Unreadable: true}, v1alpha1.ProviderPrometheus, "reads no ClusterMetricProviders (clusterObjects.enabled of its chart is false); give an address"},
		"not for this field": {Shared{Providers: map[string]v1alpha1.ClusterMetricProviderSpec{"p": selecting(nil)}}, v1alpha1.ProviderWeb, "name another one"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Metric{Field: "spec.analysis.metrics[0]"}
			m.Provider.Type, m.Provider.ProviderRef = test.kind, &v1alpha1.MetricProviderReference{Name: "p"}
			got, err := test.shared.Attach([]Metric{{Name: "other"}, m})
			if test.want == "" {
				if err != nil || got[0].Shared != nil || got[1].Shared == nil || got[1].Shared.Address != "http://p" {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "spec.analysis.metrics[0].provider.providerRef: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
