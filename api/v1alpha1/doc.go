// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the serin.dev/v1alpha1 API: what a user declares in
// Git and what Serin reports back. It contains types, constants and total
// functions on them; it reads nothing and decides nothing.
//
// +kubebuilder:object:generate=true
// +groupName=serin.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "serin.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Rollout{}, &RolloutList{}, &Freeze{}, &FreezeList{},
		&AnalysisTemplate{}, &AnalysisTemplateList{}, &ClusterAnalysisTemplate{}, &ClusterAnalysisTemplateList{}, &AnalysisResult{}, &AnalysisResultList{},
		&CanaryRelease{}, &CanaryReleaseList{}, &ClusterMetricProvider{}, &ClusterMetricProviderList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
