// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/controllers/trafficsplit/reporting"
	"github.com/serin-dev/serin/traffic"
)

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "web"}}

// recorded takes the events that were recorded so far.
func recorded(r *events.FakeRecorder) []string {
	var got []string
	for {
		select {
		case e := <-r.Events:
			got = append(got, e)
		default:
			return got
		}
	}
}

// A fault hits every call of one kind until it is over. Whatever it was, the
// split goes live afterwards, and nothing was done that a fault should
// have kept from being done.
func TestEveryCallMayFail(t *testing.T) {
	calls := []string{
		"get", "create", "list *v1alpha4.TrafficSplitList", "list *v1.EndpointSliceList", "list *v1.PodList",
		"live list", "patch", "apply", "apply status", "delete",
	}
	for _, call := range calls {
		t.Run(call, func(t *testing.T) {
			w := newWorld(t)
			broken := errors.New("the API server is away")
			hits := 0
			fault := func(in string, _ client.Object) error {
				if in != call {
					return nil
				}
				hits++
				return broken
			}
			// Each step is tried with the fault and then without.
			try := func(change func()) {
				t.Helper()
				change()
				w.fail = fault
				before := hits
				if _, err := w.controller().Reconcile(w.ctx(), request); hits > before && err == nil {
					t.Errorf("the fault was not told")
				}
				w.invariants(false)
				w.fail = nil
				w.settle()
			}
			try(func() {
				w.create(shop()...)
				if call == "live list" {
					w.ownPodsAreHidden()
				}
				w.endpoints()
				w.create(makeSplit(100, 0))
			})
			try(func() { w.deploy(); w.ready(); w.confirm() })
			try(func() { w.endpoints() })
			if c := programmed(w); c == nil || c.Status != metav1.ConditionTrue {
				t.Errorf("Programmed: %+v", c)
			}
			try(func() { w.must(w.api.Delete(w.ctx(), w.split())) })
			try(func() { w.endpoints() })
			try(func() { w.deploy(); w.stopped() })
			if w.split() != nil || w.service("web").Spec.Selector[traffic.LabelProxy] != "" {
				t.Errorf("the split was not withdrawn: %s", w.summary())
			}
			if hits == 0 {
				t.Error("the fault never hit")
			}
		})
	}
}

// ownPodsAreHidden leaves no backend whose pods are sure to be the root Service's.
func (w *world) ownPodsAreHidden() {
	w.t.Helper()
	for _, name := range []string{"web-stable", "web-canary"} {
		s := w.service(name)
		delete(s.Spec.Selector, "app")
		w.must(w.api.Update(w.ctx(), s))
	}
}

func TestWithdrawingASplitReadsNothingPastTheCacheWhereABackendTells(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	w.liveReads = 0
	leave(w)
	if w.split() != nil || w.liveReads > 1 { // the last is whether the split is gone indeed
		t.Errorf("%d live reads: %s", w.liveReads, w.summary())
	}
}

func TestAReportThatIsOutOfDateSoonWaits(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	r := w.controller()
	reports := func(change func()) (int, time.Duration) {
		t.Helper()
		change()
		before := w.writes
		again, err := w.reconcile(r)
		w.must(err)
		return w.writes - before, again
	}
	t.Run("a new generation that the proxies follow at once", func(t *testing.T) {
		if n, again := reports(func() { w.weights(50, 50) }); n != 0 || again != reporting.Pause {
			t.Errorf("%d writes, again in %v", n, again)
		}
		w.clock.Step(time.Second)
		if n, again := reports(func() { w.confirm() }); n != 1 || again != 0 {
			t.Errorf("%d writes, again in %v", n, again)
		}
		if c := programmed(w); c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.split().Generation {
			t.Errorf("Programmed: %+v", c)
		}
	})
	t.Run("a new generation that the proxies don't follow", func(t *testing.T) {
		reports(func() { w.weights(40, 60) })
		w.clock.Step(reporting.Pause)
		if n, _ := reports(func() {}); n != 1 {
			t.Errorf("%d writes", n)
		}
		if c := programmed(w); c.Status != metav1.ConditionFalse {
			t.Errorf("Programmed: %+v", c)
		}
		w.confirm()
		w.settle()
	})
	t.Run("a backend with a weight that lost all its pods", func(t *testing.T) {
		n, _ := reports(func() {
			w.must(w.api.Delete(w.ctx(), makePod("app-2", nil)))
			w.endpoints()
		})
		if n != 1 {
			t.Errorf("%d writes", n)
		}
	})
	t.Run("and got one back", func(t *testing.T) {
		n, again := reports(func() {
			w.create(makePod("app-2", map[string]string{"app": "web", "version": "2"}))
			w.endpoints()
		})
		if n != 0 || again != reporting.Pause {
			t.Errorf("%d writes, again in %v", n, again)
		}
		w.clock.Step(reporting.Pause)
		if n, _ := reports(func() {}); n != 1 {
			t.Errorf("%d writes after the pause", n)
		}
	})
}

