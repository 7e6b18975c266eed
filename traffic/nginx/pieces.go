// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	policyac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// piece is one kind of object that a proxy is made of.
type piece struct {
	gvk      schema.GroupVersionKind
	workload bool
	// shared is true for what the proxies of all splits of a namespace have in common.
	shared bool
	// backend is true for a Service that the proxies send requests to.
	backend bool
	// needed is whether the split or the options ask for it; nil when it is needed always.
	needed func(traffic.Target, Options) bool
	empty  func() client.Object
	// make builds what is wanted, as an apply configuration.
	make func(traffic.Target, Options) (any, error)
	// owned extracts from an object the fields that the router applied and still owns.
	owned func(client.Object) (any, error)
}

// pieces are in the order in which they are needed.
func pieces() []piece {
	return []piece{
		shared(pieceOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
			MakeServiceAccount, coreac.ExtractServiceAccount)),
		shared(pieceOf(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
			MakeRoleBinding, rbacac.ExtractRoleBinding)),
		backend(optional(leavesUnmatched, pieceOf(corev1.SchemeGroupVersion.WithKind("Service"), func() *corev1.Service { return &corev1.Service{} },
			MakeUnmatchedService, unmatchedServiceOf))),
		pieceOf(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
			MakePodDisruptionBudget, policyac.ExtractPodDisruptionBudget),
		workload(pieceOf(appsv1.SchemeGroupVersion.WithKind("Deployment"), func() *appsv1.Deployment { return &appsv1.Deployment{} },
			MakeDeployment, appsac.ExtractDeployment)),
		optional(autoscaled, pieceOf(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
			func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
			MakeHorizontalPodAutoscaler, autoscalingac.ExtractHorizontalPodAutoscaler)),
	}
}

func optional(needed func(traffic.Target, Options) bool, p piece) piece {
	p.needed = needed
	return p
}

func backend(p piece) piece {
	p.backend = true
	return p
}

func workload(p piece) piece {
	p.workload = true
	return p
}

func shared(p piece) piece {
	p.shared = true
	return p
}

// name of a split's object, and the split that its label names: none for a shared one.
func (p piece) name(split string) (name, label string) {
	switch {
	case p.shared:
		return traffic.SharedProxyName, ""
	case p.backend:
		return traffic.UnmatchedName(split), split
	}
	return traffic.ProxyName(split), split
}

// pieceOf hides the types of one kind behind a piece.
func pieceOf[O client.Object, C any](gvk schema.GroupVersionKind, empty func() O,
	build func(traffic.Target, Options) (C, error), extract func(O, string) (C, error),
) piece {
	return piece{
		gvk:   gvk,
		empty: func() client.Object { return empty() },
		make:  func(t traffic.Target, o Options) (any, error) { return build(t, o) },
		owned: func(live client.Object) (any, error) {
			typed, ok := live.(O)
			if !ok {
				return nil, fmt.Errorf("a %T is no %s", live, gvk.Kind)
			}
			return extract(typed, traffic.FieldManager)
		},
	}
}

// wanted is what the router applies.
func (p piece) wanted(target traffic.Target, settings settings) (*unstructured.Unstructured, error) {
	config, err := p.make(target, settings.Options)
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(config)
	if err != nil {
		return nil, err
	}
	if p.workload && settings.account != "" {
		err := unstructured.SetNestedField(fields, string(settings.account), "spec", "template", "metadata", "annotations", AnnotationAccount)
		if err != nil {
			return nil, err
		}
	}
	if p.workload && settings.scaled {
		unstructured.RemoveNestedField(fields, "spec", "replicas")
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// compare tells whether the fields that the router applied still are as wanted
// and still its own. The API server keeps account of that in the managed fields,
// so defaults, and fields that another manager added, do not count as drift.
func (p piece) compare(live client.Object, target traffic.Target, settings settings) (traffic.ObjectCondition, error) {
	wanted, err := p.wanted(target, settings)
	if err != nil {
		return traffic.ObjectCurrent, nil //nolint:nilerr // what is wanted can't be made, and Check says why
	}
	config, err := p.owned(live)
	if err != nil {
		return "", fmt.Errorf("read its managed fields: %w", err)
	}
	owned, err := fieldsOf(config)
	if err != nil {
		return "", err
	}
	delete(owned, "status") // never applied, and extracted as an empty object
	if reflect.DeepEqual(wanted.Object, owned) {
		return traffic.ObjectCurrent, nil
	}
	return traffic.ObjectOutdated, nil
}

// fieldsOf is an apply configuration as JSON, where a field that is not set is
// absent and one that is set to zero is there.
func fieldsOf(config any) (map[string]any, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", config, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("decode %T: %w", config, err)
	}
	return fields, nil
}
