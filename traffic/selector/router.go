// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "none"

// DefaultSettle is how long kube-proxies are given to follow endpoints: they write their rules
// at most once a second, and retry what fails.
const DefaultSettle = 5 * time.Second

// Router leads all requests to one backend. It implements traffic.Router.
type Router struct{ traffic.Objectless }

var _ traffic.Router = Router{}

// New makes a Router that gives kube-proxies some time; 0 for DefaultSettle.
func New(settle time.Duration) Router {
	return Router{traffic.Objectless{Router: Name, Settle: cmp.Or(settle, DefaultSettle)}}
}

// Means implements traffic.Router.
func (Router) Means() traffic.Means { return traffic.MeansSelector }

// Check implements traffic.Router.
func (Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name)
	var chosen string
	for _, p := range split.Ports {
		for _, d := range p.Destinations {
			switch {
			case d.Weight == 0 || d.Service == chosen:
			case chosen != "":
				return append(problems, traffic.Unsupported("spec.backends: the router none leads all requests to one backend, and Services %q and %q have weights; give one of them all the weight, or choose another router", chosen, d.Service))
			default:
				chosen = d.Service
			}
		}
	}
	root, backend := services[split.Root], services[chosen]
	if root == nil || backend == nil {
		return problems
	}
	for _, p := range root.Spec.Ports {
		if !slices.ContainsFunc(backend.Spec.Ports, func(of corev1.ServicePort) bool { return of.TargetPort == p.TargetPort }) {
			problems = append(problems, traffic.Unsupported("spec.backends: with the router none, clients of Service %q reach the port of the pods that its own port %d names, and Service %q leads to another one; "+
				"give both the same targetPort, or choose another router", root.Name, p.Port, backend.Name))
		}
	}
	return problems
}