func programmed(w *world) *metav1.Condition {
	return meta.FindStatusCondition(w.split().Status.Conditions, splitv1.ConditionProgrammed)
}

func TestAStaleCacheFailsByPrecondition(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	r := w.controller()
	o, err := r.observe(w.ctx(), request.NamespacedName)
	w.must(err)
	// Another client writes each object after it was observed.
	root := w.service("web")
	root.Labels = map[string]string{"touched": "yes"}
	w.must(w.api.Update(w.ctx(), root))
	split := w.split()
	split.Labels = map[string]string{"touched": "yes"}
	w.must(w.api.Update(w.ctx(), split))
	deployment := o.DataPlane.Objects[slices.IndexFunc(o.DataPlane.Objects, func(o traffic.Object) bool { return o.Workload })]
	d := &appsv1.Deployment{}
	w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: deployment.Name}, d))
	d.Labels["touched"] = "yes"
	w.must(w.api.Update(w.ctx(), d))
	for _, action := range []kit.Action{
		plan.CutOver{},
		plan.RestoreRoot{},
		kit.RemoveFinalizer{},
		plan.Apply{Write: plan.Write{Object: deployment}},
		plan.Delete{Write: plan.Write{Object: deployment}},
	} {
		if err := r.act(w.ctx(), o, []kit.Action{action}); !apierrors.IsConflict(err) {
			t.Errorf("%s: error %v, want a conflict", action, err)
		}
	}
	stale := plan.Report{Programmed: plan.Condition{Status: metav1.ConditionFalse, Reason: "Stale"}}
	if _, err := r.report(w.ctx(), o, &stale); !apierrors.IsConflict(err) {
		t.Errorf("report: error %v, want a conflict", err)
	}
}

// After a status was written the cache may show the version before for a moment.
func TestAVersionThatAStatusReplacedIsNotDecidedFromAgain(t *testing.T) {
	w := newWorld(t)
	w.create(shop()...)
	w.create(makeSplit(100, 0))
	r, before := w.controller(), w.split()
	if _, err := w.reconcile(r); err != nil || len(w.split().Status.Conditions) == 0 {
		t.Fatalf("no status was written: %v", err)
	}
	upToDate, writes := r.Client, w.writes
	r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if split, ok := o.(*splitv1.TrafficSplit); ok {
				before.DeepCopyInto(split)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if again, err := w.reconcile(r); err != nil || again != staleRetry || w.writes != writes {
		t.Errorf("looks again after %s, error %v, %d writes", again, err, w.writes-writes)
	}
	r.Client = upToDate
	if _, err := w.reconcile(r); err != nil || w.writes == writes {
		t.Errorf("it does not go on once the cache has followed: error %v", err)
	}
}

func TestAFinalizerIsRemovedOnceWhileTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	w.create(shop()...)
	split := makeSplit(100, 0)
	split.Finalizers = []string{traffic.Finalizer, "example.com/other"}
	w.create(split)
	r, before := w.controller(), w.split()
	o, err := r.observe(w.ctx(), request.NamespacedName)
	if err != nil {
		t.Fatal(err)
	}
	writes := w.writes
	if err := r.act(w.ctx(), o, []kit.Action{kit.RemoveFinalizer{}}); err != nil || w.writes != writes+1 {
		t.Fatalf("error %v, %d writes", err, w.writes-writes)
	}
	r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if split, ok := o.(*splitv1.TrafficSplit); ok {
				before.DeepCopyInto(split)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if again, err := w.reconcile(r); err != nil || again != staleRetry || w.writes != writes+1 {
		t.Errorf("looks again after %s, error %v, %d writes", again, err, w.writes-writes)
	}
}

func TestWhatSplitsShareIsDeletedOnceWhileTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serin-proxy", UID: "uid-account"}}
	w.create(account)
	r, writes := w.controller(), w.writes
	shared := traffic.Object{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Name: account.Name,
		UID: account.UID, ResourceVersion: account.ResourceVersion, Shared: true,
	}
	for range 2 {
		if err := r.remove(w.ctx(), namespace, shared); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes != writes+1 {
		t.Errorf("%d writes", w.writes-writes)
	}
	shared.ResourceVersion = "another"
	if err := r.remove(w.ctx(), namespace, shared); err != nil || w.writes != writes+2 {
		t.Errorf("another version: error %v, %d writes", err, w.writes-writes)
	}
}

func TestAConflictIsNoErrorButAnotherLook(t *testing.T) {
	w := newWorld(t)
	w.create(shop()...)
	w.create(makeSplit(1, 0))
	w.fail = func(call string, _ client.Object) error {
		if call != "patch" {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "trafficsplits"}, "web", errors.New("stale"))
	}
	result, err := w.controller().Reconcile(w.ctx(), request)
	if err != nil || result.RequeueAfter != time.Second {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestWhatTheAPIRefusesIsToldInTheStatus(t *testing.T) {
	for name, refusal := range map[string]error{
		"a quota":                        apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "serin-proxy", errors.New("exceeded quota")),
		"a webhook that does not answer": apierrors.NewInternalError(errors.New("exceeded quota of its time")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(shop()...)
			w.create(makeSplit(1, 0))
			w.fail = func(call string, _ client.Object) error {
				if call != "apply" {
					return nil
				}
				return refusal
			}
			r := w.controller()
			for range 3 { // the first reports what it expects, the next what came of it, and then nothing is new
				if _, err := r.Reconcile(w.ctx(), request); !errors.Is(err, refusal) {
					t.Errorf("error %v", err)
				}
			}
			if w.writes != 3 { // the status twice, and the finalizer
				t.Errorf("%d writes", w.writes)
			}
			if c := programmed(w); c == nil || !strings.Contains(c.Message, "exceeded quota") || !strings.Contains(c.Message, "ServiceAccount") {
				t.Errorf("Programmed: %+v", c)
			}
		})
	}
}

