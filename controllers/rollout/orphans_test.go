// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/workload"
)

// released are the objects in the middle of a release, with a weight of 20 %.
func released() (ro *v1alpha1.Rollout, all []client.Object) {
	all = objects()
	d, stable, root, ro := all[0].(*appsv1.Deployment), all[1].(*appsv1.ReplicaSet), all[2].(*corev1.Service), all[3].(*v1alpha1.Rollout)
	d.Annotations = map[string]string{v1alpha1.AnnotationRollout: ro.Name}
	d.Spec.Paused = true
	d.Spec.Template = *d.Spec.Template.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "app:v2"
	canary := workload.MakeCanary(d, workload.CanaryController(root), "2", 1)
	workload.Mark(canary, ro)
	canary.UID, canary.Status = "canary", appsv1.ReplicaSetStatus{Replicas: 1, AvailableReplicas: 1}
	all = append(all, canary)
	s := snapshot{root: root, declared: root.Spec.Selector}
	s.Rollout = ro
	for role, rs := range map[string]*appsv1.ReplicaSet{v1alpha1.RoleStable: stable, v1alpha1.RoleCanary: canary} {
		all = append(all, makeBackend(&s, role, rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey]))
	}
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "split", Generation: 1}}
	setSplit(split, snapshotOf(ro, nil), strategy.Route{Weight: 20})
	confirm(split)
	return ro, append(all, split)
}

// confirm is what a router does that has programmed a split.
func confirm(split *splitv1.TrafficSplit) {
	split.Status = splitv1.TrafficSplitStatus{ObservedRouting: splitv1.RoutingDigest(split), Conditions: []metav1.Condition{
		{Type: splitv1.ConditionAccepted, Status: metav1.ConditionTrue, ObservedGeneration: split.Generation},
		{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue, ObservedGeneration: split.Generation},
	}}
	for _, b := range split.Spec.Backends {
		split.Status.Backends = append(split.Status.Backends, splitv1.BackendStatus{Service: b.Service, Weight: b.Weight})
	}
}

// move has the other controllers do what was written.
func move(t *testing.T, c client.Client) {
	t.Helper()
	split, sets := &splitv1.TrafficSplit{}, &appsv1.ReplicaSetList{}
	if err := c.Get(t.Context(), request.NamespacedName, split); err == nil {
		confirm(split)
		if err := c.Status().Update(t.Context(), split); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.List(t.Context(), sets); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		rs := &sets.Items[i]
		rs.Status.Replicas, rs.Status.AvailableReplicas = *rs.Spec.Replicas, *rs.Spec.Replicas
		if err := c.Status().Update(t.Context(), rs); err != nil {
			t.Fatal(err)
		}
	}
}

// settled reconciles until nothing is written any more, and returns the actions' writes.
func settled(t *testing.T, r *Reconciler, c client.Client, writes *[]string) []string {
	t.Helper()
	var all []string
	for range 20 {
		*writes = nil
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatalf("after %v: %v", all, err)
		}
		if len(*writes) == 0 {
			return all
		}
		all = append(all, *writes...)
		move(t, c)
	}
	t.Fatalf("never at rest: %v", all)
	return nil
}

// left is what there is besides what the user made.
func left(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	for _, list := range []client.ObjectList{&splitv1.TrafficSplitList{}, &corev1.ServiceList{}, &appsv1.ReplicaSetList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch l := list.(type) {
		case *splitv1.TrafficSplitList:
			for i := range l.Items {
				names = append(names, "TrafficSplit "+l.Items[i].Name)
			}
		case *corev1.ServiceList:
			for i := range l.Items {
				names = append(names, "Service "+l.Items[i].Name)
			}
		case *appsv1.ReplicaSetList:
			for i := range l.Items {
				names = append(names, "ReplicaSet "+l.Items[i].Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "Service website" || n == "ReplicaSet website-1" })
}

func without(objects []client.Object, ro *v1alpha1.Rollout) []client.Object {
	return slices.DeleteFunc(objects, func(o client.Object) bool { return o == client.Object(ro) })
}

func deploymentOf(t *testing.T, c client.Client) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := c.Get(t.Context(), request.NamespacedName, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatARolloutLeavesThatGoesWithoutItsFinalizerIsRestored(t *testing.T) {
	ro, all := released()
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, without(all, ro)...)
	written := settled(t, r, c, writes)
	if got := left(t, c); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	d := deploymentOf(t, c)
	if _, marked := d.Annotations[v1alpha1.AnnotationRollout]; marked || !d.Spec.Paused {
		t.Errorf("annotations %v, paused %v: it must stay paused on a version that was never stable", d.Annotations, d.Spec.Paused)
	}
	recorder, ok := r.recorder.(*events.FakeRecorder)
	if !ok {
		t.Fatal("another recorder")
	}
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, "stays paused") {
			t.Errorf("event %q", event)
		}
	default:
		t.Errorf("no event says why the Deployment stays paused; written: %v", written)
	}
}

func TestWhatLooksLeftOfARolloutIsNotTouchedWhileThereIsOne(t *testing.T) {
	ro, all := released()
	for name, answer := range map[string]func(*v1alpha1.Rollout) error{
		"the cache does not show it yet": func(out *v1alpha1.Rollout) error { ro.DeepCopyInto(out); return nil },
		"it can't be read":               func(*v1alpha1.Rollout) error { return errInjected },
	} {
		t.Run(name, func(t *testing.T) {
			r, _, writes := newReconcilerOf(t, func(string) error { return nil }, without(slices.Clone(all), ro)...)
			r.options.Live = readerFunc(answer)
			if _, err := r.Reconcile(t.Context(), request); err != nil && !errors.Is(err, errInjected) || len(*writes) > 0 {
				t.Errorf("error %v, written %v", err, *writes)
			}
		})
	}
}

