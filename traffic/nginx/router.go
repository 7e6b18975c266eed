// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "nginx"

// Router sends traffic of root Services through nginx. It implements traffic.Router.
type Router struct {
	client  client.Client
	options Options
	apps    apps
}

var _ traffic.Router = (*Router)(nil)

// New makes a Router that reads and writes by a client, whose cache should hold
// the managed fields of the proxies' objects.
func New(c client.Client, options Options) (*Router, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	return &Router{client: c, options: options}, nil
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansProxies }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	}
}

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	settings, problems, err := r.settings(ctx, target)
	if err != nil {
		return traffic.State{}, err
	}
	state, begun := traffic.State{Problems: problems, Proxies: settings.proxies}, false
	for _, p := range pieces() {
		object, live, err := r.observe(ctx, target, p, settings)
		if err != nil {
			return traffic.State{}, fmt.Errorf("%s %s: %w", p.gvk.Kind, object.Name, err)
		}
		if object.Unwanted && (object.Condition == traffic.ObjectAbsent || object.Condition == traffic.ObjectForeign) {
			continue
		}
		if p.workload {
			state.WantedProxies, begun = wantedProxies(live, settings.Options), live != nil
		}
		state.Objects = append(state.Objects, object)
	}
	if !begun {
		left, err := r.abandoned(ctx, target.Split, state.Proxies)
		if err != nil {
			return traffic.State{}, err
		}
		state.Objects = append(state.Objects, left...)
	}
	if err := r.markUse(ctx, target.Split.Namespace, &state); err != nil {
		return traffic.State{}, err
	}
	err = r.observeSurroundings(ctx, target, &state, begun)
	return state, err
}

// abandoned are the ReplicaSets that keep proxies up after their Deployment has gone. Such come from
// a backup: restored without their owner, and the Deployment deleted before it adopted them. What
// is served again gets a Deployment that adopts them. The cache holds ReplicaSets of which only a
// copy is one.
func (r *Router) abandoned(ctx context.Context, split *splitv1.TrafficSplit, proxies []traffic.Proxy) ([]traffic.Object, error) {
	if !slices.ContainsFunc(proxies, func(p traffic.Proxy) bool { return !p.Terminating }) {
		return nil, nil
	}
	var list appsv1.ReplicaSetList
	err := r.client.List(ctx, &list, client.InNamespace(split.Namespace), client.MatchingFields{traffic.IndexProxy: split.Name})
	if err != nil {
		return nil, fmt.Errorf("list the ReplicaSets of the proxies: %w", err)
	}
	var objects []traffic.Object
	for i := range list.Items {
		rs := &list.Items[i]
		if metav1.GetControllerOfNoCopy(rs) != nil || !rs.DeletionTimestamp.IsZero() {
			continue
		}
		objects = append(objects, traffic.Object{
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Name: rs.Name, UID: rs.UID, ResourceVersion: rs.ResourceVersion,
			Created: rs.CreationTimestamp.Time, Condition: traffic.ObjectCurrent, Workload: true,
		})
	}
	return objects, nil
}

// markUse marks what splits share, if there are proxies of any split in the namespace.
func (r *Router) markUse(ctx context.Context, namespace string, state *traffic.State) error {
	inUse := !state.Empty()
	if !inUse {
		var err error
		if inUse, err = r.anyProxies(ctx, namespace); err != nil {
			return err
		}
	}
	for i := range state.Objects {
		state.Objects[i].InUse = state.Objects[i].Shared && inUse
	}
	return nil
}

// anyProxies is true while a namespace has proxies of any split, or what makes them.
func (r *Router) anyProxies(ctx context.Context, namespace string) (bool, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.HasLabels{traffic.LabelProxy}, client.UnsafeDisableDeepCopy}
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments, options...); err != nil {
		return false, fmt.Errorf("list the Deployments of all proxies: %w", err)
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, options...); err != nil {
		return false, fmt.Errorf("list the pods of all proxies: %w", err)
	}
	living := slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !ended(&pod) })
	return living || len(deployments.Items) > 0, nil
}

// settings are those of one split, with what is wrong with them.
func (r *Router) settings(ctx context.Context, target traffic.Target) (settings, []traffic.Problem, error) {
	options, problems := r.optionsOf(target.Split)
	account := &corev1.ServiceAccount{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: target.Split.Namespace, Name: traffic.SharedProxyName}, account)
	if err = client.IgnoreNotFound(err); err != nil {
		return settings{}, nil, fmt.Errorf("ServiceAccount %s: %w", traffic.SharedProxyName, err)
	}
	s := settings{Options: options, account: account.UID}
	pods, readings, err := r.proxies(ctx, target)
	if err != nil {
		return settings{}, nil, err
	}
	for i := range pods {
		s.proxies = append(s.proxies, proxyOf(&pods[i], readings[i]))
	}
	return s, problems, r.size(ctx, target, &s, pods, readings)
}

