// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/tools"
)

// scrapeConfig is that of docs/trafficmetrics-sources.md, from outside of the cluster and
// more often. The kubeconfig's first place is filled with its path.
const scrapeConfig = `
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: serin-proxies
  kubernetes_sd_configs: [{role: pod, kubeconfig_file: %q}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_labelpresent_serin_dev_proxy], regex: "true", action: keep}
  - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: serin-status, action: keep}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: instance}
`

// requireStoredMetrics has a real Prometheus scrape the proxies, and the API of
// TrafficMetrics ask it, and compares what it tells with the load generator once more.
func (s *site) requireStoredMetrics(weights map[string]float64) {
	s.t.Helper()
	if !s.cluster.Local {
		s.t.Log("LEFT OUT: pods of a cluster elsewhere can't ask a Prometheus on this machine")
		return
	}
	address := sourcetest.PrometheusAt(s.t, s.nodeAddress(), fmt.Sprintf(scrapeConfig, s.cluster.Kubeconfig))
	checkout, err := tools.Locate()
	if err != nil {
		s.t.Fatal(err)
	}
	s.helmAt(stage.SystemNamespace, "upgrade", stage.Release, filepath.Join(checkout.Root, "charts", "serin"), "--reuse-values", "--wait", "--timeout", stateLimit.String(),
		"--set", "metrics.source=prometheus,metrics.window=10s",
		"--set", "metrics.prometheus.profile=nginx,metrics.prometheus.scrapeInterval=2s,metrics.prometheus.address="+address)
	s.requireMetrics(weights)
}

// nodeAddress is where the local cluster's API server listens, which pods reach.
func (s *site) nodeAddress() string {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	return server.Hostname()
}
