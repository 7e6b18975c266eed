// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Shared are the ClusterMetricProviders that the metrics of a Rollout name.
type Shared struct {
	// Providers by their names. What is not there does not exist.
	Providers map[string]v1alpha1.ClusterMetricProviderSpec
	// Namespace has the labels of the Rollout's namespace.
	Namespace map[string]string
	// Unreadable is whether the operator reads none.
	Unreadable bool
}

// Attach gives each metric the provider that it names, if its namespace may use it.
func (s Shared) Attach(metrics []Metric) ([]Metric, error) {
	for i := range metrics {
		m := &metrics[i]
		if m.Provider.ProviderRef == nil {
			continue
		}
		shared, err := s.find(m.Provider.ProviderRef.Name, m.Provider.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.provider.providerRef: %w", m.Field, err)
		}
		m.Shared = shared
	}
	return metrics, nil
}

func (s Shared) find(name string, kind v1alpha1.ProviderType) (*v1alpha1.ClusterMetricProviderSpec, error) {
	if s.Unreadable {
		return nil, errors.New("the operator of this namespace reads no ClusterMetricProviders (clusterObjects.enabled of its chart is false); give an address")
	}
	p, found := s.Providers[name]
	if !found {
		return nil, fmt.Errorf("there is no ClusterMetricProvider %s; correct the name, or ask a cluster admin for it", name)
	}
	if p.Type != kind {
		return nil, fmt.Errorf("the ClusterMetricProvider %s is of the type %s, and the metric of %s; name another one", name, p.Type, kind)
	}
	if p.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(p.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("the namespaceSelector of the ClusterMetricProvider %s is not valid; ask a cluster admin to correct it", name)
		}
		if !selector.Matches(labels.Set(s.Namespace)) {
			return nil, fmt.Errorf("the namespaceSelector of the ClusterMetricProvider %s does not select this namespace; ask a cluster admin, or name another one", name)
		}
	}
	return &p, nil
}