func TestAnObjectOfSomebodyElsesThatTheCacheDoesNotShowIsToldInTheStatus(t *testing.T) {
	w := newWorld(t)
	w.create(shop()...)
	w.create(makeSplit(1, 0))
	theirs := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "serin-proxy-web", Namespace: namespace},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &intstr.IntOrString{IntVal: 5}},
	}
	w.must(w.api.Create(w.ctx(), theirs, client.FieldOwner("another")))
	w.fail = func(call string, o client.Object) error {
		if _, budget := o.(*policyv1.PodDisruptionBudget); budget && call == "get" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "poddisruptionbudgets"}, "serin-proxy-web")
		}
		return nil
	}
	r := w.controller()
	if _, err := r.Reconcile(w.ctx(), request); err != nil { // makes the ServiceAccount first
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Reconcile(w.ctx(), request); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict that the status says", err)
		}
	}
	if c := programmed(w); c == nil || !strings.Contains(c.Message, "PodDisruptionBudget") || !strings.Contains(c.Message, "another") {
		t.Errorf("Programmed: %+v", c)
	}
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(theirs), theirs))
	if theirs.Spec.MaxUnavailable.IntVal != 5 || len(theirs.OwnerReferences) != 0 {
		t.Errorf("it was written: %+v", theirs)
	}
}

func TestWhatLooksLikeAnOrphanIsLookedUpPastTheCache(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	split := w.split()
	split.Finalizers = nil
	w.say("# (the finalizer is removed by hand)")
	w.must(w.api.Update(w.ctx(), split))
	w.must(w.api.Delete(w.ctx(), split))
	broken := errors.New("the API server is away")
	w.fail = func(call string, _ client.Object) error {
		if call == "live get" {
			return broken
		}
		return nil
	}
	if _, err := w.reconcile(w.controller()); !errors.Is(err, broken) || w.service("web").Spec.Selector[traffic.LabelProxy] == "" {
		t.Errorf("error %v: %s", err, w.summary())
	}
	w.fail = nil
	w.settle()
	if w.service("web").Spec.Selector[traffic.LabelProxy] != "" {
		t.Errorf("not restored: %s", w.summary())
	}
}

// ends are the ways in which a split ends, each until the root Service has its own endpoints again.
func ends() map[string]func(*world) {
	until := func(end func(*world)) func(*world) {
		return func(w *world) {
			w.t.Helper()
			end(w)
			w.settle()
			w.endpoints()
			w.settle()
		}
	}
	return map[string]func(*world){
		"it is deleted": until(func(w *world) { w.must(w.api.Delete(w.ctx(), w.split())) }),
		"it is gone":    until(func(w *world) { w.loseSplit("web") }),
	}
}

