// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/traffic"
	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/controllers/sampling"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/providers"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// addUserMetrics has the metrics measured that users name.
func (o *managerOptions) addUserMetrics(mgr manager.Manager, measured *sampling.Routed, policy egress.Policy, roots *x509.CertPool) (*metrics.Loop, error) {
	direct, err := uncached(mgr)
	if err != nil {
		return nil, err
	}
	providers := providers.Providers{
		Caller: o.caller(policy, roots, false), Shared: o.caller(policy.Unlisted(), roots, true),
		Reader: direct, Writer: direct, Clock: clock.RealClock{},
		Traffic: func(of resolve.Release) traffic.Windows {
			key := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
			return func(after time.Time) ([]analysis.Window, analysis.Health) { return measured.Windows(key, after) }
		},
		ServiceAccount: o.outbound.serviceAccount,
	}
	slots, err := newSlots("metrics", 32)
	if err != nil {
		return nil, err
	}
	loop := metrics.New(o.traces.Metrics(providers.Build), direct, clock.RealClock{}, metrics.Options{Slots: slots})
	if err := mgr.Add(loop); err != nil {
		return nil, fmt.Errorf("add the metrics of users: %w", err)
	}
	return loop, nil
}

// caller makes the calls of metrics, with connections of its own. Only the cluster's own systems
// are told of traces.
func (o *managerOptions) caller(policy egress.Policy, roots *x509.CertPool, shared bool) *fetch.Caller {
	return &fetch.Caller{
		HTTP:      o.traces.Outbound(egress.NewClient(policy, egress.Options{Timeout: connectTimeout, Roots: roots, KeepAlive: true}), shared),
		UserAgent: "serin/" + build.Version(),
	}
}

// uncached is a client for what users read: one with a cache would watch all that it writes.
func uncached(mgr manager.Manager) (client.Client, error) {
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// connectTimeout is how long a place of measurement may take to be reached.
const connectTimeout = 5 * time.Second
