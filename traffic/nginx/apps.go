// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/mesh"
	"github.com/serin-dev/serin/traffic/networkpolicy"
)

// apps are what was read of the pods of splits when their Services and endpoints last changed.
// A restart reads them again.
type apps struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]app
}

// app is what the pods behind the Services of a split are like.
type app struct {
	// of is what that is true of: the Services and their endpoints.
	of string
	// pods by Service.
	pods map[string][]networkpolicy.Pod
	// mesh is why proxies can't stand in for these pods, or "".
	mesh string
}

// any is true when there was a pod to look at.
func (a app) any() bool {
	for _, pods := range a.pods {
		if len(pods) > 0 {
			return true
		}
	}
	return false
}

// app reads the pods behind Services, when these or their endpoints have changed.
func (r *Router) app(ctx context.Context, target traffic.Target, services []*corev1.Service, namespace mesh.Namespace) (app, error) {
	key := client.ObjectKeyFromObject(target.Split)
	if r.options.AppPods == nil {
		return app{mesh: mesh.Refusal(nil, namespace)}, nil
	}
	of, err := r.fingerprint(ctx, services)
	if err != nil {
		return app{}, err
	}
	if last, found := r.apps.last(key); found && last.of == of {
		return last, nil
	}
	next := app{of: of, pods: map[string][]networkpolicy.Pod{}}
	var ofRoot []corev1.Pod
	for i, s := range services {
		pods, err := r.podsBehind(ctx, s, services[0], ofRoot)
		if err != nil {
			return app{}, err
		}
		if i == 0 {
			ofRoot, next.mesh = pods, mesh.Refusal(pods, namespace)
		}
		next.pods[s.Name] = alike(pods)
	}
	r.apps.note(key, next)
	return next, nil
}

// alike are pods as policies see them, those that do not differ as one.
func alike(pods []corev1.Pod) []networkpolicy.Pod {
	var out []networkpolicy.Pod
	at := map[string]int{}
	for i := range pods {
		pod := podFacts(&pods[i])
		key := fmt.Sprint(labels.FormatLabels(pod.Labels), pod.Ports)
		if n, found := at[key]; found {
			out[n].Addresses = append(out[n].Addresses, pod.Addresses...)
			continue
		}
		at[key] = len(out)
		out = append(out, pod)
	}
	return out
}

// podsBehind are the pods that a Service selects by what its owner declares. Those of a
// Service that narrows the root Service are among the root Service's.
func (r *Router) podsBehind(ctx context.Context, s, root *corev1.Service, ofRoot []corev1.Pod) ([]corev1.Pod, error) {
	selector, declared := labels.Set(traffic.DeclaredSelector(s)), labels.Set(traffic.DeclaredSelector(root))
	if len(selector) == 0 {
		return nil, nil
	}
	if len(declared) > 0 && declared.AsSelector().Matches(selector) && s != root {
		return slices.DeleteFunc(slices.Clone(ofRoot), func(pod corev1.Pod) bool { return !selector.AsSelector().Matches(labels.Set(pod.Labels)) }), nil
	}
	var list corev1.PodList
	if err := r.options.AppPods.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels(selector)); err != nil {
		return nil, fmt.Errorf("list the pods of Service %q: %w", s.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		_, proxy := pod.Labels[traffic.LabelProxy]
		return proxy || ended(&pod)
	}), nil
}

// fingerprint changes with Services and with their endpoints.
func (r *Router) fingerprint(ctx context.Context, services []*corev1.Service) (string, error) {
	var parts []string
	for _, s := range services {
		parts = append(parts, s.Name, string(s.UID), labels.FormatLabels(traffic.DeclaredSelector(s)))
		var slices discoveryv1.EndpointSliceList
		err := r.client.List(ctx, &slices, client.InNamespace(s.Namespace), client.MatchingFields{traffic.IndexEndpoints: s.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return "", fmt.Errorf("list the EndpointSlices of Service %q: %w", s.Name, err)
		}
		for _, slice := range slices.Items {
			parts = append(parts, string(slice.UID), slice.ResourceVersion)
		}
	}
	return strings.Join(parts, " "), nil
}

func (a *apps) last(split types.NamespacedName) (app, bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	last, found := a.of[split]
	return last, found
}

func (a *apps) note(split types.NamespacedName, next app) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.of == nil {
		a.of = map[types.NamespacedName]app{}
	}
	a.of[split] = next
}

func (a *apps) forget(split types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.of, split)
}

func podFacts(pod *corev1.Pod) networkpolicy.Pod {
	out := networkpolicy.Pod{Labels: pod.Labels}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		out.Ports = append(out.Ports, c.Ports...)
	}
	for _, ip := range pod.Status.PodIPs {
		out.Addresses = append(out.Addresses, ip.IP)
	}
	return out
}
