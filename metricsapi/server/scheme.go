// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// scheme has the kinds that are answered with, and no others.
var scheme = newScheme()

// codecs encode those kinds.
var codecs = serializer.NewCodecFactory(scheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(metricsv1.AddToScheme(s))
	// The internal version that the library expects has the same types: nothing is
	// stored, and there is one version.
	internal := schema.GroupVersion{Group: metricsv1.GroupVersion.Group, Version: runtime.APIVersionInternal}
	s.AddKnownTypes(internal, &metricsv1.TrafficMetrics{}, &metricsv1.TrafficMetricsList{})
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	utilruntime.Must(s.SetVersionPriority(metricsv1.GroupVersion))
	utilruntime.Must(s.AddFieldLabelConversionFunc(metricsv1.GroupVersion.WithKind("TrafficMetrics"), convertField))
	return s
}

// fieldName is the one field that a list can be limited by.
const fieldName = "metadata.name"

// convertField refuses every other field, with the answer 400.
func convertField(label, value string) (string, string, error) {
	if label != fieldName {
		return "", "", fmt.Errorf("fieldSelector: %q is not supported for TrafficMetrics; use %s, or a labelSelector", label, fieldName)
	}
	return label, value, nil
}

// nameIn returns the name that a field selector asks for; "" without one.
func nameIn(selector fields.Selector) (string, error) {
	if selector == nil || selector.Empty() {
		return "", nil
	}
	name, exact := selector.RequiresExactMatch(fieldName)
	if !exact || len(selector.Requirements()) != 1 {
		return "", fmt.Errorf("fieldSelector: %q is not supported for TrafficMetrics; use %s=NAME", selector, fieldName)
	}
	return name, nil
}

// textual leaves the binary forms out, which the types have no definition of: a client
// that takes nothing else is told so, and one that takes JSON too gets that.
type textual struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are JSON and YAML.
func (t textual) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(t.NegotiatedSerializer.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType != runtime.ContentTypeJSON && i.MediaType != runtime.ContentTypeYAML
	})
}
