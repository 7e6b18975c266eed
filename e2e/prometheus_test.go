// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/e2e/demo/stage"
)

// scrapeConfig reads what tells its counts at the addresses that it is filled with:
// Debian's Prometheus knows nothing of Kubernetes.
const scrapeConfig = `
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: data-plane
  static_configs: [{targets: [%s]}]
`

// metricsSource is where the API of TrafficMetrics, which a cluster has once, takes them from:
// from the proxies themselves for many scenarios at once, or from the Prometheus of one.
type metricsSource struct{ lock sync.RWMutex }

// scraped keeps the source that the chart has until the attempt or what it returns ends.
func (m *metricsSource) scraped(a *attempt) (end func()) {
	m.lock.RLock()
	end = sync.OnceFunc(m.lock.RUnlock)
	a.Cleanup(end)
	return end
}

// storeMetrics has a real Prometheus scrape a port of some pods, and the API of TrafficMetrics
// ask it, until the attempt ends.
func (s *site) storeMetrics(profile string, port int32, pods ...client.ListOption) {
	s.t.Helper()
	s.requireLocal() // pods of a cluster elsewhere can't ask a Prometheus on this machine
	s.metrics.lock.Lock()
	s.t.Cleanup(s.metrics.lock.Unlock)
	list := &corev1.PodList{}
	if err := s.api.List(s.t.Context(), list, pods...); err != nil {
		s.t.Fatal(err)
	}
	var targets []string
	for _, pod := range list.Items {
		targets = append(targets, fmt.Sprintf("%q", fmt.Sprintf("%s:%d", pod.Status.PodIP, port)))
	}
	if len(targets) == 0 {
		s.t.Fatalf("there is no pod to scrape for the profile %s", profile)
	}
	address := sourcetest.PrometheusAt(s.t, s.cluster.MachineAddress, fmt.Sprintf(scrapeConfig, strings.Join(targets, ", ")))
	s.t.Cleanup(func() { s.setMetrics(context.WithoutCancel(s.t.Context()), "metrics.source=scrape,metrics.window=") })
	s.setMetrics(s.t.Context(), "metrics.source=prometheus,metrics.window=10s,metrics.prometheus.profile="+profile+
		",metrics.prometheus.scrapeInterval=2s,metrics.prometheus.address="+address)
}

// setMetrics changes values of the installed chart.
func (s *site) setMetrics(ctx context.Context, values string) {
	s.t.Helper()
	s.helmAt(ctx, stage.SystemNamespace, "upgrade", stage.Release, filepath.Join(s.checkout.Root, "charts", "serin"),
		"--reuse-values", "--wait", "--timeout", stateLimit.String(), "--set", values)
}
