// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

// observation is what was read, with the router that the data plane belongs to.
type observation struct {
	plan.Observation
	target traffic.Target
	router traffic.Router
}

// observe reads everything that a decision depends on. It returns nil when there
// is no such split, and an error whenever something could not be read.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*observation, error) {
	split := &splitv1.TrafficSplit{}
	if err := r.Client.Get(ctx, key, split); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	services, err := r.services(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	groups, err := r.routeGroups(ctx, split)
	if err != nil {
		return nil, err
	}
	o := &observation{Observation: plan.Observation{Split: split}}
	o.Resolved, o.Problems = traffic.Resolve(split, traffic.Known{Services: services, Groups: groups})
	o.Root = rootOf(services[o.Resolved.Root])
	o.target = traffic.Target{Split: split, Root: o.Root.Service, Resolved: o.Resolved}
	if err := r.observeRouter(ctx, o); err != nil {
		return nil, err
	}
	if o.Claim == plan.ClaimOurs && !traffic.Refused(o.Problems) {
		o.Problems = slices.Concat(r.lackingGroups(split), o.router.Check(o.Resolved, services), o.Problems)
	}
	if o.Rival, err = r.rival(ctx, split, o.Resolved.Root, o.Root.Service); err != nil {
		return nil, err
	}
	if err := r.observeEndpoints(ctx, o); err != nil {
		return nil, err
	}
	return o, r.observeDirect(ctx, o, services)
}

// services are those of a namespace by name. They are shared with the cache and
// must not be changed.
func (r *Reconciler) services(ctx context.Context, namespace string) (map[string]*corev1.Service, error) {
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	services := make(map[string]*corev1.Service, len(list.Items))
	for i := range list.Items {
		services[list.Items[i].Name] = &list.Items[i]
	}
	return services, nil
}

// routeGroups are the HTTPRouteGroups of a split's namespace by name, none when the
// split refers to none. They are shared with the cache and must not be changed.
func (r *Reconciler) routeGroups(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*specsv1.HTTPRouteGroup, error) {
	if len(split.Spec.Matches) == 0 || r.withoutGroups {
		return nil, nil
	}
	var list specsv1.HTTPRouteGroupList
	if err := r.Client.List(ctx, &list, client.InNamespace(split.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HTTPRouteGroups: %w", err)
	}
	groups := make(map[string]*specsv1.HTTPRouteGroup, len(list.Items))
	for i := range list.Items {
		groups[list.Items[i].Name] = &list.Items[i]
	}
	return groups, nil
}

// lackingGroups refuses a split with matches where the cluster lacks their kind.
func (r *Reconciler) lackingGroups(split *splitv1.TrafficSplit) []traffic.Problem {
	if len(split.Spec.Matches) == 0 || !r.withoutGroups {
		return nil
	}
	return []traffic.Problem{{
		Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonUnsupported,
		Message: "spec.matches: this cluster did not serve HTTPRouteGroups when the operator started; " +
			"install httproutegroups.specs.smi-spec.io and restart the operator, or remove spec.matches to split every request",
	}}
}

func rootOf(service *corev1.Service) plan.Root {
	if service == nil {
		return plan.Root{Presence: plan.Absent}
	}
	return plan.Root{Presence: plan.Present, Service: service}
}

// observeRouter finds the router that the split asks for, and what there is of a
// data plane, which may be another router's when the annotation was changed.
func (r *Reconciler) observeRouter(ctx context.Context, o *observation) error {
	o.Router = r.Options.routerName(o.Split)
	o.Claim = r.Options.claim(o.Router)
	for _, router := range r.Options.Routers {
		state, err := router.Observe(ctx, o.target)
		if err != nil {
			return fmt.Errorf("observe the data plane of router %s: %w", router.Name(), err)
		}
		wanted := router.Name() == o.Router
		if wanted || o.router == nil || !state.Empty() {
			o.router, o.DataPlane = router, state
		}
		if !wanted && !state.Empty() {
			o.Moving = true
			return nil
		}
	}
	return nil
}

// rival finds the split that has the root Service instead of this one.
func (r *Reconciler) rival(ctx context.Context, split *splitv1.TrafficSplit, rootName string, root *corev1.Service) (string, error) {
	var list splitv1.TrafficSplitList
	err := r.Client.List(ctx, &list, client.InNamespace(split.Namespace), client.MatchingFields{indexRoot: rootName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", fmt.Errorf("list TrafficSplits of Service %q: %w", rootName, err)
	}
	var others []*splitv1.TrafficSplit
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != split.Name && r.Options.claim(r.Options.routerName(other)) == plan.ClaimOurs {
			others = append(others, other)
		}
	}
	return plan.Rival(split, others, root), nil
}

func (r *Reconciler) observeEndpoints(ctx context.Context, o *observation) error {
	ready, err := r.readyEndpoints(ctx, o.Split.Namespace, o.Resolved.Root)
	if err != nil {
		return err
	}
	o.Endpoints = plan.Endpoints{Known: true, Ready: ready}
	o.BackendEndpoints = make(map[string]int32, len(o.Split.Spec.Backends))
	for _, name := range traffic.ServiceNames(o.Split) {
		ready, err := r.readyEndpoints(ctx, o.Split.Namespace, name)
		if err != nil {
			return err
		}
		o.BackendEndpoints[name] = int32(len(ready)) //nolint:gosec // bounded by the cluster's pods
	}
	return nil
}

// readyEndpoints are the ready endpoints of a Service, each once, by the name of
// its pod or by its address when it is no pod.
func (r *Reconciler) readyEndpoints(ctx context.Context, namespace, service string) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingFields{indexService: service}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %q: %w", service, err)
	}
	var ready []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			// The API says that an endpoint whose readiness is unknown counts as ready.
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, endpointName(e))
			}
		}
	}
	slices.Sort(ready)
	return slices.Compact(ready), nil
}

