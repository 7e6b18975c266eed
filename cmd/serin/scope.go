// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/controllers/notify"
)

// scopeOptions are the flags that say which objects the manager knows of.
type scopeOptions struct {
	// namespaces that are served; none for all.
	namespaces []string
	// clusterObjects is whether it reads what belongs to no namespace.
	clusterObjects bool
}

func (o *scopeOptions) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.namespaces, "watch-namespace", nil, "namespace to serve, and to know objects of; can be repeated; default: all")
	flags.BoolVar(&o.clusterObjects, "cluster-objects", true,
		"read what belongs to no namespace: Freezes, ClusterAnalysisTemplates, GatewayClasses, the labels of namespaces, admission policies, and in the namespace default the addresses of the API server; may be false with --watch-namespace")
}

// check refuses flags that can't go together.
func (o *scopeOptions) check(flag string, namespaces []string) error {
	if len(o.namespaces) == 0 {
		if !o.clusterObjects {
			return errors.New("--cluster-objects: can be false only with --watch-namespace")
		}
		return nil
	}
	for _, namespace := range namespaces {
		if !slices.Contains(o.namespaces, namespace) {
			return fmt.Errorf("--%s: %q is not one of --watch-namespace", flag, namespace)
		}
	}
	return nil
}

// watched are the namespaces that the cache holds; nil for all.
func (o *scopeOptions) watched() map[string]cache.Config {
	if len(o.namespaces) == 0 {
		return nil
	}
	watched := map[string]cache.Config{}
	for _, namespace := range o.namespaces {
		watched[namespace] = cache.Config{}
	}
	return watched
}

// apiServer finds the addresses of the API server, which requests of users may not reach.
// Without the right to read what it says of itself, the one is known that it is called by.
func (o *scopeOptions) apiServer(mgr manager.Manager) (func(context.Context) ([]netip.Addr, error), error) {
	known := serverAddress(mgr.GetConfig().Host)
	switch {
	case len(o.namespaces) == 0 || slices.Contains(o.namespaces, metav1.NamespaceDefault):
		return notify.APIServer(mgr.GetClient(), known...), nil
	case !o.clusterObjects:
		return func(context.Context) ([]netip.Addr, error) { return known, nil }, nil
	}
	itself := cache.Config{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "kubernetes")}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: itself},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the API server's addresses: %w", err)
	}
	return notify.APIServer(c, known...), mgr.Add(c)
}
