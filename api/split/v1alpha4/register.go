// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "split.smi-spec.io", Version: "v1alpha4"}

// Versions of the group in which a cluster may serve TrafficSplits, the best first. The
// types of this package read and write all of them: v1alpha2 and v1alpha1 lack
// spec.matches, and in v1alpha1 a weight is a quantity, which a number is too.
var Versions = []string{"v1alpha4", "v1alpha3", "v1alpha2", "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error { return AddVersionToScheme(GroupVersion.Version)(s) }

// AddVersionToScheme registers the kinds under the version that the cluster serves. A
// scheme may have only one of them: a type in two versions has none of its own.
func AddVersionToScheme(version string) func(*runtime.Scheme) error {
	gv := schema.GroupVersion{Group: GroupVersion.Group, Version: version}
	return func(s *runtime.Scheme) error {
		s.AddKnownTypes(gv, &TrafficSplit{}, &TrafficSplitList{})
		metav1.AddToGroupVersion(s, gv)
		return nil
	}
}
