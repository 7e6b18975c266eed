// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/controllers/traffic/nginx"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/tools"
)

// scrapeConfig reads what tells its counts at the addresses that it is filled with:
// Debian's Prometheus knows nothing of Kubernetes.
const scrapeConfig = `
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: data-plane
  static_configs: [{targets: [%s]}]
`

// requireStoredMetrics has a real Prometheus scrape the proxies, and the API of
// TrafficMetrics ask it, and compares what it tells with the load generator once more.
func (s *site) requireStoredMetrics(weights map[string]float64) {
	s.t.Helper()
	if s.storeMetrics("nginx", nginx.AgentPort, client.InNamespace(s.namespace), client.HasLabels{traffic.LabelProxy}) {
		s.requireMetrics(weights)
	}
}

// storeMetrics has a real Prometheus scrape a port of some pods, and the API of
// TrafficMetrics ask it. It reports whether that is possible.
func (s *site) storeMetrics(profile string, port int32, pods ...client.ListOption) bool {
	s.t.Helper()
	if !s.cluster.Local {
		s.t.Log("LEFT OUT: pods of a cluster elsewhere can't ask a Prometheus on this machine")
		return false
	}
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
	checkout, err := tools.Locate()
	if err != nil {
		s.t.Fatal(err)
	}
	s.helmAt(stage.SystemNamespace, "upgrade", stage.Release, filepath.Join(checkout.Root, "charts", "serin"), "--reuse-values", "--wait", "--timeout", stateLimit.String(),
		"--set", "metrics.source=prometheus,metrics.window=10s",
		"--set", "metrics.prometheus.profile="+profile+",metrics.prometheus.scrapeInterval=2s,metrics.prometheus.address="+address)
	return true
}
