// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "none"

// DefaultSettle is how long kube-proxies are given to follow endpoints: they write their rules
// at most once a second, and retry what fails.
const DefaultSettle = 5 * time.Second

// Router leads all requests to one backend. It implements traffic.Router.
type Router struct{ settle time.Duration }

var _ traffic.Router = Router{}

// New makes a Router that gives kube-proxies some time; 0 for DefaultSettle.
func New(settle time.Duration) Router {
	if settle == 0 {
		settle = DefaultSettle
	}
	return Router{settle: settle}
}

// Name implements traffic.Router.
func (Router) Name() string { return Name }

// Means implements traffic.Router.
func (Router) Means() traffic.Means { return traffic.MeansSelector }

// Kinds implements traffic.Router.
func (Router) Kinds() []schema.GroupVersionKind { return nil }

// Check implements traffic.Router.
func (Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name)
	var chosen string
	for _, p := range split.Ports {
		for _, d := range p.Destinations {
			switch {
			case d.Weight == 0 || d.Service == chosen:
			case chosen != "":
				return append(problems, unsupported("spec.backends: the router none leads all requests to one backend, and Services %q and %q have weights; give one of them all the weight, or choose another router", chosen, d.Service))
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
			problems = append(problems, unsupported("spec.backends: with the router none, clients of Service %q reach the port of the pods that its own port %d names, and Service %q leads to another one; "+
				"give both the same targetPort, or choose another router", root.Name, p.Port, backend.Name))
		}
	}
	return problems
}

func unsupported(format string, args ...any) traffic.Problem {
	return traffic.Problem{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonUnsupported, Message: fmt.Sprintf(format, args...)}
}

// Observe implements traffic.Router. There is nothing but the root Service.
func (r Router) Observe(_ context.Context, of traffic.Target) (traffic.State, error) {
	if !of.Split.DeletionTimestamp.IsZero() {
		return traffic.State{}, nil
	}
	return traffic.State{Settle: r.settle}, nil
}

// Apply implements traffic.Router.
func (Router) Apply(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s makes no %s", Name, object.Kind)
}

// Restore implements traffic.Router.
func (Router) Restore(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s patches no %s", Name, object.Kind)
}
