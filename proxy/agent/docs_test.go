// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/counts"
	"github.com/serin-dev/serin/proxy/udp"
)

var (
	// metricsRow is the first cell of a row of the page's table, with one metric or more.
	metricsRow = regexp.MustCompile("(?m)^\\| `serin_proxy_[^|]*\\|")
	inRow      = regexp.MustCompile("`(serin_proxy_[a-z_]+)(?:\\{([a-z,]+)\\})?`")
	inRegistry = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
)

func TestThePageListsEveryMetricOfTheProxyWithItsLabels(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range metricsRow.FindAllString(string(page), -1) {
		for _, m := range inRow.FindAllStringSubmatch(row, -1) {
			documented[m[1]] = m[2]
		}
	}
	_, registry := newMetrics(append(udp.New(nil, clock.RealClock{}, logr.Discard()).Collectors(), counts.New("", clock.RealClock{}))...)
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		registry.Describe(described)
	}()
	served := map[string]string{}
	for d := range described {
		m := inRegistry.FindStringSubmatch(d.String())
		served[m[1]] = m[2]
	}
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("docs/proxy.md (-served +documented):\n%s", diff)
	}
}
