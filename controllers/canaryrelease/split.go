// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

const (
	revisionLabel = appsv1.DefaultDeploymentUniqueLabelKey
	totalWeight   = 100
)

// setSplit makes a TrafficSplit what it has to be for some weights, whatever was changed in
// it meanwhile. Where ports have weights of their own, these are in its Routing, and
// spec.backends has the largest of them.
func (s *observation) setSplit(split *splitv1.TrafficSplit, root *corev1.Service, weights []helmrelease.PortWeight, of string) {
	mark(split, s.CanaryRelease, of)
	most := slices.MaxFunc(append(slices.Clone(weights), helmrelease.PortWeight{}), func(a, b helmrelease.PortWeight) int { return int(a.Weight - b.Weight) }).Weight
	split.Spec = splitv1.TrafficSplitSpec{Service: root.Name, Backends: []splitv1.Backend{
		{Service: workload.BackendName(root.Name, v1alpha1.RoleStable), Weight: totalWeight - most},
		{Service: workload.BackendName(root.Name, v1alpha1.RoleCanary), Weight: most},
	}}
	splitv1.SetRouting(split, s.routing(root, weights))
}

// routing is what the split of a root Service has to say beyond the specification.
func (s *observation) routing(root *corev1.Service, weights []helmrelease.PortWeight) splitv1.Routing {
	r := splitv1.Routing{Router: string(v1alpha1.RouterNginx)}
	if own := s.CanaryRelease.Spec.Resources; own != nil {
		r.ProxyPods = &splitv1.ProxyPods{Resources: own}
	}
	rules := func(port string, change func(*splitv1.PortRouting)) {
		if r.Ports == nil {
			r.Ports = map[string]splitv1.PortRouting{}
		}
		rule := r.Ports[port]
		change(&rule)
		r.Ports[port] = rule
	}
	if slices.ContainsFunc(weights, func(w helmrelease.PortWeight) bool { return w.Weight != weights[0].Weight }) {
		for _, w := range weights {
			rules(w.Port, func(p *splitv1.PortRouting) {
				p.Weights = map[string]splitv1.PortWeight{
					workload.BackendName(root.Name, v1alpha1.RoleStable): splitv1.PortWeight(totalWeight - w.Weight),
					workload.BackendName(root.Name, v1alpha1.RoleCanary): splitv1.PortWeight(w.Weight),
				}
			})
		}
	}
	for port, protocol := range s.protocols(root) {
		rules(port, func(p *splitv1.PortRouting) { p.Protocol = protocol })
	}
	return r
}

// protocols are what spec.services says that ports of a Service speak, by port.
func (s *observation) protocols(root *corev1.Service) map[string]string {
	out := map[string]string{}
	for _, service := range s.CanaryRelease.Spec.Services {
		for _, p := range service.Ports {
			if service.Service != root.Name || p.Protocol == "" {
				continue
			}
			transport := corev1.ProtocolTCP
			if p.Protocol == v1alpha1.CanaryProtocolUDP {
				transport = corev1.ProtocolUDP
			}
			out[helmrelease.Port{Number: p.Port, Transport: string(transport)}.String()] = string(p.Protocol)
		}
	}
	return out
}

// observeSplit reads what the split of a Service says and whether that is programmed.
func (s *observation) observeSplit(name string, root *corev1.Service) helmrelease.Split {
	split := s.splits[name]
	if split == nil {
		return helmrelease.Split{Split: kit.Split{Presence: kit.Absent}}
	}
	out := helmrelease.Split{
		Split: shell.ObserveSplit(split, isMarked(split, s.CanaryRelease)),
	}
	if p := split.Status.Proxies; p != nil {
		out.Proxies = p.Ready
	}
	if root != nil {
		out.Requested = s.requested(split, root)
	}
	return out
}

// requested are the weights that a split asks for; nil when it is not what Serin writes.
func (s *observation) requested(split *splitv1.TrafficSplit, root *corev1.Service) []helmrelease.PortWeight {
	stable, canary := workload.BackendName(root.Name, v1alpha1.RoleStable), workload.BackendName(root.Name, v1alpha1.RoleCanary)
	if split.Spec.Service != root.Name || len(split.Spec.Matches) > 0 || len(split.Spec.Backends) != 2 {
		return nil
	}
	common, ok := share(map[string]splitv1.PortWeight{
		split.Spec.Backends[0].Service: splitv1.PortWeight(split.Spec.Backends[0].Weight), split.Spec.Backends[1].Service: splitv1.PortWeight(split.Spec.Backends[1].Weight),
	}, stable, canary)
	if !ok {
		return nil
	}
	routing, err := splitv1.RoutingOf(split)
	if err != nil {
		return nil
	}
	var out []helmrelease.PortWeight
	for _, p := range root.Spec.Ports {
		port := helmrelease.Port{Number: p.Port, Transport: string(p.Protocol)}
		if p.Protocol == "" {
			port.Transport = string(corev1.ProtocolTCP)
		}
		weight := common
		if of := routing.Ports[port.String()].Weights; of != nil {
			if weight, ok = share(of, stable, canary); !ok {
				return nil
			}
		}
		out = append(out, helmrelease.PortWeight{Port: port.String(), Weight: weight})
	}
	slices.SortFunc(out, func(a, b helmrelease.PortWeight) int { return strings.Compare(a.Port, b.Port) })
	if !apiequality.Semantic.DeepEqual(routing, s.routing(root, out)) {
		return nil
	}
	return out
}

// share is the canary's percentage by the weights of both versions, if it is a whole one.
func share(weights map[string]splitv1.PortWeight, stable, canary string) (int32, bool) {
	s, known := weights[stable]
	c, found := weights[canary]
	sum := int64(s) + int64(c)
	if !known || !found || s < 0 || c < 0 || sum == 0 || int64(c)*totalWeight%sum != 0 {
		return 0, false
	}
	return int32(int64(c) * totalWeight / sum), true //nolint:gosec // at most 100
}

// root is the root Service of a name; nil when there is none to share the traffic of.
func (s *observation) root(name string) *corev1.Service {
	if root := s.services[name]; root != nil && len(traffic.DeclaredSelector(root)) > 0 {
		return root
	}
	return nil
}
