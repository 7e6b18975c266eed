// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// routing chooses what moves the traffic.
func (r *rollout) routing(f source.Field) {
	for _, name := range f.Keys() {
		switch name {
		case "nginx":
			r.ingress(f.At(name))
		case "istio":
			r.istio(f.At(name))
		case "smi":
			r.serin.Spec.Router = v1alpha1.RouterSMI
			if split := f.At(name, "trafficSplitName"); split.Present() {
				split.Note(source.Differs, "the TrafficSplit has the name of the Rollout, %s, and not %s", r.serin.Name, split.Text())
			}
			f.At(name).Keys() // it may be empty
		case "plugins", "plugin":
			r.plugins(f.At(name))
		}
	}
}

// ingress: the controller of Ingresses sends to the endpoints of the root Service, which
// are Serin's proxies while a release is in progress.
func (r *rollout) ingress(f source.Field) {
	r.serin.Spec.Router = v1alpha1.RouterNginx
	f.At("stableIngress").Read()
	f.At("stableIngresses").Read()
	f.Note(source.Differs, "Serin's proxies behind the Service share the traffic, and the Ingress stays as it is, with the Service %s: no Ingress for the canary is made", r.serin.Spec.Service)
}

func (r *rollout) istio(f source.Field) {
	r.serin.Spec.Router = v1alpha1.RouterIstio
	services := f.At("virtualServices").Items()
	if one := f.At("virtualService"); one.Present() {
		services = append(services, one)
	}
	for _, v := range services {
		name := v.At("name").Text()
		routes := v.At("routes").Items()
		for _, route := range routes {
			r.route(v1alpha1.RouteReference{Kind: "VirtualService", Name: name, Section: route.Text()})
		}
		if len(routes) == 0 || v.At("tlsRoutes").Present() || v.At("tcpRoutes").Present() {
			r.route(v1alpha1.RouteReference{Kind: "VirtualService", Name: name})
			v.At("tlsRoutes").Read()
			v.At("tcpRoutes").Read()
		}
		v.Note(source.ToDo, "have each route of the VirtualService %s name the one destination %s, without weights: Serin writes the versions while a release is in progress", name, r.serin.Spec.Service)
	}
	if rule := f.At("destinationRule"); rule.Present() {
		rule.Note(source.NoEqual, "Serin uses a Service for each version: remove the subsets %s and %s from the DestinationRule %s and from the routes",
			rule.At("stableSubsetName").Text(), rule.At("canarySubsetName").Text(), rule.At("name").Text())
	}
}

// route adds a route, once.
func (r *rollout) route(ref v1alpha1.RouteReference) {
	r.serin.Spec.RouteRefs = append(r.serin.Spec.RouteRefs, ref)
}

// routeKinds are fields of the plugin for the Gateway API, one for a name and one for a list.
var routeKinds = map[string]v1alpha1.RouteKind{
	"httpRoute": "HTTPRoute", "grpcRoute": "GRPCRoute", "tcpRoute": "TCPRoute", "tlsRoute": "TLSRoute",
	"httpRoutes": "HTTPRoute", "grpcRoutes": "GRPCRoute", "tcpRoutes": "TCPRoute", "tlsRoutes": "TLSRoute",
}

func (r *rollout) plugins(f source.Field) {
	for _, name := range f.Keys() {
		p := f.At(name)
		if !strings.HasSuffix(strings.ToLower(name), "gatewayapi") {
			p.Note(source.NoEqual, "Serin has no plugins: the operator's default router shares the traffic. For a gateway, write router: gatewayAPI and routeRefs")
			continue
		}
		r.serin.Spec.Router = v1alpha1.RouterGatewayAPI
		if ns := p.At("namespace"); ns.Present() && r.object.Namespace() != "" && ns.Text() != r.object.Namespace() {
			ns.Fail("the routes are in %s: those of a Rollout are in its own namespace, %s, so move them", ns.Text(), r.object.Namespace())
		}
		for _, key := range p.Keys() {
			if kind, is := routeKinds[key]; is {
				r.gatewayRoutes(kind, p.At(key))
			}
		}
	}
}

func (r *rollout) gatewayRoutes(kind v1alpha1.RouteKind, f source.Field) {
	names := []source.Field{f}
	if strings.HasSuffix(f.Path(), "s") {
		names = nil
		for _, item := range f.Items() {
			item.At("useHeaderRoutes").Read()
			names = append(names, item.At("name"))
		}
	}
	for _, name := range names {
		r.route(v1alpha1.RouteReference{Kind: kind, Name: name.Text()})
		name.Note(source.ToDo, "have each rule of the %s %s name the one backend %s, without weights: Serin writes the versions while a release is in progress", kind, name.Text(), r.serin.Spec.Service)
	}
}
