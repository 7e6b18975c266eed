// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Cluster is the part of a Kubernetes API that an agent may use.
type Cluster struct {
	// Cache of the one split and of the Services and HTTPRouteGroups of its
	// namespace, not started.
	Cache cache.Cache
	// Client reads past the cache.
	Client client.Reader
}

// NewCluster connects to the API. It sends nothing yet, and never asks the API
// what kinds it has.
func NewCluster(config *rest.Config, split types.NamespacedName) (Cluster, error) {
	scheme, mapper, err := kinds()
	if err != nil {
		return Cluster{}, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the API: %w", err)
	}
	namespace := map[string]cache.Config{split.Namespace: {}}
	ca, err := cache.New(config, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:         {Namespaces: namespace},
			&specsv1.HTTPRouteGroup{}: {Namespaces: namespace},
			&splitv1.TrafficSplit{}:   {Namespaces: namespace, Field: fields.OneTermEqualSelector("metadata.name", split.Name)},
		},
	})
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the API: %w", err)
	}
	cl, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the API: %w", err)
	}
	return Cluster{Cache: ca, Client: cl}, nil
}

// kinds are those that an agent knows.
func kinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{splitv1.AddToScheme, specsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{
		splitv1.GroupVersion.WithKind("TrafficSplit"),
		corev1.SchemeGroupVersion.WithKind("Service"), specsv1.GroupVersion.WithKind("HTTPRouteGroup"),
		// The cache of one namespace asks whether the kind of a list has namespaces.
		corev1.SchemeGroupVersion.WithKind("ServiceList"), specsv1.GroupVersion.WithKind("HTTPRouteGroupList"),
	} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	return scheme, mapper, nil
}
