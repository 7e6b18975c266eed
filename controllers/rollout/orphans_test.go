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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
		if told := slices.DeleteFunc(slices.Clone(*writes), func(w string) bool { return w != "update status Rollout" }); len(told) != 1 {
			t.Errorf("written %v: it says once what it waits for", *writes)
		}
		if slices.ContainsFunc(*writes, func(w string) bool { return strings.Contains(w, "Deployment") || w == "patch Rollout" }) {
			t.Fatalf("written %v before all is restored", *writes)
		}
		status := rolloutOf(t, c).Status
		checkWaits(t, &status, "Sending all traffic to stable")
		if status.Conditions = nil; !apiequality.Semantic.DeepEqual(status, v1alpha1.RolloutStatus{}) {
			t.Errorf("the status has more: %+v", status)
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

// checkWaits: a Rollout says that it waits until what an earlier one left is removed, and why that takes time.
func checkWaits(t *testing.T, status *v1alpha1.RolloutStatus, why string) {
	t.Helper()
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionProgressing: metav1.ConditionTrue, v1alpha1.ConditionReconciling: metav1.ConditionTrue,
	} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Status != want || c.Reason != v1alpha1.ReasonCleaningUp || c.ObservedGeneration != 1 {
			t.Errorf("%s: %+v", kind, c)
		} else if !strings.HasPrefix(c.Message, "What an earlier Rollout of the name left is removed first. ") || !strings.Contains(c.Message, why) {
			t.Errorf("%s says %q, want %q", kind, c.Message, why)
		}
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled); c != nil {
		t.Errorf("no user has to act: %+v", c)
	}
}

func TestARolloutSaysWhyWhatAnEarlierOneLeftIsNotRestored(t *testing.T) {
	for name, test := range map[string]struct {
		fails string
		why   string
	}{
		"a write is refused":              {"patch TrafficSplit", "the API server is on fire"},
		"an object can't be read":         {"get Deployment", "Could not read what is left of the Rollout: "},
		"the Rollout can't be looked for": {"live", "Could not ask the API server for the Rollout: "},
	} {
		t.Run(name, func(t *testing.T) {
			again, all := backup()
			failing := true
			r, c, writes := newReconcilerOf(t, func(call string) error {
				if failing && strings.HasPrefix(call, test.fails) {
					return errInjected
				}
				return nil
			}, append(all, again)...)
			if live := r.options.Live; test.fails == "live" {
				r.options.Live = readerFunc(func(*v1alpha1.Rollout) error { return errInjected })
				defer func() { r.options.Live = live }()
			}
			for range 3 {
				if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, errInjected) {
					t.Fatalf("error %v: it must be tried again", err)
				}
			}
			checkWaits(t, &rolloutOf(t, c).Status, test.why)
			if told := slices.DeleteFunc(slices.Clone(*writes), func(w string) bool { return w != "update status Rollout" }); len(told) != 1 {
				t.Errorf("written %v", *writes)
			}
		})
	}
}

// What a backup brings back late holds a Rollout up that was Ready. Its record stays, and it is Ready again at the end.
func TestARolloutSaysThatWhatABackupBringsBackLateIsRestoredFirst(t *testing.T) {
	again, all := backup()
	again.Status = v1alpha1.RolloutStatus{ObservedGeneration: 1, Stable: &v1alpha1.VersionStatus{Revision: "1", Ready: 2}, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConflict},
	}}
	before := again.Status.DeepCopy()
	r, c, writes := newReconcilerOf(t, func(string) error { return nil }, append(all, again)...)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	status := rolloutOf(t, c).Status
	checkWaits(t, &status, "Sending all traffic to stable")
	if status.Conditions, before.Conditions = nil, nil; !apiequality.Semantic.DeepEqual(&status, before) {
		t.Errorf("status %+v, want %+v", status, before)
	}
	move(t, c)
	settled(t, r, c, writes)
	for _, condition := range rolloutOf(t, c).Status.Conditions {
		if strings.Contains(condition.Message, "earlier Rollout") {
			t.Errorf("at the end it says %+v", condition)
		}
	}
}

// A user may copy the labels of a Service of Serin's. Serin removes only those that it makes.
func TestAServiceThatOnlyLooksLeftHoldsNoRolloutUp(t *testing.T) {
	alike := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "extra", Namespace: "shop", Labels: map[string]string{v1alpha1.LabelRollout: "website"}}}
	var statuses []v1alpha1.RolloutStatus
	for _, all := range [][]client.Object{objects(), append(objects(), alike)} {
		r, c, _ := newReconcilerOf(t, func(string) error { return nil }, all...)
		for range 3 {
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		statuses = append(statuses, rolloutOf(t, c).Status)
		if got := left(t, c); len(got) != len(all)-len(objects()) {
			t.Errorf("there are %v", got)
		}
	}
	if diff := cmp.Diff(statuses[0], statuses[1]); diff != "" || len(statuses[0].Conditions) == 0 {
		t.Errorf("the status (-without it +with it):\n%s", diff)
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
