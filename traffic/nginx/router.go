// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "nginx"

// fieldManager owns what the router applies.
const fieldManager = "serin-trafficsplit"

// Router sends traffic of root Services through nginx. It implements traffic.Router.
type Router struct {
	client  client.Client
	options Options
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
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	}
}

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	options, problems := r.optionsOf(target.Split)
	state := traffic.State{Problems: problems}
	for _, p := range pieces() {
		object, live, err := r.observe(ctx, target, p, options)
		if err != nil {
			return traffic.State{}, fmt.Errorf("%s %s: %w", p.gvk.Kind, traffic.ProxyName(target.Split.Name), err)
		}
		if object.Unwanted && (object.Condition == traffic.ObjectAbsent || object.Condition == traffic.ObjectForeign) {
			continue
		}
		if p.workload {
			state.WantedProxies = wantedProxies(live, options)
		}
		state.Objects = append(state.Objects, object)
	}
	var err error
	state.Proxies, err = r.proxies(ctx, target)
	return state, err
}

// observe compares one object, which it returns too, with what is wanted. The live
// object is nil when there is none.
func (r *Router) observe(ctx context.Context, target traffic.Target, p piece, options Options) (traffic.Object, client.Object, error) {
	object := traffic.Object{
		GroupVersionKind: p.gvk, Name: traffic.ProxyName(target.Split.Name), Workload: p.workload,
		Unwanted: p.needed != nil && !p.needed(options),
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
	switch {
	case !live.GetDeletionTimestamp().IsZero():
		object.Condition = traffic.ObjectTerminating
	case live.GetLabels()[traffic.LabelProxy] != target.Split.Name:
		object.Condition = traffic.ObjectForeign
	case object.Unwanted:
		object.Condition = traffic.ObjectCurrent
	default:
		object.Condition, err = p.compare(live, target, options)
	}
	return object, live, err
}

// live reads an object from the cache; nil when there is none.
func (r *Router) live(ctx context.Context, target traffic.Target, p piece) (client.Object, error) {
	live := p.empty()
	err := r.client.Get(ctx, client.ObjectKey{Namespace: target.Split.Namespace, Name: traffic.ProxyName(target.Split.Name)}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return live, err
}

// Apply implements traffic.Router. An object that was absent is made without
// force, so that one of another owner, which the cache does not show, is refused
// rather than changed.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	for _, p := range pieces() {
		if p.gvk != object.GroupVersionKind {
			continue
		}
		live, err := r.live(ctx, target, p)
		if err != nil {
			return err
		}
		of, _ := r.optionsOf(target.Split) // a problem has refused the split
		config, err := p.wanted(live, target, of)
		if err != nil {
			return err
		}
		// To wait for writes without a type, the cache would have to watch the kind a
		// second time; a decision from a stale cache fails by its precondition anyway.
		options := []client.ApplyOption{client.FieldOwner(fieldManager), client.DisableReadYourWritesConsistency}
		if object.ResourceVersion != "" {
			config.SetUID(object.UID)
			config.SetResourceVersion(object.ResourceVersion)
			options = append(options, client.ForceOwnership)
		}
		return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), options...)
	}
	return fmt.Errorf("router %s makes no %s", Name, object.Kind)
}

// Restore implements traffic.Router. The router patches no object of another owner.
func (r *Router) Restore(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s patches no %s", Name, object.Kind)
}

// proxies lists the pods with what was read of each.
func (r *Router) proxies(ctx context.Context, target traffic.Target) ([]traffic.Proxy, error) {
	split := target.Split
	var pods corev1.PodList
	err := r.client.List(ctx, &pods, client.InNamespace(split.Namespace),
		client.MatchingFields{traffic.IndexProxy: split.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the proxies' pods: %w", err)
	}
	addresses := map[types.UID]string{}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.PodIP != "" && !ended(pod) {
			addresses[pod.UID] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(AgentPort)))
		}
	}
	want := traffic.Want{Generation: split.Generation, Configuration: target.Resolved.Digest()}
	readings := r.options.Reports.Read(client.ObjectKeyFromObject(split), want, addresses)
	var proxies []traffic.Proxy
	for i := range pods.Items {
		if pod := &pods.Items[i]; !ended(pod) {
			proxy := proxyOf(pod, readings[pod.UID])
			proxy.Selected = target.Root != nil &&
				labels.SelectorFromSet(traffic.DeclaredSelector(target.Root)).Matches(labels.Set(pods.Items[i].Labels))
			proxies = append(proxies, proxy)
		}
	}
	return proxies, nil
}

// ended reports whether a pod is no proxy any more, even if the object is still there.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// proxyOf describes a pod.
func proxyOf(pod *corev1.Pod, reading traffic.Reading) traffic.Proxy {
	proxy := traffic.Proxy{
		Name: pod.Name, Terminating: !pod.DeletionTimestamp.IsZero(), Unread: !reading.Done,
		Generation: reading.Serves.Generation, Configuration: reading.Serves.Configuration, Message: reading.Message,
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