// readerFunc answers for Rollouts.
type readerFunc func(*v1alpha1.Rollout) error

func (f readerFunc) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return f(o.(*v1alpha1.Rollout))
}

func (f readerFunc) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errInjected
}

// A tool that creates the Rollout again must not have it wait for ever for the names that
// the objects of the earlier one have.
func TestWhatAnEarlierRolloutOfTheSameNameLeftIsRestoredFirst(t *testing.T) {
	ro, all := released()
	again := ro.DeepCopy()
	again.UID = "again"
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, append(without(all, ro), again)...)
	for range 10 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if len(left(t, c)) == 0 {
			break
		}
		if slices.ContainsFunc(*writes, func(w string) bool { return strings.Contains(w, "Deployment") || strings.Contains(w, "Rollout") }) {
			t.Fatalf("written %v before all is restored", *writes)
		}
		move(t, c)
	}
	if got := left(t, c); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if d := deploymentOf(t, c); !d.Spec.Paused || d.Annotations[v1alpha1.AnnotationRollout] != again.Name {
		t.Errorf("paused %v, annotations %v", d.Spec.Paused, d.Annotations)
	}
	if ro := rolloutOf(t, c); ro.Status.Stable == nil || ro.Status.Stable.Revision != "1" {
		t.Errorf("stable %+v, want what has the pods", ro.Status.Stable)
	}
}

func TestObjectsOfOthersAreNothingThatARolloutLeft(t *testing.T) {
	ro, all := released()
	all = without(all, ro)
	for _, o := range all {
		o.SetLabels(nil)
		o.SetAnnotations(nil)
	}
	r, _, writes := newReconcilerOf(t, func(string) error { return nil }, all...)
	if _, err := r.Reconcile(t.Context(), request); err != nil || len(*writes) > 0 {
		t.Errorf("error %v, written %v", err, *writes)
	}
}

// What the router was told of the split stays, so that only the weight changes.
func TestTheSpecOfARolloutThatIsGoneIsReadFromItsSplit(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.RolloutSpec){
		"nginx": func(*v1alpha1.RolloutSpec) {},
		"with sticky sessions": func(s *v1alpha1.RolloutSpec) {
			s.SessionAffinity = &v1alpha1.SessionAffinity{CookieName: "c", MaxAge: "1h"}
		},
		"with proxies of its own": func(s *v1alpha1.RolloutSpec) { s.ProxyPods = &splitv1.ProxyPods{PriorityClassName: "high"} },
		"with routes": func(s *v1alpha1.RolloutSpec) {
			s.Router, s.RouteRefs = v1alpha1.RouterGatewayAPI, []v1alpha1.RouteReference{{Kind: "HTTPRoute", Name: "public"}}
		},
		"of two Services": func(s *v1alpha1.RolloutSpec) { s.Services = &v1alpha1.ServicePair{Stable: "a", Canary: "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			ro := website()
			change(&ro.Spec)
			split := &splitv1.TrafficSplit{}
			s := snapshotOf(ro, nil)
			if ro.Spec.Router != "" {
				s.RouterName = ro.Spec.Router
			}
			setSplit(split, s, strategy.Route{Weight: 20})
			got := *ro.DeepCopy()
			got.Spec = v1alpha1.RolloutSpec{}
			specOf(&got.Spec, split)
			of := snapshotOf(&got, split)
			of.RouterName = got.Spec.Router
			stable, canary := backendNames(&got)
			if diff := cmp.Diff(strategy.Route{Weight: 20}, requestedRoute(split, &of, stable, canary)); diff != "" {
				t.Errorf("what it requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeletedRolloutThatLeftNothingIsForgotten(t *testing.T) {
	r, c, writes := newReconciler(t, func(string) error { return nil })
	ro := rolloutOf(t, c)
	ro.Finalizers = nil
	if err := errors.Join(c.Update(t.Context(), ro), c.Delete(t.Context(), ro)); err != nil {
		t.Fatal(err)
	}
	r.memory.orphaned(request.NamespacedName, true, r.options.Clock.Now())
	*writes = nil
	if _, err := r.Reconcile(t.Context(), request); err != nil || len(*writes) > 0 || len(r.memory.of) > 0 {
		t.Errorf("error %v, written %v, remembered %v", err, *writes, r.memory.of)
	}
	if err := c.Get(t.Context(), request.NamespacedName, ro); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}

// A template that was never stable would be rolled out without steps.
func TestADeploymentIsNotRestoredWhileTheCacheLacksItsVersions(t *testing.T) {
	for name, test := range map[string]struct {
		live     []client.Object
		restored bool
	}{
		"its stable version is there": {objects()[:2], false},
		"it has no version":           {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := released()
			r, _, writes := newReconcilerOf(t, func(string) error { return nil }, all[0], all[2]) // neither ReplicaSets nor what Serin made
			_, live, _ := newReconcilerOf(t, func(string) error { return nil }, test.live...)
			r.options.Live = live
			_, err := r.Reconcile(t.Context(), request)
			if restored := len(*writes) > 0; restored != test.restored || (err == nil) != test.restored {
				t.Errorf("error %v, written: %v", err, *writes)
			}
		})
	}
}
