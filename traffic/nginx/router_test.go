// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func testRouter(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Router, client.WithWatch) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, splitv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithIndex(&corev1.Pod{}, traffic.IndexProxy, byProxy).
		WithIndex(&appsv1.ReplicaSet{}, traffic.IndexProxy, byProxy).
		WithIndex(&networkingv1.NetworkPolicy{}, traffic.IndexPolicies, func(o client.Object) []string {
			return traffic.PolicyKeys(o.(*networkingv1.NetworkPolicy))
		}).
		WithIndex(&discoveryv1.EndpointSlice{}, traffic.IndexEndpoints, func(o client.Object) []string {
			return []string{o.GetLabels()[discoveryv1.LabelServiceName]}
		}).WithObjects(objects...).Build()
	r, err := New(interceptor.NewClient(api, funcs), Options{Image: "serin:test", Reports: said{}})
	if err != nil {
		t.Fatal(err)
	}
	return r, api
}

func byProxy(o client.Object) []string { return []string{o.GetLabels()[traffic.LabelProxy]} }

func conditions(t *testing.T, r *Router, target traffic.Target) map[string]traffic.Object {
	t.Helper()
	state, err := r.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]traffic.Object{}
	for _, o := range state.Objects {
		objects[o.Kind] = o
	}
	return objects
}

// made is a router that has made the objects of the target.
func made(t *testing.T, target traffic.Target) (*Router, client.WithWatch) {
	t.Helper()
	r, api := testRouter(t, interceptor.Funcs{})
	for kind, o := range conditions(t, r, target) {
		if o.Condition != traffic.ObjectAbsent {
			t.Fatalf("%s is %s before it is made", kind, o.Condition)
		}
		if err := r.Apply(t.Context(), target, o); err != nil {
			t.Fatal(err)
		}
	}
	return r, api
}

func TestWhatWasAppliedIsCurrent(t *testing.T) {
	r, _ := made(t, shopTarget())
	for kind, o := range conditions(t, r, shopTarget()) {
		if o.Condition != traffic.ObjectCurrent {
			t.Errorf("%s is %s", kind, o.Condition)
		}
	}
}

func TestDriftIsFoundAndPutRight(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) func(*testing.T, client.Client) {
		return func(t *testing.T, c client.Client) {
			t.Helper()
			d := &appsv1.Deployment{}
			must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy-web"}, d))
			change(d)
			must(t, c.Update(t.Context(), d, client.FieldOwner("another")))
		}
	}
	zero, replaced := int32(0), "other:1"
	for name, test := range map[string]struct {
		kind   string
		change func(*testing.T, client.Client)
		want   traffic.ObjectCondition
	}{
		"a user scales the proxies to zero": {
			"Deployment", deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = &zero }), traffic.ObjectOutdated,
		},
		"a user sets another image": {
			"Deployment", deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = replaced }), traffic.ObjectOutdated,
		},
		"a user restarts the proxies, which is no drift": {
			"Deployment", deployment(func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
			}), traffic.ObjectCurrent,
		},
		"a user widens the binding": {
			"RoleBinding", func(t *testing.T, c client.Client) {
				t.Helper()
				binding := &rbacv1.RoleBinding{}
				must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy"}, binding))
				binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve"})
				must(t, c.Update(t.Context(), binding, client.FieldOwner("another")))
			}, traffic.ObjectOutdated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := made(t, shopTarget())
			test.change(t, api)
			o := conditions(t, r, shopTarget())[test.kind]
			if o.Condition != test.want {
				t.Fatalf("it is %s, want %s", o.Condition, test.want)
			}
			must(t, r.Apply(t.Context(), shopTarget(), o))
			if o := conditions(t, r, shopTarget())[test.kind]; o.Condition != traffic.ObjectCurrent {
				t.Errorf("put right, it is %s", o.Condition)
			}
		})
	}
}

