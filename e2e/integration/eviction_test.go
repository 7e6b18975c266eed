// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// atMostOneAway is a budget that lets one pod of the website be away at a time.
func atMostOneAway(c *cast) {
	one := intstr.FromInt32(1)
	c.extras = append(c.extras, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "website"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "website"}},
		},
	})
}

// evict asks for the eviction of a pod of an image, as kubectl drain does.
func (p *stage) evict(image string) error {
	p.Helper()
	list := &corev1.PodList{}
	if err := admin.List(p.Context(), list, client.InNamespace(p.namespace), client.MatchingLabels{"app": "website"}); err != nil {
		p.Fatal(err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Spec.Containers[0].Image == image && pod.DeletionTimestamp == nil {
			return admin.SubResource("eviction").Create(p.Context(), pod, &policyv1.Eviction{})
		}
	}
	p.Fatalf("there is no pod of %s", image)
	return nil
}

// drain evicts a pod as soon as the budget allows it.
func (p *stage) drain(image string) {
	p.Helper()
	p.eventually("the budget allows an eviction", func(context.Context) bool {
		err := p.evict(image)
		if err != nil && !apierrors.IsTooManyRequests(err) {
			p.Fatal(err)
		}
		return err == nil
	})
}

func TestEvictionsThatABudgetAllowsDoNotDisturbARelease(t *testing.T) {
	t.Parallel()
	p := begin(t, atMostOneAway)
	p.promise = promise{keeps: 3, writes: restoredWithin} // the budget lets one be away
	p.release()
	p.pass(time.Hour)
	p.held(1) // three pods of the canary
	acted := p.moment()
	p.evictProxies()
	for _, image := range []string{imageV1, imageV2, imageV1, imageV2} {
		before := p.pods()
		p.drain(image)
		p.eventually("the pod is replaced", func(context.Context) bool {
			now := p.pods()
			return len(now[imageV1]) == 4 && len(now[imageV2]) == 3 && !sameUIDs(before, now)
		})
	}
	p.whole()
	p.checkStayed(acted)
	p.pass(time.Hour)
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
}

// evictProxies evicts each proxy, as the drain of its node does, when its own budget allows
// it. The budget of the app must not count it: no pod with two budgets can be evicted.
func (p *stage) evictProxies() {
	p.Helper()
	for _, proxy := range p.proxies() {
		p.eventually("the budget of the proxies allows an eviction", func(context.Context) bool {
			err := admin.SubResource("eviction").Create(p.Context(), &proxy, &policyv1.Eviction{})
			if err != nil && !apierrors.IsTooManyRequests(err) {
				p.Fatal(err)
			}
			return err == nil
		})
	}
	p.eventually("every proxy is replaced", func(context.Context) bool {
		now := p.proxies()
		return len(now) == 2 && !slices.ContainsFunc(now, func(pod corev1.Pod) bool { return !podutils.IsPodReady(&pod) })
	})
}

// proxies are those that do not end.
func (p *stage) proxies() []corev1.Pod {
	p.Helper()
	list := &corev1.PodList{}
	if err := admin.List(p.Context(), list, client.InNamespace(p.namespace), client.HasLabels{traffic.LabelProxy}); err != nil {
		p.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func sameUIDs(a, b map[string][]string) bool {
	for image, uids := range a {
		for i, uid := range uids {
			if len(b[image]) != len(uids) || b[image][i] != uid {
				return false
			}
		}
	}
	return true
}

// Its budget cannot protect a pod that was asked to go without asking the budget.
func TestTheEvictionOfTheOnlyCanaryPodDoesNotEndTheRelease(t *testing.T) {
	t.Parallel()
	p := begin(t, atMostOneAway)
	p.loses(func() {
		before := p.pods()
		p.drain(imageV2)
		p.eventually("the pod is replaced", func(context.Context) bool {
			now := p.pods()
			return len(now[imageV2]) == len(before[imageV2]) && !sameUIDs(before, now)
		})
	})
}

// loses releases a version whose canary loses its only pod in the middle of the release, and checks
// that the release goes on to its end when another one has taken its place.
func (p *stage) loses(act func()) {
	p.Helper()
	p.release()
	// Times of API objects are whole seconds: the next pod has to be younger than the step.
	live := p.rollout().Status.Step.ProgrammedAt
	p.eventually("the next second", func(context.Context) bool { return time.Now().Unix() > live.Unix() })
	p.promise.writes = restoredWithin
	act()
	p.whole()
	p.finish(4)
	if outcomes := p.outcomes(); len(outcomes) != 1 || outcomes[0] != v1alpha1.OutcomePromoted {
		p.Errorf("outcomes %v", outcomes)
	}
}

// whole waits until no pod of the canary is missing, and the operator has seen that:
// before, time that passes counts for the deadline.
func (p *stage) whole() {
	p.Helper()
	p.eventually("no pod of the canary is missing", func(ctx context.Context) bool {
		// In this order, and from the API server: a cache may have a ReplicaSet as it was before its pod went.
		pods, sets, ro := &corev1.PodList{}, &appsv1.ReplicaSetList{}, &v1alpha1.Rollout{}
		if err := errors.Join(
			admin.List(ctx, pods, client.InNamespace(p.namespace)),
			admin.List(ctx, sets, client.InNamespace(p.namespace), client.MatchingLabels{v1alpha1.LabelRollout: "website"}),
			admin.Get(ctx, p.key("website"), ro),
		); err != nil {
			p.Fatal(err)
		}
		ready := map[string]int32{}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && podutils.IsPodReady(pod) {
				ready[pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]]++
			}
		}
		for i := range sets.Items {
			rs := &sets.Items[i]
			if want := *rs.Spec.Replicas; ready[rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]] < want || rs.Status.AvailableReplicas != want {
				return false
			}
		}
		return !saysReason(v1alpha1.ReasonWaitingForPods)(ro)
	})
}
