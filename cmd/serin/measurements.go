// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/analysis/source/scrape"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/controllers/sampling"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// addMeasurements has the traffic of releases measured: what Serin's own proxies count by
// them, and what others share by the TrafficMetrics API.
func (o *managerOptions) addMeasurements(mgr manager.Manager, routers []traffic.Router) (*sampling.Routed, error) {
	lister, err := sampling.NewLister(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	changed := changes.New()
	proxies, err := newProxies(mgr, "traffic", o.window, changed)
	if err != nil {
		return nil, err
	}
	others := sampling.NewTrafficMetrics(lister, clock.RealClock{}, changed)
	if len(o.scope.namespaces) > 0 {
		others.Apart()
	}
	measured := sampling.NewRouted(sampling.RoutedOptions{
		Splits: mgr.GetClient(), DefaultRouter: o.defaultRouter, ProxyRouters: proxyRouters(routers), Proxies: proxies, Others: others,
		Changes: changed,
	})
	for _, r := range []manager.Runnable{proxies, others} {
		if err := mgr.Add(r); err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// servesTrafficMetrics reports whether the cluster serves TrafficMetrics, or may: what can't be
// found out is not absent.
func servesTrafficMetrics(mapper meta.RESTMapper) func() bool {
	return func() bool {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: metricsv1.GroupVersion.Group, Kind: "TrafficMetrics"}, metricsv1.GroupVersion.Version)
		return !meta.IsNoMatchError(err)
	}
}

// newProxies reads the counters of Serin's own proxies, in slots for that work.
func newProxies(mgr manager.Manager, work string, interval time.Duration, changed changes.Channel) (*sampling.Proxies, error) {
	slots, err := newSlots(work, 32)
	if err != nil {
		return nil, err
	}
	return sampling.NewProxies(sampling.ProxiesOptions{
		Pods: mgr.GetClient(), Port: conf.AgentPort, Source: scrape.New(scrape.Options{}), Clock: clock.RealClock{}, Interval: interval, Changes: changed,
		Slots: slots,
	}), nil
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
