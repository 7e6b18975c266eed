// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// virtualService is the route of Istio that Flagger made from the Canary, to the root Service.
func (c *canary) virtualService(f source.Field) {
	http := map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": c.service}}}}
	for _, name := range []string{"match", "rewrite", "retries", "timeout", "headers", "corsPolicy"} {
		if f.At(name).Present() {
			http[name] = f.At(name).Value()
		}
	}
	spec := map[string]any{"http": []any{http}, "hosts": []any{c.service}}
	for _, name := range []string{"hosts", "gateways"} {
		if f.At(name).Present() {
			spec[name] = f.At(name).Value()
		}
	}
	if !f.At("gateways").Present() && !f.At("hosts").Present() && len(http) == 1 {
		return // within the mesh, Serin makes a route of its own
	}
	c.route("networking.istio.io/v1", "VirtualService", spec)
	if policy := f.At("trafficPolicy"); policy.Present() {
		policy.Read().Note(source.ToDo, "write it in a DestinationRule for the host %s: Serin copies that for each version", c.service)
	}
}

// httpRoute is the route of the Gateway API that Flagger made from the Canary.
func (c *canary) httpRoute(f source.Field) {
	rule := map[string]any{"backendRefs": []any{map[string]any{"name": c.service, "port": int64(f.At("port").Int(80, 1, 65535))}}}
	if f.At("match").Present() {
		f.At("match").Note(source.ToDo, "write these conditions in the rules of the HTTPRoute %s: the written one matches every path", c.service)
	}
	if timeout := f.At("timeout"); timeout.Present() {
		rule["timeouts"] = map[string]any{"request": timeout.Text()}
	}
	spec := map[string]any{"rules": []any{rule}}
	if hosts := f.At("hosts"); hosts.Present() {
		spec["hostnames"] = hosts.Value()
	}
	if gateways := f.At("gatewayRefs"); gateways.Present() {
		spec["parentRefs"] = gateways.Value()
	} else {
		f.At("gatewayRefs").Missing("name the gateways of the route")
	}
	c.route("gateway.networking.k8s.io/v1", "HTTPRoute", spec)
}

func (c *canary) route(version, kind string, spec map[string]any) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName(c.service)
	u.SetNamespace(c.object.Namespace())
	c.made = append(c.made, u)
	c.serin.Spec.RouteRefs = []v1alpha1.RouteReference{{Kind: v1alpha1.RouteKind(kind), Name: c.service}}
}