// loseDeployment deletes the Deployment of the proxies and leaves their ReplicaSet without an owner.
func (w *world) loseDeployment() (*appsv1.ReplicaSet, *appsv1.Deployment) {
	w.t.Helper()
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serin-proxy-web-1", UID: "set", Labels: map[string]string{traffic.LabelProxy: "web"}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serin-proxy-web"}}
	w.create(rs)
	w.must(w.api.Delete(w.ctx(), deployment))
	return rs, deployment
}

// A backup has no owners: its Deployment of proxies may have gone before it adopted the ReplicaSet.
func TestProxiesThatLostTheirDeploymentDoNotHoldTheEndOfASplit(t *testing.T) {
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.goLive()
			rs, _ := w.loseDeployment()
			end(w)
			if err := w.api.Get(w.ctx(), client.ObjectKeyFromObject(rs), rs); !apierrors.IsNotFound(err) {
				t.Fatalf("the ReplicaSet: error %v; %s", err, w.summary())
			}
			w.deploy() // its controller and the garbage collector
			w.settle()
			w.stopped()
			w.settle()
			if split := w.split(); split != nil || w.service("web").Spec.Selector[traffic.LabelProxy] != "" {
				t.Errorf("it is left: %s", w.summary())
			}
		})
	}
}

// A backup has no owners: what runs its proxies stays until it has adopted them, and would not stop
// them if it went before.
func TestProxiesOfABackupAreAdoptedBeforeWhatRunsThemGoes(t *testing.T) {
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.goLive()
			proxies := func(change func(*corev1.Pod)) {
				for _, pod := range w.pods() {
					if pod.Labels[traffic.LabelProxy] != "" {
						change(&pod)
						w.must(w.api.Update(w.ctx(), &pod))
					}
				}
			}
			proxies(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(w.clock.Now()) })
			rs, deployment := w.loseDeployment()
			end(w)
			if err := w.api.Get(w.ctx(), client.ObjectKeyFromObject(rs), rs); err != nil {
				t.Fatalf("the ReplicaSet goes before it has adopted the proxies: %v; %s", err, w.summary())
			}
			proxies(func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: new(true)}}
			})
			w.settle()
			for _, o := range []client.Object{rs, deployment} {
				if err := w.api.Get(w.ctx(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
					t.Errorf("%T: error %v; %s", o, err, w.summary())
				}
			}
			w.deploy()
			w.settle()
			w.stopped()
			w.settle()
			if split := w.split(); split != nil || w.service("web").Spec.Selector[traffic.LabelProxy] != "" {
				t.Errorf("it is left: %s", w.summary())
			}
		})
	}
}

// A restore of a backup brings the proxies before their split, and a Service that leads to them.
func TestWhatIsRestoredBeforeItsSplitStaysForAWhile(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	w.loseSplit("web")
	w.clock.Step(time.Minute)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "serin-proxy-web-1", UID: "set", Labels: map[string]string{traffic.LabelProxy: "web"}, CreationTimestamp: metav1.NewTime(w.clock.Now()),
	}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serin-proxy-web"}}
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(deployment), deployment))
	w.must(w.api.Delete(w.ctx(), deployment))
	w.create(rs)
	w.settle()
	w.clock.Step(lateSplit - time.Second)
	again, err := w.reconcile(w.controller())
	if err != nil || again != time.Second || w.service("web").Spec.Selector[traffic.LabelProxy] != "" {
		t.Fatalf("again in %s, %v: %s", again, err, w.summary())
	}
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(rs), rs))
	w.clock.Step(again)
	w.settle()
	if err := w.api.Get(w.ctx(), client.ObjectKeyFromObject(rs), rs); !apierrors.IsNotFound(err) {
		t.Errorf("the ReplicaSet: error %v; %s", err, w.summary())
	}
}

func TestProxiesThatLostTheirDeploymentGetAnotherWhileTheySplit(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	rs, deployment := w.loseDeployment()
	w.settle()
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(rs), rs))
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(deployment), deployment))
	if c := programmed(w); c.Status != metav1.ConditionTrue {
		t.Errorf("Programmed: %+v", c)
	}
}

