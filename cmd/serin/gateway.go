// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/traffic/gatewayapi"
)

// gatewayRouter is the router for routes of the Gateway API, as the cluster serves it
// now.
func (o *managerOptions) gatewayRouter(ctx context.Context, mgr manager.Manager) (*gatewayapi.Router, error) {
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	served, err := gatewayapi.Discover(mgr.GetRESTMapper(), asks.OpenAPIV3())
	if err != nil {
		return nil, err
	}
	if !o.scope.clusterObjects {
		served = served.WithoutClasses()
	}
	return gatewayapi.New(ctx, mgr.GetCache(), mgr.GetClient(), gatewayapi.Options{
		Namespaces: o.scope.namespaces, Served: served, Default: o.defaultRouter == gatewayapi.Name, Settle: o.gatewaySettle,
	})
}
