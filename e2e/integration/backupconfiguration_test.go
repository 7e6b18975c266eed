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
// While the pods of a version are still starting that no release had begun to replace, the content
// becomes part of it, as of any first version.
func TestPodsReadTheContentsOfTheirVersionsAfterARestore(t *testing.T) {
	t.Parallel()
	const between = "between releases"
	for was, then := range map[string]func(*stage){
		between: func(*stage) {},
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
				before := p.rollout().Status.Stable.Revision
				q := p.restoredElsewhere(mode)
				q.eventually("the present content is released", func(context.Context) bool {
					return q.programmed(0, 20) || was == between && q.hasFirst(before)
				})
				if q.rollout().Status.Step != nil {
					wantFirst := map[string]int{"one": 4}
					wantFirst[now]++
					q.read(wantFirst)
					q.finishSteps()
				}
				q.read(map[string]int{now: 4})
				q.keepNoHistory()
				q.eventually("one copy is left", func(context.Context) bool { return slices.Equal(q.copies(), []string{now}) })
			})
		}
	}
}

// hasFirst reports whether a version other than that of the backup is stable.
func (p *stage) hasFirst(before string) bool {
	p.Helper()
	ro := p.rollout()
	is, _, _ := ready(ro)
	return is && ro.Status.Stable.Revision != before
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