func endpointName(e discoveryv1.Endpoint) string {
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		return e.TargetRef.Name
	}
	if len(e.Addresses) > 0 {
		return e.Addresses[0]
	}
	return ""
}

// observeDirect counts the ready pods that the root Service would select without
// a proxy, where the answer decides something: on the way out. Where no backend tells,
// this asks the API server, since the cache holds no pods but proxies.
func (r *Reconciler) observeDirect(ctx context.Context, o *observation, services map[string]*corev1.Service) error {
	if o.Root.Service == nil || !o.NeedsDirect() {
		return nil
	}
	if n := readyBehind(o, services); n > 0 {
		o.Direct = plan.Direct{Known: true, ReadyPods: n}
		return nil
	}
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(o.Split.Namespace),
		client.MatchingLabels(traffic.DeclaredSelector(o.Root.Service)))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("list the pods of Service %q (the operator's role lacks pods list): %w", o.Root.Service.Name, err)
	}
	if err != nil {
		return fmt.Errorf("list the pods of Service %q: %w", o.Root.Service.Name, err)
	}
	o.Direct.Known = true
	for i := range pods.Items {
		if _, proxy := pods.Items[i].Labels[traffic.LabelProxy]; !proxy && podReady(&pods.Items[i]) {
			o.Direct.ReadyPods++
		}
	}
	return nil
}

// readyBehind is how many ready pods the root Service would select at least: those of
// a backend that asks for everything that its owner declares, and for more.
func readyBehind(o *observation, services map[string]*corev1.Service) int {
	declared := labels.SelectorFromSet(traffic.DeclaredSelector(o.Root.Service))
	most := 0
	for _, name := range traffic.ServiceNames(o.Split) {
		backend := services[name]
		if name == o.Resolved.Root || backend == nil || declared.Empty() || !declared.Matches(labels.Set(backend.Spec.Selector)) {
			continue
		}
		if _, proxies := backend.Spec.Selector[traffic.LabelProxy]; !proxies {
			most = max(most, int(o.BackendEndpoints[name]))
		}
	}
	return most
}

func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
