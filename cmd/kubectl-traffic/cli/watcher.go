// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// WatcherAs speaks to a cluster as the bearer of a token. Of the configuration only the address
// and what verifies the server are used, and no other credentials.
func WatcherAs(token string, cluster *rest.Config) (client.WithWatch, error) {
	config := as(token, cluster)
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme(splitVersion(mapper))
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{HTTPClient: http, Mapper: mapper, Scheme: scheme, FieldOwner: FieldManager})
}

// as is how to reach a cluster with a token and no other credentials.
func as(token string, cluster *rest.Config) *rest.Config {
	config := rest.AnonymousClientConfig(cluster)
	config.BearerToken = token
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.WarningHandler = rest.NoWarnings{}
	return config
}
