// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

// crashes counts how often containers of v2 have ended.
func (p *stage) crashes() (n int32) {
	p.Helper()
	list := &corev1.PodList{}
	if err := p.reader.List(p.Context(), list, client.InNamespace(p.namespace), client.HasLabels{fakenode.FlappingLabel}); err != nil {
		p.Fatal(err)
	}
	for _, pod := range list.Items {
		for _, c := range pod.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}

// crashing releases a version whose containers are ready for a moment, crash, and
// start again, for ever. It counts as available only after minReadySeconds.
func (p *stage) crashing(minReadySeconds int32) {
	p.Helper()
	change(p.scene, "website", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = minReadySeconds
		d.Spec.Template.Spec.Containers[0].Image = imageV2
		d.Spec.Template.Labels[fakenode.FlappingLabel] = "300ms"
	})
}

func TestACrashLoopingCanaryIsRolledBackAtTheDeadlineWhichRestartsDoNotReset(t *testing.T) {
	t.Parallel()
	p := begin(t)
	stable := p.pods()[imageV1]
	p.crashing(30)
	var started time.Time
	p.eventually("the canary has crashed twice", func(context.Context) bool {
		st := p.rollout().Status.Step
		if st != nil && started.IsZero() {
			started = st.StartedAt.Time
		}
		return p.crashes() >= 2
	})
	p.pass(9 * time.Minute)
	seen := p.crashes()
	p.eventually("the canary has crashed twice more", func(context.Context) bool { return p.crashes() >= seen+2 })
	if st := p.rollout().Status.Step; st == nil || !st.StartedAt.Time.Equal(started) {
		t.Errorf("the step began at %s, and now %+v", started, st)
	}
	p.passDeadline(time.Minute)
	p.checkRolledBack(v1alpha1.ReasonProgressDeadlineExceeded, stable)
	for _, h := range p.rollout().Status.History[:1] {
		// The jump of the clock puts the deadline off by a minute, as a suspension does.
		if took := h.EndedAt.Sub(started); took < 10*time.Minute || took > 12*time.Minute {
			t.Errorf("rolled back after %s", took)
		}
	}
}

func TestACanaryThatCrashesUnderTrafficIsRolledBack(t *testing.T) {
	t.Parallel()
	p := begin(t)
	stable := p.pods()[imageV1]
	p.promise.writes = restoredWithin // it is the canary that goes away
	p.crashing(0)
	p.checkRolledBack(v1alpha1.ReasonCanaryUnavailable, stable)
}
