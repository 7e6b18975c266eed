// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// podOf is a pod of a revision as its node reported it last; the control plane has taken it for
// unready.
func podOf(revision string, containersReady corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "website-" + revision, Namespace: "shop", Labels: map[string]string{"pod-template-hash": revision}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: containersReady},
		}},
	}
}

func TestPodsOfTheCanaryAreReadOnlyWhenNoneIsAvailable(t *testing.T) {
	going := podOf("s2", corev1.ConditionTrue)
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"test"}
	for name, test := range map[string]struct {
		pod       *corev1.Pod
		available int32
		observed  int32
		reads     int
		want      bool
	}{
		"a node does not report": {pod: podOf("s2", corev1.ConditionTrue), observed: 10, reads: 1, want: true},
		"it crashed":             {pod: podOf("s2", corev1.ConditionFalse), observed: 10, reads: 1},
		"its pod is deleted":     {pod: going, observed: 10, reads: 1, want: true},
		"its pods are gone":      {pod: podOf("s1", corev1.ConditionFalse), observed: 10, reads: 1, want: true},
		"one is available":       {pod: podOf("s2", corev1.ConditionTrue), observed: 10, available: 1},
		"it gets no traffic":     {pod: podOf("s2", corev1.ConditionTrue)},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			var r Reconciler
			r.options.Configuration.Reader = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(test.pod).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					reads++
					return c.List(ctx, list, options...)
				},
			}).Build()
			s := snapshotOfCanary(test.available, test.observed)
			if err := r.observeRunning(t.Context(), &s); err != nil || s.CanaryExcused != test.want || reads != test.reads {
				t.Errorf("running %v after %d reads, want %v after %d: %v", s.CanaryExcused, reads, test.want, test.reads, err)
			}
		})
	}
}

func TestPodsThatCannotBeReadDecideNothing(t *testing.T) {
	var r Reconciler
	r.options.Configuration.Reader = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errInjected
		},
	}).Build()
	s := snapshotOfCanary(0, 10)
	if err := r.observeRunning(t.Context(), &s); !errors.Is(err, errInjected) {
		t.Errorf("the error is %v", err)
	}
}

// snapshotOfCanary is a release with so many available pods of its canary.
func snapshotOfCanary(available, observed int32) (s snapshot) {
	s.Rollout = &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop"}}
	s.Split.Observed = observed
	s.ReplicaSets = []kit.ReplicaSet{
		{Owner: kit.OwnerDeployment, Revision: "s1", Existing: 1},
		{Owner: kit.OwnerSerin, Revision: "s2", Current: true, Available: available},
	}
	return s
}

// TestPodsThatWereTakenAwayAreNoFaultOfTheCanary has the canary's pods evicted, as the drain of
// a node does, beside what is its own fault.
func TestPodsThatWereTakenAwayAreNoFaultOfTheCanary(t *testing.T) {
	live := time.Unix(1000, 0)
	pod := func(age time.Duration, change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(live.Add(-age))}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	going := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(live.Add(time.Minute))) }
	with := func(status corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{status} }
	}
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	const old, young = time.Minute, -time.Minute
	for name, test := range map[string]struct {
		pods []corev1.Pod
		live time.Time
		want bool
	}{
		"another one starts in its place":     {pods: []corev1.Pod{pod(young)}, live: live, want: true},
		"it goes while another one starts":    {pods: []corev1.Pod{pod(old, going), pod(young)}, live: live, want: true},
		"it goes between two steps":           {pods: []corev1.Pod{pod(old, going)}, want: true},
		"it was deleted, and none starts":     {pods: []corev1.Pod{pod(old, going)}, live: live, want: true},
		"its node ran out of memory":          {pods: []corev1.Pod{pod(old, failed)}, live: live},
		"one ran out of memory, others start": {pods: []corev1.Pod{pod(young, failed), pod(young)}, live: live},
		"it is unready":                       {pods: []corev1.Pod{pod(old)}, live: live},
		"it is unready, and another starts":   {pods: []corev1.Pod{pod(old), pod(young)}, live: live},
		"it was created as the weight became": {pods: []corev1.Pod{pod(0)}, live: live},
		"the other one crashes":               {pods: []corev1.Pod{pod(young, with(corev1.ContainerStatus{RestartCount: 1}))}, live: live},
		"the other one has ended":             {pods: []corev1.Pod{pod(young, with(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}))}, live: live},
		"no weight is live":                   {pods: []corev1.Pod{pod(young)}},
		"it is gone, and none starts yet":     {live: live, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replaced(test.pods, test.live); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
