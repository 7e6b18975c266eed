// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/analysis"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/workload"
)

var errInjected = errors.New("the API server is on fire")

// secretValue must be nowhere but in the spec, the candidate's pods and Helm's records.
const secretValue = "hunter2"

// cluster is a namespace with a Helm release, on a fake API server. Its actors are moved by
// the test.
type cluster struct {
	*testing.T
	client.Client
	r      *Reconciler
	helm   *helm
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	calls  int
	fails  int            // the time at which each call fails, counted from 1; 0 for never
	names  map[string]int // how often each call was made
	denied string         // the call that no right is left for
	counts *counts
	writes []string
	uid    int
}

// helm is a release in memory.
type helm struct {
	releases.Release
	c       *cluster
	copies  bool
	failure error
	// turn is what an upgrade that waits is called by, and renderTurn a render that does; nil
	// when none waits.
	turn, renderTurn func()
	request          releases.Request
	// meanwhile happens while the values of an upgrade are compared.
	meanwhile func()
	// unreadable is why the records can't be read.
	unreadable error
	// exceeded is the limit that a proposal meets, or what comes first.
	exceeded error
	// refused is why no canary can be made.
	refused []string
}

func (h *helm) Get(context.Context, string, string) (releases.Release, error) {
	if err := h.c.call("helm get"); err != nil {
		return releases.Release{}, err
	}
	return h.Release, h.unreadable
}

func (h *helm) template() corev1.PodTemplateSpec {
	t := podTemplate("app:v2")
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: secretValue}}
	return t
}

func (h *helm) Propose(_ context.Context, r releases.Request) (releases.Proposal, error) {
	if err := h.c.call("helm propose"); err != nil {
		return releases.Proposal{}, err
	}
	if h.exceeded != nil {
		if errors.As(h.exceeded, new(releases.BusyError)) {
			h.renderTurn = r.Turn
		}
		return releases.Proposal{}, h.exceeded
	}
	h.request, h.renderTurn = r, nil
	if h.refused != nil {
		return releases.Proposal{Refused: h.refused}, nil
	}
	p := releases.Proposal{Digest: "d1", Canaries: []releases.Canary{{Name: "web", Template: h.template(), Rolls: h.copies}}, Later: []string{"Role/web"}}
	if h.copies {
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"token": "aHVudGVyMg=="}}}
		o.SetAPIVersion("v1")
		o.SetKind("Secret")
		o.SetName("settings-canary-1")
		p.Copies = append(p.Copies, o)
		p.Canaries[0].Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings-canary-1"},
		}}}
	}
	return p, nil
}

func (h *helm) Adopt(ctx context.Context, r releases.Request) error {
	if err := h.c.call("helm upgrade"); err != nil {
		return err
	}
	if errors.As(h.failure, new(releases.BusyError)) {
		h.turn = r.Turn
		return h.failure
	}
	h.turn = nil
	if h.meanwhile != nil {
		h.meanwhile()
	}
	if err := r.Still(ctx); err != nil {
		return err
	}
	if h.failure != nil {
		return h.failure
	}
	h.Newest, h.Deployed, h.Status, h.AdoptedBy, h.AdoptedContent = 5, 5, "deployed", r.UID, r.Content()
	d := &appsv1.Deployment{}
	if err := h.c.Get(ctx, key("web"), d); err != nil {
		return err
	}
	d.Spec.Template = h.template()
	return h.c.Update(ctx, d)
}

func (h *helm) WithdrawUpgrade(types.NamespacedName) { h.turn = nil }

func (h *helm) WithdrawProposal(types.NamespacedName) { h.renderTurn = nil }

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

func objects() []client.Object {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "d"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate("app:v1")},
		Status:     appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	rs := workload.MakeCanary(d, *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment")), "1", 2)
	rs.UID, rs.Status = "rs", appsv1.ReplicaSetStatus{Replicas: 2, AvailableReplicas: 2}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "svc"},
		Spec: corev1.ServiceSpec{Selector: labels, ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
		}},
	}
	cr := &v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Name: "try", Namespace: "shop", UID: "cr", Generation: 1},
		Spec:       v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Config: "token: " + secretValue},
	}
	return []client.Object{d, rs, svc, cr}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	// The fake API server goes through all kinds of its scheme at each write.
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, v1alpha1.AddToScheme, splitv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, names: map[string]int{}, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), events: events.NewFakeRecorder(1000)}
	c.counts = &counts{c: c, weights: map[string]analysis.Weight{}}
	c.helm = &helm{c: c, Release: releases.Release{Newest: 4, Deployed: 4, Status: "deployed"}}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.CanaryRelease{}, &splitv1.TrafficSplit{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}).Build()
	seen := interceptor.NewClient(c.Client.(client.WithWatch), c.intercept())
	c.r = New(seen, c.events, Options{
		Live: c.Client, Releases: c.helm, Measurements: c.counts, Clock: c.clock, Account: "serin-canary",
		As: func(string) (client.Client, error) { return seen, c.call("as") },
	})
	return c
}