func TestAChangeOfTheRootServiceReachesTheProxies(t *testing.T) {
	r, _ := made(t, shopTarget())
	target := shopTarget()
	target.Resolved.Ports[1].TargetNumber++
	if o := conditions(t, r, target)["Deployment"]; o.Condition != traffic.ObjectOutdated {
		t.Errorf("the Deployment is %s", o.Condition)
	}
	target.Resolved.Ports = nil
	if o := conditions(t, r, target)["Deployment"]; o.Condition != traffic.ObjectCurrent {
		t.Errorf("while what is wanted can't be made, the Deployment is %s", o.Condition)
	}
}

func TestAnObjectThatIsNoLongerTheOneObservedIsNotWritten(t *testing.T) {
	r, api := made(t, shopTarget())
	seen := conditions(t, r, shopTarget())["Deployment"]
	d := &appsv1.Deployment{}
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy-web"}, d))
	d.Labels["touched"] = "yes"
	must(t, api.Update(t.Context(), d))
	if err := r.Apply(t.Context(), shopTarget(), seen); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}

func TestObjectsOfOthersAreToldApart(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		want   traffic.ObjectCondition
	}{
		"no owner":        {nil, traffic.ObjectForeign},
		"another split's": {map[string]string{traffic.LabelProxy: "x"}, traffic.ObjectForeign},
		"an earlier split's of this name is taken on": {map[string]string{traffic.LabelProxy: "web"}, traffic.ObjectOutdated},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{})
			must(t, api.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "serin-proxy-web", Labels: test.labels,
			}}))
			if o := conditions(t, r, shopTarget())["PodDisruptionBudget"]; o.Condition != test.want {
				t.Errorf("it is %s, want %s", o.Condition, test.want)
			}
		})
	}
}

func TestAServiceAccountOfAUserIsNotTaken(t *testing.T) {
	for name, labels := range map[string]map[string]string{"no label": nil, "the label of a split": {traffic.LabelProxy: "web"}} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{})
			must(t, api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "serin-proxy", Labels: labels}}))
			if o := conditions(t, r, shopTarget())["ServiceAccount"]; o.Condition != traffic.ObjectForeign {
				t.Errorf("it is %s", o.Condition)
			}
		})
	}
}

// Proxies of a Deployment whose ServiceAccount was made anew have tokens that are void.
func TestAServiceAccountThatIsMadeAnewReplacesTheProxies(t *testing.T) {
	r, api := made(t, shopTarget())
	account := &corev1.ServiceAccount{}
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy"}, account))
	account.UID = "anew"
	must(t, api.Update(t.Context(), account))
	o := conditions(t, r, shopTarget())["Deployment"]
	if o.Condition != traffic.ObjectOutdated {
		t.Fatalf("the Deployment is %s", o.Condition)
	}
	must(t, r.Apply(t.Context(), shopTarget(), o))
	d := &appsv1.Deployment{}
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy-web"}, d))
	if d.Spec.Template.Annotations[AnnotationAccount] != "anew" {
		t.Errorf("its pods have the annotations %v", d.Spec.Template.Annotations)
	}
	if o := conditions(t, r, shopTarget())["Deployment"]; o.Condition != traffic.ObjectCurrent {
		t.Errorf("afterwards it is %s", o.Condition)
	}
}

func TestABindingToAnotherRoleIsMadeAnew(t *testing.T) {
	r, api := made(t, shopTarget())
	r.options.Role = "serin-proxy" // of the same name
	for _, want := range []traffic.ObjectCondition{traffic.ObjectOutdated, traffic.ObjectAbsent} {
		o := conditions(t, r, shopTarget())["RoleBinding"]
		if o.Condition != want {
			t.Fatalf("it is %s, want %s", o.Condition, want)
		}
		must(t, r.Apply(t.Context(), shopTarget(), o))
	}
	binding := &rbacv1.RoleBinding{}
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy"}, binding))
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "serin-proxy"}); binding.RoleRef != want {
		t.Errorf("it is bound to %+v", binding.RoleRef)
	}
}