// Kubernetes makes no endpoints for a Service without a selector: there is nothing to wait for.
func TestASplitEndsAlsoWhereItsServiceSelectsNoPodsAnyMore(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"its owner removed the selector": func(s *corev1.Service) { s.Spec.Selector = map[string]string{traffic.LabelProxy: "web"} },
		"all of it is removed":           func(s *corev1.Service) { s.Spec.Selector = nil },
		"it leads to another host now": func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.goLive()
			root := w.service("web")
			change(root)
			w.must(w.api.Update(w.ctx(), root))
			w.must(w.api.Delete(w.ctx(), w.split()))
			for range 3 {
				w.settle()
				w.endpoints()
				w.deploy()
				w.stopped()
			}
			w.settle()
			if w.split() != nil {
				t.Errorf("it is left: %s", w.summary())
			}
		})
	}
}

// A pod on a node that is gone stays until an administrator deletes it.
func TestAProxyOnANodeThatIsGoneDoesNotHoldTheEndOfASplit(t *testing.T) {
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.goLive()
			end(w)
			w.deploy() // its pods are to stop
			for _, pod := range w.proxies() {
				pod.Status.Conditions[0].Status = corev1.ConditionFalse
				w.must(w.api.Status().Update(w.ctx(), &pod))
			}
			w.settle()
			var left discoveryv1.EndpointSliceList
			w.must(w.api.List(w.ctx(), &left, client.MatchingLabels{traffic.LabelProxy: "web"}))
			if split := w.split(); split != nil || len(left.Items) > 0 || len(w.proxies()) == 0 {
				t.Errorf("%d slices are left; %s", len(left.Items), w.summary())
			}
		})
	}
}

func TestTwoSplitsForOneService(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	second := makeSplit(1, 1)
	second.Name, second.UID = "second", "uid-second"
	second.CreationTimestamp = metav1.Unix(1, 0) // older, but the first has its proxies behind the Service
	w.create(second)
	_, err := w.controller().Reconcile(w.ctx(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(second)})
	w.must(err)
	w.must(w.api.Get(w.ctx(), client.ObjectKeyFromObject(second), second))
	c := meta.FindStatusCondition(second.Status.Conditions, splitv1.ConditionAccepted)
	if c == nil || c.Reason != splitv1.ReasonConflict || !strings.Contains(c.Message, `"web"`) {
		t.Errorf("Accepted: %+v", c)
	}
	if len(second.Finalizers) != 0 {
		t.Errorf("finalizers: %v", second.Finalizers)
	}
	w.settle()
	if c := programmed(w); c.Status != metav1.ConditionTrue {
		t.Errorf("the first is disturbed: %+v", c)
	}
}

func TestRouters(t *testing.T) {
	for name, test := range map[string]struct {
		routing string
		reason  string // of Accepted; "" when the split is left alone
	}{
		"the default":                      {"", splitv1.ReasonAccepted},
		"one that is offered":              {"router: nginx", splitv1.ReasonAccepted},
		"another controller's":             {"router: smi", ""},
		"an unknown one is no other one":   {"router: ngin", splitv1.ReasonUnknownRouter},
		"a longer name is no shorter one":  {"router: nginx-plus", splitv1.ReasonUnknownRouter},
		"upper case is another name":       {"router: NGINX", splitv1.ReasonUnknownRouter},
		"an annotation that can't be read": {"routre: smi", splitv1.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(shop()...)
			split := makeSplit(1, 0)
			if test.routing != "" {
				split.Annotations = map[string]string{splitv1.AnnotationRouting: test.routing}
			}
			w.create(split)
			w.settle()
			reason := ""
			if c := meta.FindStatusCondition(w.split().Status.Conditions, splitv1.ConditionAccepted); c != nil {
				reason = c.Reason
			}
			if reason != test.reason || (test.reason == "" && w.writes > 0) {
				t.Errorf("Accepted %q after %d writes, want %q", reason, w.writes, test.reason)
			}
		})
	}
}

