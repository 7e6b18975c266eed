// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// atMost is a quota for pods that is in force when it returns.
func (p *stage) atMost(pods string) {
	p.Helper()
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	p.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	p.eventually("the quota is in force", func(ctx context.Context) bool {
		q := &corev1.ResourceQuota{}
		return admin.Get(ctx, p.key("pods"), q) == nil && len(q.Status.Used) > 0
	})
}

const (
	// roomForProxies is enough for stable and the proxies, and not for a canary.
	roomForProxies = "6"
	// noRoom is enough for stable.
	noRoom = "4"
)

func TestACanaryThatAQuotaRefusesIsRolledBackAtTheDeadline(t *testing.T) {
	t.Parallel()
	p := begin(t)
	stable := p.pods()[imageV1]
	p.atMost(roomForProxies)
	p.setImage(imageV2)
	p.says("exceeded quota")
	p.passDeadline(11 * time.Minute)
	p.checkRolledBack(v1alpha1.ReasonProgressDeadlineExceeded, stable)
}

func TestAQuotaThatLeavesNoRoomForProxiesIsSaid(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.atMost(noRoom)
	p.setImage(imageV2)
	p.says("exceeded quota")
	change(p.scene, "pods", &corev1.ResourceQuota{}, func(q *corev1.ResourceQuota) {
		q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("20")
	})
	p.held(0)
}

// says waits until the sentence of the Rollout holds something.
func (p *stage) says(what string) {
	p.Helper()
	p.eventually("the Rollout says "+what, func(context.Context) bool {
		_, _, message := ready(p.rollout())
		return strings.Contains(message, what)
	})
}

func TestAReleaseGoesOnWhenTheQuotaIsRaised(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.atMost(roomForProxies)
	p.setImage(imageV2)
	p.eventually("it waits for pods, which is said when it has lasted", func(context.Context) bool {
		_, reason, _ := ready(p.rollout())
		if reason != v1alpha1.ReasonWaitingForPods {
			p.pass(5 * time.Second)
		}
		return reason == v1alpha1.ReasonWaitingForPods
	})
	change(p.scene, "pods", &corev1.ResourceQuota{}, func(q *corev1.ResourceQuota) {
		q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("20")
	})
	p.finish(4)
}