// call counts what may fail.
func (c *cluster) call(what string) error {
	c.calls++
	verb, _, _ := strings.Cut(what, " ")
	if slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, verb) {
		c.writes = append(c.writes, what)
	}
	c.names[what]++
	if what == c.denied {
		return errors.Join(errInjected, apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New(`User "account" cannot `+verb+` resource "secrets"`)))
	}
	if c.names[what] == c.fails {
		return errInjected
	}
	return nil
}

func (c *cluster) intercept() interceptor.Funcs {
	kind := func(o any) string { return strings.TrimPrefix(reflect.TypeOf(o).String(), "*") }
	return interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(c.call("get "+kind(o)), w.Get(ctx, k, o, opts...))
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(c.call("list "+kind(l)), w.List(ctx, l, opts...))
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if dry := (&client.CreateOptions{}).ApplyOptions(opts).DryRun; len(dry) > 0 {
				return c.call("check " + kind(o))
			}
			if err := c.call("create " + kind(o)); err != nil {
				return err
			}
			c.uid++
			o.SetUID(types.UID(fmt.Sprint("uid-", c.uid)))
			return w.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := c.call("update " + kind(o)); err != nil {
				return err
			}
			return w.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.call("patch " + kind(o)); err != nil {
				return err
			}
			return w.Patch(ctx, o, p, opts...)
		},
		Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := c.call("apply " + kind(o)); err != nil {
				return err
			}
			if err := w.Apply(ctx, o, opts...); err != nil {
				return err
			}
			return c.reselect(ctx, w)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := c.call("delete " + kind(o)); err != nil {
				return err
			}
			return w.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := c.call("update " + sub + " " + kind(o)); err != nil {
				return err
			}
			return w.SubResource(sub).Update(ctx, o, opts...)
		},
	}
}