// observe compares one object, which it returns too, with what is wanted. The live
// object is nil when there is none.
func (r *Router) observe(ctx context.Context, target traffic.Target, p piece, settings settings) (traffic.Object, client.Object, error) {
	name, label := p.name(target.Split.Name)
	object := traffic.Object{
		GroupVersionKind: p.gvk, Name: name, Workload: p.workload, Shared: p.shared,
		// Pods can't be made without their account, and take its UID. The backend is to be
		// there before anything leads to it.
		Prepares: p.shared || p.backend, Backend: p.backend,
		Unwanted: p.needed != nil && !p.needed(target, settings.Options),
	}
	live, err := r.live(ctx, target, p)
	if err != nil {
		return object, nil, err
	}
	if live == nil {
		object.Condition = traffic.ObjectAbsent
		return object, nil, nil
	}
	object.UID, object.ResourceVersion, object.Problem = live.GetUID(), live.GetResourceVersion(), refusal(live)
	object.Created = live.GetCreationTimestamp().Time
	switch {
	case !live.GetDeletionTimestamp().IsZero():
		object.Condition = traffic.ObjectTerminating
	case !labelled(live, label):
		object.Condition = traffic.ObjectForeign
	case object.Unwanted:
		object.Condition = traffic.ObjectCurrent
	default:
		object.Condition, err = p.compare(live, target, settings)
	}
	return object, live, err
}

// labelled is true for an object of the split that the label names, or of all for "".
func labelled(o client.Object, split string) bool {
	value, found := o.GetLabels()[traffic.LabelProxy]
	return found && value == split
}

// live reads an object from the cache; nil when there is none.
func (r *Router) live(ctx context.Context, target traffic.Target, p piece) (client.Object, error) {
	live := p.empty()
	name, _ := p.name(target.Split.Name)
	err := r.client.Get(ctx, client.ObjectKey{Namespace: target.Split.Namespace, Name: name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return live, err
}

// Apply implements traffic.Router. An object that was absent is made without
// force, so that one of another owner, which the cache does not show, is refused
// rather than changed.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	if object.GroupVersionKind == policyKind {
		return r.applyPolicy(ctx, target, object)
	}
	for _, p := range pieces() {
		if p.gvk != object.GroupVersionKind {
			continue
		}
		live, err := r.live(ctx, target, p)
		if err != nil {
			return err
		}
		settings, _, err := r.settings(ctx, target) // a problem has refused the split
		if err != nil {
			return err
		}
		config, err := p.wanted(target, settings)
		if err != nil {
			return err
		}
		if binding, ok := live.(*rbacv1.RoleBinding); ok && binding.RoleRef != settings.roleRef() {
			return r.removeBinding(ctx, binding, object)
		}
		return r.apply(ctx, config, object)
	}
	return fmt.Errorf("router %s makes no %s", Name, object.Kind)
}

// apply writes what is wanted in the place of what was observed.
func (r *Router) apply(ctx context.Context, config *unstructured.Unstructured, object traffic.Object) error {
	// To wait for writes without a type, the cache would have to watch the kind a
	// second time; a decision from a stale cache fails by its precondition anyway.
	options := []client.ApplyOption{client.FieldOwner(traffic.FieldManager), client.DisableReadYourWritesConsistency}
	if object.ResourceVersion != "" {
		config.SetUID(object.UID)
		config.SetResourceVersion(object.ResourceVersion)
		options = append(options, client.ForceOwnership)
	}
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), options...)
}

// removeBinding deletes a binding to another role, such as that of a chart that was
// installed by another name or for other namespaces: what a binding refers to can't be changed. The next look makes
// it anew.
func (r *Router) removeBinding(ctx context.Context, binding *rbacv1.RoleBinding, seen traffic.Object) error {
	return r.client.Delete(ctx, binding, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
}

// Restore implements traffic.Router. The router patches no object of another owner.
func (r *Router) Restore(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s patches no %s", Name, object.Kind)
}

// proxies lists the pods with what was read of each.
func (r *Router) proxies(ctx context.Context, target traffic.Target) ([]corev1.Pod, []traffic.Reading, error) {
	split := target.Split
	var list corev1.PodList
	err := r.client.List(ctx, &list, client.InNamespace(split.Namespace),
		client.MatchingFields{traffic.IndexProxy: split.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, nil, fmt.Errorf("list the proxies' pods: %w", err)
	}
	var pods []corev1.Pod
	addresses := map[types.UID]string{}
	for _, pod := range list.Items {
		if ended(&pod) {
			continue
		}
		pods = append(pods, pod)
		if pod.Status.PodIP != "" {
			addresses[pod.UID] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(conf.AgentPort)))
		}
	}
	want := traffic.Want{Generation: split.Generation, Configuration: target.Resolved.Digest()}
	read := r.options.Reports.Read(client.ObjectKeyFromObject(split), want, addresses)
	readings := make([]traffic.Reading, 0, len(pods))
	for i := range pods {
		readings = append(readings, read[pods[i].UID])
	}
	return pods, readings, nil
}

// ended reports whether a pod is no proxy any more, even if the object is still there.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// proxyOf describes a pod.
func proxyOf(pod *corev1.Pod, reading traffic.Reading) traffic.Proxy {
	proxy := traffic.Proxy{
		Name: pod.Name, Node: pod.Spec.NodeName, Terminating: !pod.DeletionTimestamp.IsZero(), Unread: !reading.Done,
		Generation: reading.Serves.Generation, Configuration: reading.Serves.Configuration, Message: reading.Message,
	}
	if proxy.Terminating {
		proxy.StopsBy = pod.DeletionTimestamp.Time
	}
	if metav1.GetControllerOf(pod) == nil {
		proxy.Unowned = pod.CreationTimestamp.Time
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			proxy.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if !proxy.Ready && (reading.Failed || proxy.Message == "") {
		proxy.Message = waitingReason(pod)
	}
	return proxy
}
