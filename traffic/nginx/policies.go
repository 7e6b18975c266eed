// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/networkpolicy"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

var policyKind = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")

// serviceFacts are what policies depend on of a Service.
func serviceFacts(s *corev1.Service, listeners []conf.Listener, target traffic.Target, pods []networkpolicy.Pod) networkpolicy.Service {
	out := networkpolicy.Service{Name: s.Name, Selector: traffic.DeclaredSelector(s), Pods: pods}
	if s.Name != target.Root.Name {
		out.Behind = s.Spec.Selector[traffic.LabelProxy]
	}
	for _, l := range listeners {
		out.Targets = append(out.Targets, targetPort(s, portAt(s, l, target)))
	}
	return out
}

// portAt is the port of a Service that a listener's requests go to; 0 for none.
func portAt(s *corev1.Service, l conf.Listener, target traffic.Target) int32 {
	if s.Name == target.Root.Name {
		return l.Port.Number
	}
	for _, d := range l.Port.Receivers() {
		if d.Service == s.Name {
			return d.Port
		}
	}
	return 0
}

// targetPort is the port of pods behind a port of their Service.
func targetPort(s *corev1.Service, number int32) intstr.IntOrString {
	for _, p := range s.Spec.Ports {
		if p.Port != number || number == 0 {
			continue
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			return intstr.FromInt32(p.Port)
		}
		return p.TargetPort
	}
	return intstr.IntOrString{}
}

// keepPolicies leaves those that were made as they are.
func keepPolicies(state *traffic.State, target traffic.Target, made []*networkingv1.NetworkPolicy) {
	for _, p := range made {
		state.Objects = append(state.Objects, policyObject(target, p, traffic.ObjectCurrent))
	}
}

func policyObject(target traffic.Target, p *networkingv1.NetworkPolicy, condition traffic.ObjectCondition) traffic.Object {
	object := traffic.Object{GroupVersionKind: policyKind, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Condition: condition}
	if p.Namespace != target.Split.Namespace {
		object.Namespace = p.Namespace
	}
	if !p.DeletionTimestamp.IsZero() {
		object.Condition = traffic.ObjectTerminating
	}
	return object
}

// comparePolicies adds those that were made, or are wanted. They are there before proxies are.
func (r *Router) comparePolicies(ctx context.Context, state *traffic.State, target traffic.Target, made, wanted []*networkingv1.NetworkPolicy) error {
	var objects []traffic.Object
	for _, w := range wanted {
		live, err := r.livePolicy(ctx, w)
		if err != nil {
			return err
		}
		object := policyObject(target, w, traffic.ObjectAbsent)
		if live != nil {
			object = policyObject(target, live, compared(live, w))
		}
		object.Prepares = true
		objects = append(objects, object)
	}
	for _, p := range made {
		if !slices.ContainsFunc(wanted, func(w *networkingv1.NetworkPolicy) bool { return w.Name == p.Name && w.Namespace == p.Namespace }) {
			object := policyObject(target, p, traffic.ObjectCurrent)
			object.Unwanted = true
			objects = append(objects, object)
		}
	}
	state.Objects = append(objects, state.Objects...)
	return nil
}

// livePolicy reads a policy from the cache; nil when there is none.
func (r *Router) livePolicy(ctx context.Context, wanted *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
	live := &networkingv1.NetworkPolicy{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read NetworkPolicy %q: %w", wanted.Name, err)
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // that there is none is an answer
	}
	return live, nil
}

// compared is how a policy compares with what is wanted.
func compared(live, wanted *networkingv1.NetworkPolicy) traffic.ObjectCondition {
	of, _ := traffic.MadeFor(live)
	if split, _ := traffic.MadeFor(wanted); of != split {
		return traffic.ObjectForeign
	}
	for key, value := range wanted.Labels {
		if live.Labels[key] != value {
			return traffic.ObjectOutdated
		}
	}
	owners := func(refs []metav1.OwnerReference) []string {
		var uids []string
		for _, o := range refs {
			uids = append(uids, string(o.UID))
		}
		slices.Sort(uids)
		return uids
	}
	if !equality.Semantic.DeepEqual(live.Spec, wanted.Spec) || !slices.Equal(owners(live.OwnerReferences), owners(wanted.OwnerReferences)) {
		return traffic.ObjectOutdated
	}
	return traffic.ObjectCurrent
}

// applyPolicy makes one policy as it is wanted now.
func (r *Router) applyPolicy(ctx context.Context, target traffic.Target, object traffic.Object) error {
	listeners, err := conf.Listeners(target.Resolved)
	if err != nil {
		return err
	}
	facts, _, err := r.facts(ctx, target, listeners, false)
	if err != nil {
		return err
	}
	wanted, _ := networkpolicy.Derive(facts)
	namespace := cmp.Or(object.Namespace, target.Split.Namespace)
	i := slices.IndexFunc(wanted, func(w *networkingv1.NetworkPolicy) bool { return w.Name == object.Name && w.Namespace == namespace })
	if i < 0 {
		return nil // what asked for it has changed since, and causes the next look
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted[i])
	if err != nil {
		return fmt.Errorf("encode NetworkPolicy %q: %w", object.Name, err)
	}
	config := &unstructured.Unstructured{Object: fields}
	config.SetGroupVersionKind(policyKind)
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(fields, "status")
	return r.apply(ctx, config, object)
}