// reselect gives the Deployment its selector again: the fake API server takes the empty one
// of the Go type for one that was applied.
func (c *cluster) reselect(ctx context.Context, w client.Client) error {
	d := &appsv1.Deployment{}
	if err := w.Get(ctx, key("web"), d); err != nil {
		return err
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return w.Update(ctx, d)
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// reconcile once; an injected error may come of it and nothing else.
func (c *cluster) reconcile() {
	c.Helper()
	_, err := c.r.Reconcile(c.Context(), reconcile.Request{NamespacedName: key("try")})
	if err != nil && !errors.Is(err, errInjected) {
		c.Fatalf("%v\n%v", err, c.writes)
	}
}

// run moves everybody in turn.
func (c *cluster) run(times int) {
	c.Helper()
	for range times {
		c.reconcile()
		c.deployments()
		c.replicaSets()
		c.splits()
		c.endpoints()
		c.clock.SetTime(c.clock.Now().Add(3 * time.Second))
	}
}

// runToEnd moves everybody until the CanaryRelease has ended.
func (c *cluster) runToEnd() {
	c.Helper()
	for range 60 {
		c.run(1)
		if cr := c.canaryRelease(); cr.Status.Decision != nil && cr.Status.Decision.EndedAt != nil && len(cr.Finalizers) == 0 {
			return
		}
	}
}

func (c *cluster) sets() []appsv1.ReplicaSet {
	list := &appsv1.ReplicaSetList{}
	c.must(c.List(c.Context(), list))
	return list.Items
}

// replicaSets have all their pods at once.
func (c *cluster) replicaSets() {
	for _, rs := range c.sets() {
		rs.Status.Replicas, rs.Status.AvailableReplicas = *rs.Spec.Replicas, *rs.Spec.Replicas
		c.must(c.Status().Update(c.Context(), &rs))
	}
}

// deployments adopt what is theirs, make what is missing, and remove what is old.
func (c *cluster) deployments() {
	d := &appsv1.Deployment{}
	if err := c.Get(c.Context(), key("web"), d); apierrors.IsNotFound(err) {
		return
	}
	ref := *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	var newest *appsv1.ReplicaSet
	sets := c.sets()
	for i := range sets {
		rs := &sets[i]
		if metav1.GetControllerOf(rs) == nil {
			rs.OwnerReferences = []metav1.OwnerReference{ref}
			c.must(c.Update(c.Context(), rs))
		}
		if metav1.IsControlledBy(rs, d) && workload.SameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			newest = rs
		}
	}
	if newest == nil && !d.Spec.Paused {
		c.uid++
		made := workload.MakeCanary(d, ref, fmt.Sprint("own", c.uid), *d.Spec.Replicas)
		made.UID = types.UID(made.Name)
		c.must(c.Create(c.Context(), made))
		return
	}
	var total, updated int32
	for i := range sets {
		rs := &sets[i]
		if !metav1.IsControlledBy(rs, d) {
			continue
		}
		if newest != nil && rs.UID != newest.UID && newest.Status.AvailableReplicas == *d.Spec.Replicas && *rs.Spec.Replicas > 0 {
			rs.Spec.Replicas = new(int32(0))
			c.must(c.Update(c.Context(), rs))
		}
		total += rs.Status.Replicas
	}
	if newest != nil {
		updated = newest.Status.AvailableReplicas
	}
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ObservedGeneration = total, updated, total, d.Generation
	c.must(c.Status().Update(c.Context(), d))
}

// splits are programmed at once.
func (c *cluster) splits() {
	list := &splitv1.TrafficSplitList{}
	c.must(c.List(c.Context(), list))
	for _, split := range list.Items {
		meta.SetStatusCondition(&split.Status.Conditions, metav1.Condition{
			Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue, Reason: splitv1.ReasonProgrammed, ObservedGeneration: split.Generation,
		})
		split.Status.ObservedRouting = splitv1.RoutingDigest(&split)
		c.must(c.Status().Update(c.Context(), &split))
	}
}

// endpoints follow the Services of the versions.
func (c *cluster) endpoints() {
	services := &corev1.ServiceList{}
	c.must(c.List(c.Context(), services, client.HasLabels{v1alpha1.LabelRole}))
	c.must(c.DeleteAllOf(c.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace("shop")))
	for _, s := range services.Items {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		}}
		for _, rs := range c.sets() {
			if rs.Labels[revisionLabel] == s.Spec.Selector[revisionLabel] && rs.Status.AvailableReplicas > 0 {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: rs.Name + "-x"}})
			}
		}
		c.must(c.Create(c.Context(), slice))
	}
}

func (c *cluster) canaryRelease() *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{}
	c.must(c.Get(c.Context(), key("try"), cr))
	return cr
}

func (c *cluster) ready() metav1.Condition {
	ready := meta.FindStatusCondition(c.canaryRelease().Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return metav1.Condition{}
	}
	return *ready
}

func (c *cluster) change(change func(*v1alpha1.CanaryReleaseSpec)) {
	cr := c.canaryRelease()
	change(&cr.Spec)
	cr.Generation++
	c.must(c.Update(c.Context(), cr))
}

func (c *cluster) transition(t v1alpha1.CanaryTransition) {
	c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Transition = t })
}

// dump is what of the namespace a user would compare.
func (c *cluster) dump() map[string]any {
	out := map[string]any{}
	services, deployments, splits, secrets := &corev1.ServiceList{}, &appsv1.DeploymentList{}, &splitv1.TrafficSplitList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{services, deployments, splits, secrets} {
		c.must(c.List(c.Context(), list))
	}
	for _, o := range services.Items {
		out["Service/"+o.Name] = []any{o.Spec, maps.Clone(o.Labels), maps.Clone(o.Annotations)}
	}
	for _, o := range deployments.Items {
		out["Deployment/"+o.Name] = []any{o.Spec, maps.Clone(o.Labels), maps.Clone(o.Annotations)}
	}
	for _, o := range splits.Items {
		out["TrafficSplit/"+o.Name] = o.Spec
	}
	for _, o := range secrets.Items {
		out["Secret/"+o.Name] = o.Data
	}
	for _, rs := range c.sets() {
		if *rs.Spec.Replicas > 0 {
			out["ReplicaSet/"+rs.Name] = []any{rs.Spec, rs.OwnerReferences}
		}
	}
	return out
}