func TestEventsTellTransitionsOnly(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	if diff := cmp.Diff([]string{"Normal Programmed live weights: web-stable 100, web-canary 0"}, recorded(w.events)); diff != "" {
		t.Errorf("going live (-want +got):\n%s", diff)
	}
	w.step("the weights move", func() { w.weights(90, 10) })
	w.step("the proxies follow", func() { w.confirm() })
	if diff := cmp.Diff([]string{"Normal Programmed live weights: web-stable 90, web-canary 10"}, recorded(w.events)); diff != "" {
		t.Errorf("new weights (-want +got):\n%s", diff)
	}
	w.step("a port gets weights of its own, and the proxies follow before the controller looks", func() {
		split := w.split()
		split.Annotations = map[string]string{splitv1.AnnotationRouting: `ports: {"80/TCP": {weights: {"web-stable": 3, "web-canary": 1}}}`}
		w.must(w.api.Update(w.ctx(), split))
		w.confirm()
	})
	if diff := cmp.Diff([]string{"Normal Programmed live weights: web-stable (80/TCP 3), web-canary (80/TCP 1)"}, recorded(w.events)); diff != "" {
		t.Errorf("weights of a port (-want +got):\n%s", diff)
	}
	w.step("it has those of the split again", func() {
		split := w.split()
		split.Annotations = nil
		w.must(w.api.Update(w.ctx(), split))
		w.confirm()
	})
	if diff := cmp.Diff([]string{"Normal Programmed live weights: web-stable 90, web-canary 10"}, recorded(w.events)); diff != "" {
		t.Errorf("the weights of the split (-want +got):\n%s", diff)
	}
	w.step("a backend loses its port", func() {
		s := w.service("web-canary")
		s.Spec.Ports[0].Port = 81
		w.must(w.api.Update(w.ctx(), s))
	})
	got := recorded(w.events)
	if len(got) != 1 || !strings.HasPrefix(got[0], `Warning PortMismatch spec.backends: Service "web-canary" has no port 80 (http)`) {
		t.Errorf("a lost port: %q", got)
	}
	w.step("the proxies follow that too", func() { w.confirm() })
	if diff := cmp.Diff([]string{"Normal Programmed live weights: web-stable 90, web-canary 0"}, recorded(w.events)); diff != "" {
		t.Errorf("without the port (-want +got):\n%s", diff)
	}
	w.step("it gets it back", func() {
		s := w.service("web-canary")
		s.Spec.Ports[0].Port = 80
		w.must(w.api.Update(w.ctx(), s))
	})
	if got := recorded(w.events); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Resolved") {
		t.Errorf("the port is back: %q", got)
	}
}

func TestTheTimeOfATransitionIsKept(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	since := programmed(w).LastTransitionTime
	w.clock.Step(time.Hour)
	w.step("another pod of a backend", func() {
		w.create(makePod("app-9", map[string]string{"app": "web", "version": "1"}))
		w.endpoints()
	})
	if got := w.split().Status.Backends[0].ReadyEndpoints; got != 2 {
		t.Errorf("%d ready endpoints, want 2", got)
	}
	if now := programmed(w).LastTransitionTime; !now.Equal(&since) {
		t.Errorf("the transition moved from %v to %v", since, now)
	}
}

func TestTheRecordOnTheServiceIsItsOwnersSelector(t *testing.T) {
	w := newWorld(t)
	w.goLive()
	s := w.service("web")
	if got := s.Annotations[plan.AnnotationOriginalSelector]; got != `{"app":"web"}` {
		t.Errorf("recorded: %s", got)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", traffic.LabelProxy: "web"}, s.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	leave(w)
	s = w.service("web")
	if diff := cmp.Diff(map[string]string{"app": "web"}, s.Spec.Selector); diff != "" || len(s.Annotations) != 0 {
		t.Errorf("restored (-want +got):\n%s\nannotations: %v", diff, s.Annotations)
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	unknown := newWorld(t).controller().Options
	unknown.DefaultRouter = "istio"
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"nothing is given":                  {Options{}, "required"},
		"the default router is not offered": {unknown, `"istio"`},
	} {
		if err := test.options.complete(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A handler that panics is a crash loop: none of them may, whatever arrives.
func FuzzIndexesAndMaps(f *testing.F) {
	f.Add("web", "web-stable", "serin.dev/proxy", "nginx")
	f.Add("", ".", "", "")
	f.Fuzz(func(_ *testing.T, service, backend, key, value string) {
		split := makeSplit(1, 1)
		split.Spec.Service, split.Spec.Backends[0].Service = service, backend
		splitv1.SetRouting(split, splitv1.Routing{Router: value})
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: service, Annotations: map[string]string{plan.AnnotationOriginalSelector: value}},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{key: value}},
		}
		for _, i := range indexes() {
			for _, o := range []client.Object{split, s, &corev1.Pod{}, &metav1.PartialObjectMetadata{}} {
				i.values(o)
			}
		}
		(&Options{}).routerName(split)
		splitOfProxy(nil, s) //nolint:staticcheck // it takes nothing from the context
		plan.Decide(plan.Observation{Split: split, Claim: plan.ClaimOurs, Root: plan.Root{Presence: kit.Present, Service: s}})
	})
}
