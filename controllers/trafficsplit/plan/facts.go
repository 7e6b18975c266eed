// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// AnnotationOriginalSelector on a root Service records, as JSON, the selector
// that its owner declares, for as long as its traffic goes through the proxies.
const AnnotationOriginalSelector = "serin.dev/original-selector"

// proxied is true when the root Service has the key of this split's proxies, so that its own
// pods are no endpoints.
func (o Observation) proxied() bool {
	return o.Root.Presence == kit.Present && o.Root.Service.Spec.Selector[traffic.LabelProxy] == o.Split.Name
}

// marked is true when the root Service bears the record of a cutover that was not
// restored, but has no key of proxies.
func (o Observation) marked() bool {
	if o.Root.Presence != kit.Present || o.Root.Service.Spec.Selector[traffic.LabelProxy] != "" {
		return false
	}
	_, ok := o.Root.Service.Annotations[AnnotationOriginalSelector]
	return ok
}

// lost is true when this split's weights were live and a user or another controller then
// removed its proxies from the root Service's selector.
func (o Observation) lost() bool {
	return o.marked() && o.Claim == ClaimOurs && o.Rival == "" && len(o.Split.Status.Backends) > 0
}

// recorded is true when the recorded selector is what the owner declares now.
func (o Observation) recorded() bool {
	var selector map[string]string
	err := json.Unmarshal([]byte(o.Root.Service.Annotations[AnnotationOriginalSelector]), &selector)
	return err == nil && maps.Equal(selector, traffic.DeclaredSelector(o.Root.Service))
}

// NeedsDirect is true when the decision depends on what the root Service would
// select without a proxy.
func (o Observation) NeedsDirect() bool {
	if o.leaving() {
		return o.proxied() || !o.DataPlane.Empty() && o.around() == 0
	}
	return o.proxied() && o.carriers() == 0
}

// serves is true when a proxy serves the split's generation, with the very Services
// and HTTPRouteGroups that the controller sees.
func (o Observation) serves(p traffic.Proxy) bool {
	return p.Generation == o.Split.Generation && p.Configuration == o.Resolved.Digest()
}

// unasked is true while no proxy that takes requests was read since the controller
// started, and the status says that all of them serve what is wanted now: that stays true
// until one of them was asked.
func (o Observation) unasked() bool {
	c := meta.FindStatusCondition(o.Split.Status.Conditions, splitv1.ConditionProgrammed)
	proxies := o.Split.Status.Proxies
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Split.Generation &&
		proxies != nil && proxies.Configuration == o.Resolved.Digest() &&
		o.carriers() > 0 && o.count(func(p traffic.Proxy) bool { return carries(p) && !p.Unread }) == 0
}

// carriers is the number of proxies that could take requests to the root Service.
func (o Observation) carriers() int { return o.count(carries) }

// confirmed is the number of them that serve the generation.
func (o Observation) confirmed() int {
	return o.count(func(p traffic.Proxy) bool { return carries(p) && o.serves(p) })
}

// behind is the number of them that do not.
func (o Observation) behind() int { return o.carriers() - o.confirmed() }

func carries(p traffic.Proxy) bool { return p.Ready && !p.Terminating }

// hasSlices is true when there are EndpointSlices that make proxies endpoints of the root Service, and go on.
func (o Observation) hasSlices() bool {
	return slices.ContainsFunc(o.DataPlane.Objects, func(object traffic.Object) bool {
		return object.Kind == "EndpointSlice" && !object.Unwanted
	})
}

// joined is the number of proxies that can take requests to the root Service and are among
// its endpoints.
func (o Observation) joined() int {
	return o.count(func(p traffic.Proxy) bool { return carries(p) && slices.Contains(o.Endpoints.Ready, p.Name) })
}

func (o Observation) count(is func(traffic.Proxy) bool) int {
	n := 0
	for _, p := range o.DataPlane.Proxies {
		if is(p) {
			n++
		}
	}
	return n
}

// through and around are the numbers of the root Service's ready endpoints that
// are proxies and that are not.
func (o Observation) through() int { return len(o.Endpoints.Ready) - o.around() }

func (o Observation) around() int {
	n := 0
	for _, name := range o.Endpoints.Ready {
		if _, ok := o.Proxy(name); !ok {
			n++
		}
	}
	return n
}

// Proxy is the proxy of that name, if the name of an endpoint is one's.
func (o Observation) Proxy(name string) (traffic.Proxy, bool) {
	i := slices.IndexFunc(o.DataPlane.Proxies, func(p traffic.Proxy) bool { return p.Name == name })
	if i < 0 {
		return traffic.Proxy{}, false
	}
	return o.DataPlane.Proxies[i], true
}

// liveBackends are the weights of the split: 0 for a backend that no port
// sends traffic to.
func (o Observation) liveBackends() []splitv1.BackendStatus {
	var backends []splitv1.BackendStatus
	for _, b := range o.Split.Spec.Backends {
		backends = append(backends, splitv1.BackendStatus{
			Service: b.Service, ReadyEndpoints: o.BackendEndpoints[b.Service],
			Weight: o.Resolved.Weight(b.Service), Ports: o.livePorts(b.Service),
		})
	}
	return backends
}

// livePorts are the weights of a backend on each port that it can take; nil where
// all ports have one.
func (o Observation) livePorts(service string) []splitv1.PortStatus {
	if !o.Resolved.PortWeights {
		return nil
	}
	var ports []splitv1.PortStatus
	for _, p := range o.Resolved.Ports {
		for _, d := range p.Destinations {
			if d.Service == service {
				ports = append(ports, splitv1.PortStatus{Port: p.Number, Protocol: p.Transport(), Weight: d.Weight})
			}
		}
	}
	return ports
}

// liveMirror is the mirroring of the split, if any port's requests are copied.
func (o Observation) liveMirror() *splitv1.MirrorStatus {
	mirror := o.Resolved.Mirror
	if mirror == nil || !slices.ContainsFunc(o.Resolved.Ports, func(p traffic.Port) bool { return p.Mirror != nil }) {
		return nil
	}
	return &splitv1.MirrorStatus{Service: mirror.Service, Percent: mirror.Percent}
}

// lastBackends are the weights that were last live, with today's endpoints.
func (o Observation) lastBackends() []splitv1.BackendStatus {
	var backends []splitv1.BackendStatus
	for _, b := range o.Split.Status.Backends {
		b.ReadyEndpoints = o.BackendEndpoints[b.Service]
		backends = append(backends, b)
	}
	return backends
}

// unroutable are the ports whose requests no backend could take. What a limited split
// does not share is left to the root Service where its traffic goes through no proxies.
func (o Observation) unroutable() []traffic.Port {
	split := o.Resolved
	if o.Means == traffic.MeansRoutes {
		split.Limited = false
	}
	return split.Unroutable()
}

func serviceObject(s *corev1.Service) traffic.Object {
	return traffic.Object{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"),
		Name:             s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
	}
}
