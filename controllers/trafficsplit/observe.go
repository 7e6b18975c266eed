// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// observation is what was read, with the router that the data plane belongs to.
type observation struct {
	plan.Observation
	target traffic.Target
	router traffic.Router
	// ready are the ready endpoints of each Service that the split refers to.
	ready map[string][]string
	// placed are the split's Services with where their endpoints are; none when no
	// Service asks for a traffic distribution.
	placed []plan.Placed
}

// observe reads everything that a decision depends on. It returns nil when there
// is no such split, and an error whenever something could not be read.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*observation, error) {
	split := &splitv1.TrafficSplit{}
	if err := r.Client.Get(ctx, key, split); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if versionOf(split) == r.replaced.of(key) {
		return nil, errBehind
	}
	services, err := r.services(ctx, split)
	if err != nil {
		return nil, err
	}
	groups, err := r.routeGroups(ctx, split)
	if err != nil {
		return nil, err
	}
	o := &observation{Observation: plan.Observation{Split: split, Now: r.Options.Clock.Now(), Confirmed: r.settling.of(key)}}
	if o.Next = r.Options.means(split); o.Next == traffic.MeansProxies {
		o.Settling = resolve.Settle(split, services, o.Now)
	}
	known := resolve.Known{Services: services, Groups: groups, Proxied: o.Next == traffic.MeansProxies}
	o.Resolved, o.Problems = resolve.Split(split, known)
	o.Root = rootOf(services[o.Resolved.Root])
	o.target = traffic.Target{Split: split, Root: o.Root.Service, Resolved: o.Resolved}
	if err := r.observeEndpoints(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeRouter(ctx, o); err != nil {
		return nil, err
	}
	if err := r.observeConflicts(ctx, o, services); err != nil {
		return nil, err
	}
	o.observePin(services)
	if err := r.observePlaces(ctx, o, services); err != nil {
		return nil, err
	}
	return o, r.observeDirect(ctx, o, services)
}

// observeConflicts looks for what the operator, the router and other splits have against the split.
func (r *Reconciler) observeConflicts(ctx context.Context, o *observation, services map[string]*corev1.Service) error {
	split := o.Split
	if o.Claim == plan.ClaimOurs && !traffic.Refused(o.Problems) {
		o.Problems = slices.Concat(r.unserved(split), r.lackingGroups(split), r.unfit(o, services), o.Problems)
	}
	circle, err := r.circle(ctx, split)
	if err != nil {
		return err
	}
	o.Problems = slices.Concat(circle, o.Problems)
	o.Rival, err = r.rival(ctx, split, o.Resolved.Root, o.Root.Service)
	return err
}

// routeGroups are the HTTPRouteGroups that a split refers to, by name. They are shared
// with the cache and must not be changed.
func (r *Reconciler) routeGroups(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*specsv1.HTTPRouteGroup, error) {
	if r.withoutGroups {
		return nil, nil
	}
	groups := map[string]*specsv1.HTTPRouteGroup{}
	for _, name := range resolve.GroupNames(split) {
		group := &specsv1.HTTPRouteGroup{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: split.Namespace, Name: name}, group, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read HTTPRouteGroup %q: %w", name, err)
		}
		groups[name] = group
	}
	return groups, nil
}

// unfit are what the router that the split asks for can't do. What its data plane
// holds is known only once it leads the split.
func (r *Reconciler) unfit(o *observation, services map[string]*corev1.Service) []traffic.Problem {
	problems := r.Options.router(o.Router).Check(o.Resolved, services)
	if !o.Moving {
		problems = append(problems, o.DataPlane.Problems...)
	}
	return problems
}

// unserved refuses what TrafficSplits of this cluster have no room for.
func (r *Reconciler) unserved(split *splitv1.TrafficSplit) []traffic.Problem {
	var problems []traffic.Problem
	refuse := func(field, why string) {
		problems = append(problems, traffic.Unsupported("%s: %s", field, why))
	}
	if why := r.Options.Served.RefuseProxies(); why != "" && r.Options.means(split) == traffic.MeansProxies {
		refuse(traffic.FieldRouter, why)
	}
	if why := r.Options.Served.RefuseMatches(); why != "" && len(split.Spec.Matches) > 0 {
		refuse("spec.matches", why)
	}
	return problems
}

// lackingGroups refuses a split with matches where the cluster lacks their kind.
func (r *Reconciler) lackingGroups(split *splitv1.TrafficSplit) []traffic.Problem {
	if len(split.Spec.Matches) == 0 || !r.withoutGroups {
		return nil
	}
	return []traffic.Problem{traffic.Unsupported("spec.matches: this cluster did not serve HTTPRouteGroups when the operator started; " +
		"install httproutegroups.specs.smi-spec.io and restart the operator, or remove spec.matches to split every request")}
}

func rootOf(service *corev1.Service) plan.Root {
	if service == nil {
		return plan.Root{Presence: kit.Absent}
	}
	return plan.Root{Presence: kit.Present, Service: service}
}

