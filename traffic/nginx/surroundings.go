// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/mesh"
	"github.com/serin-dev/serin/traffic/networkpolicy"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// observeSurroundings finds what the namespace has that proxies depend on: NetworkPolicies, and
// before the first proxy is made, a mesh that the app's pods are in. begun is true when there
// is what runs proxies.
func (r *Router) observeSurroundings(ctx context.Context, target traffic.Target, state *traffic.State, begun bool) error {
	key := client.ObjectKeyFromObject(target.Split)
	made, err := r.listPolicies(ctx, client.MatchingFields{traffic.IndexPolicies: traffic.PoliciesFor(key)})
	if err != nil {
		return err
	}
	listeners, unknown := conf.Listeners(target.Resolved)
	if !needsPolicies(target) || unknown != nil {
		r.apps.forget(key)
		keepPolicies(state, target, made)
		return nil //nolint:nilerr // Check says why
	}
	facts, found, err := r.facts(ctx, target, listeners, !begun)
	if err != nil {
		return err
	}
	wanted, refusals := networkpolicy.Derive(facts)
	if found.mesh != "" && !begun {
		refusals = append(refusals, found.mesh)
	}
	for _, refusal := range refusals {
		state.Problems = append(state.Problems, traffic.Unsupported("spec.service: %s", refusal))
	}
	unsure := len(facts.Policies) > 0 && !found.any() // what pods there will be
	if len(refusals) > 0 || len(made) > 0 && unsure {
		keepPolicies(state, target, made)
		return nil
	}
	return r.comparePolicies(ctx, state, target, made, wanted)
}

// needsPolicies reports whether policies have to let traffic through the proxies of a split.
func needsPolicies(target traffic.Target) bool {
	return target.Asked && target.Split.DeletionTimestamp.IsZero() && target.Root != nil
}

// facts are what the policies of a split depend on. Pods are read when a policy that concerns it
// may concern some of them only, or always.
func (r *Router) facts(ctx context.Context, target traffic.Target, listeners []conf.Listener, always bool) (networkpolicy.Facts, app, error) {
	f := networkpolicy.Facts{Split: target.Split.Name, Namespace: target.Split.Namespace, Access: r.access(target.Split.Namespace)}
	namespace, err := r.namespace(ctx, f.Namespace)
	if err != nil {
		return f, app{}, err
	}
	f.NamespaceLabels = namespace.Labels
	policies, err := r.policies(ctx, f.Namespace)
	if err != nil {
		return f, app{}, err
	}
	f.Policies = slices.DeleteFunc(policies, func(p *networkingv1.NetworkPolicy) bool { return !f.Concerns(p) })
	for _, l := range listeners {
		f.Listeners = append(f.Listeners, networkpolicy.Listener{Number: l.Number, Name: l.Name, Protocol: l.Transport()})
	}
	services, err := r.servicesOf(ctx, target)
	if err != nil {
		return f, app{}, err
	}
	var found app
	if always || len(f.Policies) > 0 {
		if found, err = r.app(ctx, target, services, namespace); err != nil {
			return f, app{}, err
		}
	}
	for i, s := range services {
		one := serviceFacts(s, listeners, target, found.pods[s.Name])
		if i == 0 {
			f.Root = one
			continue
		}
		f.Backends = append(f.Backends, one)
	}
	return f, found, nil
}

func (r *Router) access(namespace string) networkpolicy.Access {
	a := r.options.Access
	return networkpolicy.Access{
		Port:    networkpolicy.Listener{Number: conf.AgentPort, Name: conf.AgentPortName, Protocol: corev1.ProtocolTCP},
		Readers: a.Readers, Restrict: slices.Contains(a.Restricted, namespace) || slices.Contains(a.Restricted, "*"),
		APIServer: a.APIServer, APIServerPorts: a.APIServerPorts,
	}
}

// policies are those that may matter to splits of a namespace: its own but for those of the
// proxies of others, and those of all namespaces that say where pods may send to.
func (r *Router) policies(ctx context.Context, namespace string) ([]*networkingv1.NetworkPolicy, error) {
	own, err := r.listPolicies(ctx, client.InNamespace(namespace), client.MatchingFields{traffic.IndexPolicies: traffic.PoliciesForAll})
	if err != nil {
		return nil, err
	}
	clients, err := r.listPolicies(ctx, client.MatchingFields{traffic.IndexPolicies: traffic.PoliciesOfClients})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own, slices.DeleteFunc(clients, func(p *networkingv1.NetworkPolicy) bool { return p.Namespace == namespace }))
	slices.SortFunc(all, func(a, b *networkingv1.NetworkPolicy) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return slices.DeleteFunc(all, func(p *networkingv1.NetworkPolicy) bool { return !p.DeletionTimestamp.IsZero() }), nil
}

// listPolicies lists from the cache. What it returns must not be changed.
func (r *Router) listPolicies(ctx context.Context, options ...client.ListOption) ([]*networkingv1.NetworkPolicy, error) {
	var list networkingv1.NetworkPolicyList
	if err := r.client.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list NetworkPolicies: %w", err)
	}
	out := make([]*networkingv1.NetworkPolicy, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// namespace is what the namespace says of itself. Where it can't be read, its name is known.
func (r *Router) namespace(ctx context.Context, name string) (mesh.Namespace, error) {
	namespace := &corev1.Namespace{}
	if r.options.Namespaces {
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return mesh.Namespace{}, fmt.Errorf("read the namespace: %w", err)
		}
	}
	labels := map[string]string{corev1.LabelMetadataName: name}
	maps.Copy(labels, namespace.Labels)
	return mesh.Namespace{Labels: labels, Annotations: namespace.Annotations}, nil
}

// servicesOf are the root Service and the Services that proxies send to.
func (r *Router) servicesOf(ctx context.Context, target traffic.Target) ([]*corev1.Service, error) {
	services := []*corev1.Service{target.Root}
	for _, name := range backendNames(target.Resolved, traffic.Port.Receivers) {
		s := &corev1.Service{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: target.Split.Namespace, Name: name}, s, client.UnsafeDisableDeepCopy)
		if err := client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("read Service %q: %w", name, err)
		}
		if err == nil {
			services = append(services, s)
		}
	}
	return services, nil
}
