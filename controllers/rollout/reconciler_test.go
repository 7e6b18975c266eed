// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/egress"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/traffic"
)

var errInjected = errors.New("the API server is on fire")

// noTraffic measures nothing.
type noTraffic struct{}

func (noTraffic) Measure(context.Context, types.NamespacedName, analysis.Subject, analysis.Weight) error {
	return nil
}
func (noTraffic) Forget(types.NamespacedName) {}
func (noTraffic) Windows(types.NamespacedName, time.Time) ([]analysis.Window, analysis.Health) {
	return nil, analysis.Health{}
}

func objects() []client.Object {
	labels := map[string]string{"app": "website"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		},
		Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "website-1", Namespace: "shop", UID: "rs",
			Labels:          map[string]string{"app": "website", "pod-template-hash": "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
		Status: appsv1.ReplicaSetStatus{Replicas: 2, AvailableReplicas: 2},
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop"},
		Spec:       corev1.ServiceSpec{Selector: labels, ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
	}
	ro := &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "ro", Generation: 1, Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.RolloutSpec{
			WorkloadRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "website"},
			Service:     "website", Strategy: v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 10}}},
		},
	}
	return []client.Object{d, rs, svc, ro}
}

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, splitv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// noMetrics are those of users who named none.
type noMetrics struct{ UserMetrics }

func (noMetrics) Forget(types.NamespacedName) {}

// newReconciler has a client that fails as told and records what is written.
func newReconciler(t testing.TB, fail func(call string) error) (*Reconciler, client.Client, *[]string) {
	t.Helper()
	return newReconcilerOf(t, fail, objects()...)
}

// newReconcilerOf is newReconciler with other objects.
func newReconcilerOf(t testing.TB, fail func(call string) error, existing ...client.Object) (*Reconciler, client.Client, *[]string) {
	t.Helper()
	writes := &[]string{}
	check := func(verb string, obj any) error {
		kind := strings.TrimPrefix(reflect.TypeOf(obj).String(), "*")
		kind = kind[strings.LastIndex(kind, ".")+1:]
		if verb != "get" && verb != "list" {
			*writes = append(*writes, verb+" "+kind)
		}
		return fail(verb + " " + kind)
	}
	builder := fake.NewClientBuilder().WithScheme(testScheme(t))
	for _, i := range indexes() {
		builder = builder.WithIndex(i.object, i.name, i.values)
	}
	c := builder.WithObjects(existing...).WithStatusSubresource(&v1alpha1.Rollout{}, &v1alpha1.AnalysisResult{}, &splitv1.TrafficSplit{}).
		WithIndex(&discoveryv1.EndpointSlice{}, traffic.IndexEndpoints, func(o client.Object) []string { return []string{o.GetLabels()[discoveryv1.LabelServiceName]} }).
		WithInterceptorFuncs(intercept(check)).Build()
	return New(c, events.NewFakeRecorder(100), Options{
		DefaultRouter: v1alpha1.RouterNginx, Routers: []v1alpha1.RouterName{v1alpha1.RouterNginx},
		Live: c, Measurements: noTraffic{}, Metrics: noMetrics{}, Outbox: notify.New(c, egress.Policy{}, clock.RealClock{}, notify.Options{}), Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
	}), c, writes
}

func intercept(check func(string, any) error) interceptor.Funcs {
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := check("apply", obj); err != nil {
				return err
			}
			if strings.Contains(fmt.Sprintf("%T", obj), "unstructured") && !(&client.ApplyOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
				return errors.New("to apply an object without a type, the cache begins to watch the kind a second time")
			}
			return c.Apply(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := check("get", obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := check("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := check("create", obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := check("patch", obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := check("delete", obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := check("patch "+sub, obj); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := check("update "+sub, obj); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	}
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "website"}}

func TestWhatCannotBeReadIsNeverTakenForAbsent(t *testing.T) {
	for _, call := range []string{"get Deployment", "get Service", "get TrafficSplit", "list ReplicaSetList", "list RolloutList", "list FreezeList"} {
		t.Run(call, func(t *testing.T) {
			r, c, writes := newReconciler(t, func(got string) error {
				if got == call {
					return errInjected
				}
				return nil
			})
			if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, errInjected) {
				t.Errorf("error %v: it must be tried again", err)
			}
			if got := fmt.Sprint(*writes); got != "[update status Rollout]" {
				t.Errorf("written: %s", got)
			}
			ro := &v1alpha1.Rollout{}
			if err := c.Get(t.Context(), request.NamespacedName, ro); call != "get Rollout" && err != nil {
				t.Fatal(err)
			}
			if got := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady); got == nil || got.Reason != v1alpha1.ReasonObservationFailed {
				t.Errorf("Ready %+v", got)
			}
		})
	}
}

func TestNothingIsDoneWhenTheStatusCannotBeWritten(t *testing.T) {
	r, _, writes := newReconciler(t, func(got string) error {
		if got == "update status Rollout" {
			return errInjected
		}
		return nil
	})
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	if got := fmt.Sprint(*writes); got != "[update status Rollout]" {
		t.Errorf("written: %s", got)
	}
}

func TestAFailedActionIsToldAndTriedAgain(t *testing.T) {
	r, _, _ := newReconciler(t, func(got string) error {
		if strings.HasPrefix(got, "apply Deployment") {
			return errInjected
		}
		return nil
	})
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	recorder, ok := r.recorder.(*events.FakeRecorder)
	if !ok || !strings.Contains(<-recorder.Events, "ActionFailed") {
		t.Error("no event")
	}
}

func TestARolloutThatIsGoneIsNotMeasuredAnyMore(t *testing.T) {
	r, c, writes := newReconciler(t, func(string) error { return nil })
	ro := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), request.NamespacedName, ro); err != nil {
		t.Fatal(err)
	}
	ro.Finalizers = nil
	if err := errors.Join(c.Update(t.Context(), ro), c.Delete(t.Context(), ro)); err != nil {
		t.Fatal(err)
	}
	*writes = nil
	if _, err := r.Reconcile(t.Context(), request); err != nil || len(*writes) > 0 {
		t.Errorf("error %v, written %v", err, *writes)
	}
}