func TestWhatSplitsShareIsInUseWhileThereAreProxies(t *testing.T) {
	labels := func(split string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: "serin-proxy-" + split, Labels: map[string]string{traffic.LabelProxy: split}}
	}
	for name, test := range map[string]struct {
		proxies client.Object
		want    bool
	}{
		"none":                     {nil, false},
		"its Deployment":           {&appsv1.Deployment{ObjectMeta: labels("web")}, true},
		"a pod of its own":         {&corev1.Pod{ObjectMeta: labels("web")}, true},
		"another's Deployment":     {&appsv1.Deployment{ObjectMeta: labels("other")}, true},
		"another's pod":            {&corev1.Pod{ObjectMeta: labels("other")}, true},
		"another's pod that ended": {&corev1.Pod{ObjectMeta: labels("other"), Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{})
			if test.proxies != nil {
				must(t, api.Create(t.Context(), test.proxies))
			}
			for kind, o := range conditions(t, r, shopTarget()) {
				if shared := kind == "ServiceAccount" || kind == "RoleBinding"; o.Shared != shared || o.InUse != (shared && test.want) {
					t.Errorf("%s is shared: %t, in use: %t", kind, o.Shared, o.InUse)
				}
			}
		})
	}
}

// A backup is restored without the owners of its objects: who finds their Deployment gone has to stop
// the proxies by their ReplicaSet.
func TestReplicaSetsThatNoDeploymentAdoptedGoWithTheSplit(t *testing.T) {
	isNot := func(*appsv1.ReplicaSet) {}
	for name, test := range map[string]struct {
		deployment, stopping bool
		change               func(*appsv1.ReplicaSet)
		want                 bool
	}{
		"its Deployment is gone":       {change: isNot, want: true},
		"its Deployment may adopt it":  {change: isNot, deployment: true},
		"its pods stop":                {change: isNot, stopping: true},
		"the garbage collector has it": {change: func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = ownedBy("web") }},
		"it is being deleted": {change: func(rs *appsv1.ReplicaSet) {
			rs.DeletionTimestamp, rs.Finalizers = new(metav1.Now()), []string{"test/held"}
		}},
		"it is of another split":        {change: func(rs *appsv1.ReplicaSet) { rs.Labels[traffic.LabelProxy] = "other" }},
		"it is in another namespace":    {change: func(rs *appsv1.ReplicaSet) { rs.Namespace = "other" }},
		"it is of the app, not proxies": {change: func(rs *appsv1.ReplicaSet) { delete(rs.Labels, traffic.LabelProxy) }},
	} {
		t.Run(name, func(t *testing.T) {
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-set", Labels: map[string]string{traffic.LabelProxy: "web"}}}
			test.change(rs)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1-a", Labels: map[string]string{traffic.LabelProxy: "web"}}}
			if test.stopping {
				pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"test/held"}
			}
			r, api := testRouter(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, is := list.(*appsv1.ReplicaSetList); is && (&client.ListOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy != nil {
					t.Error("what is in the cache of ReplicaSets is none")
				}
				return c.List(ctx, list, opts...)
			}}, rs, pod)
			target := shopTarget()
			if test.deployment {
				must(t, r.Apply(t.Context(), target, conditions(t, r, target)["Deployment"]))
			}
			found, is := conditions(t, r, target)["ReplicaSet"]
			if is != test.want {
				t.Fatalf("found %+v", found)
			}
			if is && (found.UID != rs.UID || found.ResourceVersion == "" || !found.Workload || found.Condition != traffic.ObjectCurrent) {
				t.Errorf("found %+v", found)
			}
			must(t, api.Get(t.Context(), client.ObjectKeyFromObject(rs), rs))
		})
	}
}

