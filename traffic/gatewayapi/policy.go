// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
			o.problems = append(o.problems, refusal("%s %q is for Service %q and would not hold for Service %q; add that to its spec.targetRefs",
				kindTLSPolicy, policies[i].GetName(), o.target.Resolved.Root, name))
		}
	}
	return nil
}

func (o *observer) policiesFor(ctx context.Context, gvk schema.GroupVersionKind, service string) ([]unstructured.Unstructured, error) {
	return o.router.list(ctx, gvk, o.target.Split.Namespace, client.MatchingFields{indexTargets: service})
}
