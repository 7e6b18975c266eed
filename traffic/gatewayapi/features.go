// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/traffic"
)

// Features that a GatewayClass lists in its status when its gateways have them.
const (
	featureMirror        = "HTTPRouteRequestMirror"
	featureMirrorPercent = "HTTPRouteRequestPercentageMirror"
)

// features refuses a mirror that a gateway does not say it can make. A gateway that
// can't may take the route all the same and answer 500 to its requests, as Traefik
// does: the conditions of the route don't tell.
func (o *observer) features(ctx context.Context) error {
	mirror := o.target.Resolved.Mirror
	if mirror == nil || !o.known {
		return nil
	}
	needs := []string{featureMirror}
	if mirror.Percent < 100 {
		needs = append(needs, featureMirrorPercent)
	}
	for _, route := range traffic.RouteNames(o.target.Split) {
		gvk, served := o.router.options.Served.Kinds[route.Kind]
		if !served {
			continue // Check says so
		}
		live, err := o.router.objects.Get(ctx, gvk, o.target.Split.Namespace, route.Name)
		if err != nil {
			return err
		}
		if live == nil {
			continue // the plan says so
		}
		parents, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "parentRefs")
		for _, parent := range objectsOf(parents) {
			if err := o.feature(ctx, live.GetNamespace(), parent, needs); err != nil {
				return err
			}
		}
	}
	return nil
}

// feature refuses what one parent does not say it has. Meshes, whose parents are
// Services, have no class that could.
func (o *observer) feature(ctx context.Context, namespace string, parent map[string]any, needs []string) error {
	if stringOr(parent, "group", Group) != Group || cmp.Or(text(parent, fieldKind), kindGateway) != kindGateway {
		return nil
	}
	name, of := text(parent, fieldName), stringOr(parent, "namespace", namespace)
	if !o.readable(of) {
		o.problems = append(o.problems, traffic.Unsupported("%s: the operator may not read Gateway %q of the namespace %q or its class, which says whether it can; "+
			"use a Gateway in a namespace that the operator watches, or remove it", traffic.FieldMirror, name, of))
		return nil
	}
	gateway, err := o.served(ctx, kindGateway, of, name)
	if err != nil || gateway == nil {
		return err // without a gateway nothing confirms the route
	}
	className, _, _ := unstructured.NestedString(gateway.Object, "spec", "gatewayClassName")
	class, err := o.served(ctx, kindGatewayClass, "", className)
	if err != nil {
		return err
	}
	for _, need := range needs {
		if !slices.Contains(featuresOf(class), need) {
			o.problems = append(o.problems, traffic.Unsupported("%s: GatewayClass %q of Gateway %q does not list %s in status.supportedFeatures; "+
				"use a gateway that does, or remove it", traffic.FieldMirror, className, name, need))
		}
	}
	return nil
}

// readable reports whether the operator may read the Gateways of a namespace with their
// classes, where the cluster has them.
func (o *observer) readable(namespace string) bool {
	kinds := o.router.options.Served.Kinds
	_, gateways := kinds[kindGateway]
	_, classes := kinds[kindGatewayClass]
	return !gateways || classes && o.router.options.cached(namespace)
}

// served reads an object of a kind that the cluster may lack; nil when there is none.
func (o *observer) served(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	gvk, served := o.router.options.Served.Kinds[kind]
	if !served {
		return nil, nil //nolint:nilnil // there is none
	}
	object, err := o.router.objects.Get(ctx, gvk, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("look for what a gateway can do: %w", err)
	}
	return object, nil
}

// featuresOf are the names that a GatewayClass lists: as objects, or before version
// 1.3 of the API as plain names.
func featuresOf(class *unstructured.Unstructured) []string {
	if class == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(class.Object, "status", "supportedFeatures")
	var names []string
	for _, feature := range list {
		switch f := feature.(type) {
		case string:
			names = append(names, f)
		case map[string]any:
			names = append(names, text(f, fieldName))
		}
	}
	return names
}

// policies refuses a split whose backends would not get the TLS that a policy asks for
// the root Service: a gateway applies it to the Service that a route names.
func (o *observer) policies(ctx context.Context) error {
	gvk, served := o.router.options.Served.Kinds[kindTLSPolicy]
	if !served || !o.known {
		return nil
	}
	policies, err := o.policiesFor(ctx, gvk, o.target.Resolved.Root)
	if err != nil || len(policies) == 0 {
		return err
	}
	var bare []string
	for _, name := range backendsOf(o.target.Resolved) {
		others, err := o.policiesFor(ctx, gvk, name)
		if err != nil {
			return err
		}
		if len(others) == 0 {
			bare = append(bare, name)
		}
	}
	for i := range policies {
		for _, name := range bare {
			o.problems = append(o.problems, traffic.Unsupported("%s %q is for Service %q and would not apply to Service %q; add that to its spec.targetRefs",
				kindTLSPolicy, policies[i].GetName(), o.target.Resolved.Root, name))
		}
	}
	return nil
}

func (o *observer) policiesFor(ctx context.Context, gvk schema.GroupVersionKind, service string) ([]unstructured.Unstructured, error) {
	return o.router.objects.List(ctx, gvk, o.target.Split.Namespace, indexTargets, service)
}
