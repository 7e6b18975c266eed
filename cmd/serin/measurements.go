// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/analysis/source/scrape"
	"github.com/serin-dev/serin/controllers/sampling"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// addMeasurements has the traffic of releases measured: what Serin's own proxies count by
// them, and what others share by the TrafficMetrics API.
func (o *managerOptions) addMeasurements(mgr manager.Manager, routers []traffic.Router) (*sampling.Routed, error) {
	lister, err := sampling.NewLister(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	proxies := sampling.New(mgr.GetClient(), nginx.AgentPort, scrape.New(scrape.Options{}), clock.RealClock{}, o.window)
	others := sampling.NewTrafficMetrics(lister, clock.RealClock{})
	measured := sampling.NewRouted(sampling.RoutedOptions{
		Splits: mgr.GetClient(), DefaultRouter: o.defaultRouter, ProxyRouters: proxyRouters(routers), Proxies: proxies, Others: others,
	})
	for _, r := range []manager.Runnable{proxies, others, measured} {
		if err := mgr.Add(r); err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// proxyRouters are those that run proxies of Serin's.
func proxyRouters(routers []traffic.Router) []string {
	var names []string
	for _, r := range routers {
		if r.Means() == traffic.MeansProxies {
			names = append(names, r.Name())
		}
	}
	return names
}