// observeRouter finds the router that the split asks for, and what there is of a
// data plane, which may be another router's when the annotation was changed.
func (r *Reconciler) observeRouter(ctx context.Context, o *observation) error {
	o.Router, o.Claim = r.Options.routerName(o.Split), r.Options.claim(o.Split)
	if leader := r.leader(o.Split); leader != nil {
		o.Moving = leader.Name() != o.Router
		return r.observeDataPlane(ctx, o, leader)
	}
	for _, router := range r.Options.Routers {
		previous, state := o.router, o.DataPlane
		if err := r.observeDataPlane(ctx, o, router); err != nil {
			return err
		}
		wanted, left := router.Name() == o.Router, !o.DataPlane.Empty()
		if !wanted && left {
			o.Moving = true
			return nil
		}
		if !wanted && previous != nil {
			o.router, o.DataPlane = previous, state
			o.Leader, o.Means = previous.Name(), previous.Means()
		}
	}
	return nil
}

// leader is the router that leads the split by its status; nil when it names none of
// the operator's. Only while the finalizer is there the status tells the truth.
func (r *Reconciler) leader(split *splitv1.TrafficSplit) traffic.Router {
	if !controllerutil.ContainsFinalizer(split, traffic.Finalizer) || split.Status.Router == "" {
		return nil
	}
	return r.Options.router(split.Status.Router)
}

// observeDataPlane observes the data plane of a router.
func (r *Reconciler) observeDataPlane(ctx context.Context, o *observation, router traffic.Router) error {
	o.target.Asked = router.Name() == o.Router
	state, err := r.lookAt(ctx, router, o.target)
	if err != nil {
		return err
	}
	o.router, o.Leader, o.Means, o.DataPlane = router, router.Name(), router.Means(), state
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
		if other.Name != split.Name && r.Options.claim(other) == plan.ClaimOurs {
			others = append(others, other)
		}
	}
	return plan.Rival(split, others, root), nil
}

// observePin finds what the root Service is to be narrowed to, and which other endpoints it has.
func (o *observation) observePin(services map[string]*corev1.Service) {
	name, field := traffic.DefaultBackend(o.Split), traffic.FieldDefaultBackend
	if o.Next == traffic.MeansSelector {
		name, field = traffic.Chosen(o.Split), "spec.backends"
	}
	if !o.Means.Narrows() && !o.Next.Narrows() || name == "" || o.Root.Service == nil {
		return
	}
	o.Pin.Backend = name
	if services[name] == nil {
		o.Pin.Problem = fmt.Sprintf("%s: Service %q does not exist; create it", field, name)
		return
	}
	keys, err := traffic.PinKeys(o.Root.Service, services[name])
	if err != nil {
		o.Pin.Problem = field + ": " + err.Error()
		return
	}
	o.Pin.Keys = keys
	ready := o.ready[name]
	for _, endpoint := range o.Endpoints.Ready {
		if !slices.Contains(ready, endpoint) {
			o.Pin.Around++
		}
	}
	for _, endpoint := range ready {
		if !slices.Contains(o.Endpoints.Ready, endpoint) {
			o.Pin.Missing++
		}
	}
}

func (r *Reconciler) observeEndpoints(ctx context.Context, o *observation) error {
	names := named(o.Split)
	o.ready, o.BackendEndpoints = make(map[string][]string, len(names)), make(map[string]int32, len(names))
	for _, name := range names {
		ready, err := shell.ReadyEndpoints(ctx, r.Client, o.Split.Namespace, name)
		if err != nil {
			return err
		}
		o.ready[name], o.BackendEndpoints[name] = ready, int32(len(ready)) //nolint:gosec // bounded by the cluster's pods
	}
	o.Endpoints = plan.Endpoints{Known: true, Ready: o.ready[o.Resolved.Root]}
	var err error
	if o.Draining, err = r.draining(ctx, o.Split); err != nil {
		return err
	}
	for _, b := range o.Split.Spec.Backends {
		o.target.Endpoints += int(o.BackendEndpoints[b.Service])
	}
	o.Fresh = r.ages.fresh(client.ObjectKeyFromObject(o.Split), o.BackendEndpoints, o.Now)
	return nil
}

// observeDirect counts the ready pods that the root Service would select without
// a proxy, where the answer decides something: on the way out. Where no backend tells,
// this asks the API server, since the cache holds no pods but proxies.
func (r *Reconciler) observeDirect(ctx context.Context, o *observation, services map[string]*corev1.Service) error {
	if o.Root.Service == nil || !o.NeedsDirect() {
		return nil
	}
	if o.Root.Service.Spec.Type == corev1.ServiceTypeExternalName || len(traffic.DeclaredSelector(o.Root.Service)) == 0 {
		o.Direct = plan.Direct{Known: true, Unselected: true}
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
	for _, name := range resolve.ServiceNames(o.Split) {
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
