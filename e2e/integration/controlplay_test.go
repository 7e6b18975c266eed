// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// gates is the part of the Rollout's spec with which decisions are played: nothing
// goes on by itself.
const gates = "spec:\n  strategy: {steps: [{weight: 20, until: Manual}, {weight: 60, until: Manual}]}\n"

// promises are what the sections of the page about decisions promise, after their
// last block or after the one with the number. Each begins at the gate of the
// first step.
var promises = map[string]struct {
	before func(*reader)
	after  func(r *reader, block int)
}{
	"Promote a step": {after: func(r *reader, _ int) { r.atGate(1) }},
	"Skip a step":    {after: func(r *reader, _ int) { r.atGate(1) }},
	"Promote fully":  {after: func(r *reader, _ int) { r.waitStable("nginx:1.29") }},
	"Abort":          {after: func(r *reader, _ int) { r.waitReason(v1alpha1.ReasonRolledBack) }},
	"Retry": {
		before: func(r *reader) { r.run("decide Abort"); r.waitReason(v1alpha1.ReasonRolledBack) },
		after:  func(r *reader, _ int) { r.atGate(0) },
	},
	"Pause and resume": {after: func(r *reader, block int) { r.waitPaused(block == 0) }},
	"Undo":             {after: func(r *reader, _ int) { r.waitStable("nginx:1.28") }},
	"From Git": {
		before: func(r *reader) { r.run("decide Promote"); r.atGate(1) },
		after:  func(r *reader, _ int) { r.waitStable("nginx:1.29") },
	},
	// What the others print, and allow, has a test of its own.
	"": {before: func(r *reader) { r.run("decide Skip"); r.atGate(1) }, after: func(*reader, int) {}},
}

func TestTheDecisionsOfThePageDoWhatItPromises(t *testing.T) {
	t.Parallel()
	files, functions := beginning(t)
	blocks := map[string][]block{}
	for _, s := range page(t, "control.md") {
		if s.heading == "Who may" || s.heading == "What the history shows" {
			s.heading = "" // they promise nothing about the release
		}
		blocks[s.heading] = append(blocks[s.heading], s.blocks...)
	}
	if len(blocks) != len(promises) {
		t.Errorf("the page has %d sections with commands, and %d promises are known", len(blocks), len(promises))
	}
	for heading, promise := range promises {
		t.Run(cmp.Or(heading, "the others"), func(t *testing.T) {
			t.Parallel()
			if len(blocks[heading]) == 0 {
				t.Fatalf("the page has no section %q with commands", heading)
			}
			r := newReader(t, files)
			r.functions = functions
			r.write(block{text: gates})
			r.begin()
			r.run("kubectl set image deployment/website app=nginx:1.29")
			r.atGate(0)
			if promise.before != nil {
				promise.before(r)
			}
			for i, b := range blocks[heading] {
				b.text = strings.ReplaceAll(b.text, "5d4f8c7b9", r.rollout().Status.Canary.Revision)
				r.play(section{heading: heading, blocks: []block{b}})
				promise.after(r, i)
			}
		})
	}
}

// atGate waits until a step, counted from 0, waits for a person.
func (r *reader) atGate(step int32) {
	r.Helper()
	r.eventually("the step waits for a person", func(context.Context) bool {
		ro := r.rollout()
		_, reason, _ := ready(ro)
		return reason == v1alpha1.ReasonWaitingForApproval && ro.Status.Step.Index == step
	})
}

// waitStable waits until the Deployment's template is stable, and of an image.
func (r *reader) waitStable(image string) {
	r.Helper()
	r.waitReady()
	if got := r.stableImage(); got != image {
		r.Errorf("stable is %s, want %s", got, image)
	}
}

func (r *reader) waitPaused(paused bool) {
	r.Helper()
	r.eventually("paused or not", func(context.Context) bool {
		return meta.IsStatusConditionTrue(r.rollout().Status.Conditions, v1alpha1.ConditionPaused) == paused
	})
}
