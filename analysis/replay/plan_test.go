// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
)

const rollout = `apiVersion: serin.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  service: shop
`

func TestReadPlan(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {replicas: 3}\n"
	const argo = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: other}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"a Rollout", rollout, ""},
		{"a Rollout among other objects", deployment + "---\n" + argo + "---\n" + rollout + "---\n", ""},
		{"a Rollout as the cluster shows it", rollout + "status: {observedGeneration: 3}\n", ""},
		{"no Rollout", deployment, "no Rollout of serin.dev/v1alpha1"},
		{"nothing", "", "no Rollout of serin.dev/v1alpha1"},
		{"two Rollouts", rollout + "---\n" + rollout, "two Rollouts"},
		{"an unknown field", rollout + "  analyses: {}\n", `unknown field "spec.analyses"`},
		{"a field twice", rollout + "  service: other\n", `key "service" already set`},
		{"a bad setting", rollout + "  analysis: {tolerance: much}\n", "spec.analysis.tolerance"},
		{"a bad hold", rollout + "  strategy: {steps: [{weight: 5, hold: long}]}\n", "spec.strategy.steps[0].hold"},
		{"a bad setting of a step", rollout + "  strategy: {steps: [{weight: 5, analysis: {tolerance: 99pp}}]}\n", "spec.strategy.steps[0].analysis.tolerance"},
		{"a bad ramp", rollout + "  strategy: {ramp: {every: often}}\n", "spec.strategy.ramp.every"},
		{"no YAML", "{", "error converting YAML"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := replay.ReadPlan(strings.NewReader(tt.text))
			if tt.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// quiet is traffic without a failure, a window of 30 seconds on each line.
func quiet(t *testing.T, steps ...string) []replay.Window {
	t.Helper()
	var text strings.Builder
	for i, step := range steps {
		line := strings.NewReplacer(`"t": 5`, `"t": `+[]string{"30", "60", "90", "120", "150", "180"}[i], `"seconds": 5`, `"seconds": 30`,
			`"step": 0`, `"step": `+step, `"requests": 10, "failures": 1`, `"requests": 60, "failures": 0`, `"requests": 40, "failures": 2`, `"requests": 240, "failures": 0`).Replace(okLine)
		text.WriteString(line + "\n")
	}
	w, err := replay.Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func actions(t *testing.T, plan replay.Plan, w []replay.Window) []policy.Action {
	t.Helper()
	var got []policy.Action
	err := replay.Run(plan, w, func(r replay.Result) error {
		got = append(got, r.Action)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestStepsAreHeldAsTheRolloutSays(t *testing.T) {
	plan, err := replay.ReadPlan(strings.NewReader(rollout + "  strategy: {steps: [{weight: 20, hold: 1m}, {weight: 20, hold: 90s}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Action{policy.Hold, policy.Step, policy.Hold, policy.Hold, policy.Promote, policy.Hold}
	if diff := cmp.Diff(want, actions(t, plan, quiet(t, "0", "0", "1", "1", "1", "1"))); diff != "" {
		t.Error(diff)
	}
	err = replay.Run(plan, quiet(t, "0", "2"), func(replay.Result) error { return nil })
	if err == nil || err.Error() != "line 2: step: 2; the Rollout has the steps 0 to 1" {
		t.Errorf("error %v", err)
	}
}

func TestWithoutARolloutEachPassCouldEndTheStep(t *testing.T) {
	want := []policy.Action{policy.Hold, policy.Step, policy.Step, policy.Step} // the first window is of the start-up phase
	if diff := cmp.Diff(want, actions(t, replay.DefaultPlan(), quiet(t, "0", "0", "1", "1"))); diff != "" {
		t.Error(diff)
	}
}

func TestEvidencePromotesEarlyWhereTheRolloutSaysSo(t *testing.T) {
	recorded := windows(t, "testdata/good-canary/windows.jsonl")
	for onConclusive, want := range map[string]policy.Action{"Promote": policy.Promote, "Hold": policy.Hold} {
		plan, err := replay.ReadPlan(strings.NewReader(rollout + "  analysis: {onConclusive: " + onConclusive + "}\n" +
			"  strategy: {steps: [{weight: 5, hold: 1m}, {weight: 20, hold: 1m}, {weight: 50, hold: 1h}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := policy.Hold
		for _, action := range actions(t, plan, recorded) {
			if action == policy.Promote {
				got = action
			}
		}
		if got != want {
			t.Errorf("onConclusive %s: %s, want %s", onConclusive, got, want)
		}
	}
}

func TestAStepWithoutTrafficEndsWithItsHold(t *testing.T) {
	plan, err := replay.ReadPlan(strings.NewReader(rollout + "  strategy: {steps: [{weight: 0, hold: 1m}, {weight: 20}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	silent := quiet(t, "0", "0")
	for i := range silent {
		silent[i].Weight, silent[i].Canary.Requests = 0, 0
	}
	if diff := cmp.Diff([]policy.Action{policy.Hold, policy.Step}, actions(t, plan, silent)); diff != "" {
		t.Error(diff)
	}
}

func TestARampIsHeldAtEachWeight(t *testing.T) {
	plan, err := replay.NewPlan(&v1alpha1.RolloutSpec{Strategy: v1alpha1.Strategy{Ramp: &v1alpha1.Ramp{From: 10, To: 50, By: new(int32(10)), Every: "1m"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Action{policy.Hold, policy.Step, policy.Hold, policy.Step}
	if diff := cmp.Diff(want, actions(t, plan, quiet(t, "0", "0", "1", "1"))); diff != "" {
		t.Error(diff)
	}
}

func TestTheSettingsOfTheRolloutAreUsed(t *testing.T) {
	plan, err := replay.ReadPlan(strings.NewReader(rollout + "  analysis: {minRequests: 61, onInconclusive: RollBack}\n  strategy: {steps: [{weight: 20, hold: 1m}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Action{policy.Hold, policy.RollBack}, actions(t, plan, quiet(t, "0", "0"))); diff != "" {
		t.Error(diff)
	}
}
