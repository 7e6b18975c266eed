// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/schedule"
)

func TestPropose(t *testing.T) {
	tests := []struct {
		name      string
		traffic   rolloutview.Traffic
		tolerance v1alpha1.PercentagePoints
		want      string
	}{
		{"much traffic begins small", rolloutview.Traffic{PerSecond: 2000, FailureRate: .001}, "0.5pp", "5%/2m0s/0.32pp 25%/2m0s/0.24pp 50%/2m0s/0.23pp tolerance 0.5pp"},
		{"a service that fails more often needs longer", rolloutview.Traffic{PerSecond: 2000, FailureRate: .02}, "0.5pp", "5%/20m0s/0.49pp 25%/5m0s/0.49pp 50%/4m0s/0.49pp tolerance 0.5pp"},
		{"less traffic gives the canary more of it", rolloutview.Traffic{PerSecond: 20, FailureRate: .001}, "0.5pp", "20%/20m0s/0.5pp 50%/10m0s/0.47pp tolerance 0.5pp"},
		{"a wide tolerance is detected sooner", rolloutview.Traffic{PerSecond: 20, FailureRate: .001}, "5pp", "5%/4m0s/4.8pp 25%/2m0s/3.4pp 50%/2m0s/3pp tolerance 5pp"},
		{"only the last step detects it", rolloutview.Traffic{PerSecond: 5, FailureRate: .001}, "0.5pp", "20%/1h0m0s/0.51pp 50%/45m0s/0.47pp tolerance 0.5pp"},
		{"too little traffic for the tolerance", rolloutview.Traffic{PerSecond: 1, FailureRate: .001}, "0.5pp", "20%/55m0s/1.9pp 50%/40m0s/2pp tolerance 2pp, raised"},
		{"next to no traffic", rolloutview.Traffic{PerSecond: .001}, "0.5pp", "20%/1h0m0s/ 50%/1h0m0s/ tolerance 0.5pp"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := rolloutview.Propose(test.traffic, test.tolerance)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, words(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := rolloutview.Propose(rolloutview.Traffic{}, "much"); err == nil || !strings.Contains(err.Error(), `"much" is not`) {
		t.Errorf("got %v", err)
	}
}

func words(p rolloutview.Proposal) string {
	var list []string
	for _, s := range p.Steps {
		list = append(list, fmt.Sprintf("%d%%/%s/%s", s.Weight, s.Hold, s.MinDetectableEffect))
	}
	text := strings.Join(list, " ") + " tolerance " + string(p.Tolerance)
	if p.Raised {
		text += ", raised"
	}
	return text
}

// What rollout plan says of the proposed steps is no worse than what they were proposed for.
func TestAProposalDetectsWhatItSays(t *testing.T) {
	now := rolloutview.Traffic{PerSecond: 50, FailureRate: .001}
	p, err := rolloutview.Propose(now, "0.5pp")
	if err != nil {
		t.Fatal(err)
	}
	ro := &v1alpha1.Rollout{}
	ro.Spec.Analysis = &v1alpha1.Analysis{Tolerance: p.Tolerance}
	for _, s := range p.Steps {
		ro.Spec.Strategy.Steps = append(ro.Spec.Strategy.Steps, v1alpha1.Step{Weight: s.Weight, Hold: v1alpha1.Duration(s.Hold.String())})
	}
	plan, err := rolloutview.Plan(ro, schedule.Calendar{}, noon)
	if err == nil {
		err = rolloutview.Detect(ro, plan, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range p.Steps {
		got, err := v1alpha1.PercentagePoints(plan[i].MinDetectableEffect).Fraction(true, 100)
		if err != nil || !s.Detects || got > .005 {
			t.Errorf("step %d: %q, %v", i, plan[i].MinDetectableEffect, err)
		}
	}
}