func ownedBy(deployment string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment, UID: "uid-" + types.UID(deployment), Controller: new(true)}}
}

func TestAnObjectThatTheCacheDoesNotShowIsNotTaken(t *testing.T) {
	r, api := testRouter(t, interceptor.Funcs{})
	absent := conditions(t, r, shopTarget())["PodDisruptionBudget"]
	theirs, err := pieces()[3].wanted(shopTarget(), settings{Options: r.options})
	must(t, err)
	theirs.Object["spec"] = map[string]any{"maxUnavailable": "5%"}
	must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("another")))
	if err := r.Apply(t.Context(), shopTarget(), absent); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict with the other owner", err)
	}
}

func TestAReadThatFailsIsNotAbsence(t *testing.T) {
	broken := errors.New("the API server is away")
	for name, funcs := range map[string]interceptor.Funcs{
		"get": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}},
		"list": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := testRouter(t, funcs)
			if _, err := r.Observe(t.Context(), shopTarget()); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestProxiesAreTheirPodsWithTheirReports(t *testing.T) {
	r, api := testRouter(t, interceptor.Funcs{})
	target := shopTarget()
	digest := target.Resolved.Digest()
	r.options.Reports = said{
		"uid-p1": {Done: true, Serves: traffic.Want{Generation: 2, Configuration: digest}}, "uid-gone": {Done: true},
		"uid-p2": {Done: true, Failed: true, Message: "refused"},
	}
	add := func(name string, phase corev1.PodPhase, ready corev1.ConditionStatus, labels map[string]string) {
		t.Helper()
		labels[traffic.LabelProxy] = "web"
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: labels}, Spec: corev1.PodSpec{NodeName: "n1"}}
		must(t, api.Create(t.Context(), pod))
		pod.Status = corev1.PodStatus{PodIP: "10.0.0.1", Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
		must(t, api.Status().Update(t.Context(), pod))
	}
	add("p1", corev1.PodRunning, corev1.ConditionTrue, map[string]string{"app": "web", "tier": "front"})
	add("p2", corev1.PodRunning, corev1.ConditionFalse, map[string]string{"app": "old", "tier": "front"})
	add("p3", corev1.PodFailed, corev1.ConditionFalse, map[string]string{"app": "web", "tier": "front"})
	state, err := r.Observe(t.Context(), target)
	must(t, err)
	want := []traffic.Proxy{{Name: "p1", Node: "n1", Ready: true, Generation: 2, Configuration: digest}, {Name: "p2", Node: "n1"}}
	if len(state.Proxies) != 2 || state.Proxies[0] != want[0] || state.Proxies[1] != want[1] {
		t.Errorf("proxies: %+v, want %+v", state.Proxies, want)
	}
	stops := metav1.NewTime(time.Unix(1e9, 0))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p4", DeletionTimestamp: &stops}}
	if p := proxyOf(pod, traffic.Reading{}); !p.Terminating || !p.StopsBy.Equal(stops.Time) {
		t.Errorf("one that is being deleted: %+v", p)
	}
	made := metav1.NewTime(time.Unix(1e8, 0))
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p5", CreationTimestamp: made}}
	if p := proxyOf(pod, traffic.Reading{}); !p.Unowned.Equal(made.Time) {
		t.Errorf("one that nothing owns: %+v", p)
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "proxies", Controller: new(true)}}
	if p := proxyOf(pod, traffic.Reading{}); !p.Unowned.IsZero() {
		t.Errorf("one that has an owner: %+v", p)
	}
}

// said is what proxies say that they serve.
type said map[types.UID]traffic.Reading

func (s said) Read(_ types.NamespacedName, _ traffic.Want, pods map[types.UID]string) map[types.UID]traffic.Reading {
	out := map[types.UID]traffic.Reading{}
	for uid, address := range pods {
		if address == "10.0.0.1:15020" {
			out[uid] = s[uid]
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
