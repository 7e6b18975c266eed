// SPDX-License-Identifier: Apache-2.0

package judge

import "testing"

// A canary can be as fast as stable at the median and far slower at the p99.
func TestAMetricSpeaksForAPromotionOnlyAsMuchAsItsWorstTrack(t *testing.T) {
	m := metric{kind: histogram, open: edges}
	for i, evidence := range [edges]float64{100, 2, 50} {
		for j := range hopes {
			m.tracks[i].favour[j] = evidence
		}
	}
	if got := m.assurance(1); got != 2 {
		t.Errorf("assurance = %v of tracks with 100, 2 and 50, want 2", got)
	}
}
