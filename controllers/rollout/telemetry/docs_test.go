// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// metricRow is a row of the page's table: name, labels and type.
var metricRow = regexp.MustCompile("(?m)^\\| `(serin_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\| ([a-z]+) \\|")

func TestThePageListsEveryMetricWithItsLabels(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(row[1], "serin_cache_") || strings.HasPrefix(row[1], "serin_slots_") { // the manager's, of all controllers
			continue
		}
		documented[row[1]] = row[3] + " " + strings.Join(slices.Sorted(slices.Values(strings.Split(row[2], ","))), ",")
	}
	m := New()
	m.Show(key(0), releasing(0, new(int32(20))))
	m.count(transition{ended: []v1alpha1.HistoryEntry{{Outcome: "Promoted", StartedAt: new(after(0)), EndedAt: after(time.Hour)}}})
	families, err := registered(t, m).Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		served[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("docs/metrics.md (-served +documented):\n%s", diff)
	}
	for _, value := range slices.Concat(outcomes, causes, verdicts, interventions) {
		if !strings.Contains(string(page), "`"+value+"`") {
			t.Errorf("docs/metrics.md does not explain the label %s", value)
		}
	}
}
