// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
)

// TestPodsReadTheContentsOfTheirVersionsAfterARestore: the present content is kept under another name,
// and is released by the steps. What the backup had of copies goes with the versions that read it.
func TestPodsReadTheContentsOfTheirVersionsAfterARestore(t *testing.T) {
	t.Parallel()
	for was, then := range map[string]func(*stage){
		"between releases": func(*stage) {},
		"in a release": func(p *stage) {
			p.setText("two")
			p.held(0)
		},
	} {
		for _, mode := range restoreModes() {
			t.Run(was+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				p := begin(t, func(c *cast) {
					c.guarded = true
					readers(c.deployment)
					c.extras = append(c.extras, configMap("app", "one"))
				})
				p.ask(v1alpha1.ConfigurationConfigMap)
				p.read(map[string]int{"one": 4})
				then(p)
				now := p.text(configrevision.Reference{Kind: v1alpha1.ConfigurationConfigMap, Name: "app"})
				q := p.restoredElsewhere(mode)
				q.atStep(0)
				wantFirst := map[string]int{"one": 4}
				wantFirst[now]++
				q.read(wantFirst)
				q.finishSteps()
				q.read(map[string]int{now: 4})
				q.keepNoHistory()
				q.eventually("one copy is left", func(context.Context) bool { return slices.Equal(q.copies(), []string{now}) })
			})
		}
	}
}

// finishSteps lets time go by in both steps.
func (p *stage) finishSteps() {
	p.Helper()
	p.pass(time.Hour)
	p.atStep(1)
	p.pass(time.Hour)
	p.waitReady()
}

// keepNoHistory has the Deployment delete its old ReplicaSets.
func (p *stage) keepNoHistory() {
	p.Helper()
	change(p.scene, "website", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = new(int32(0)) })
}
