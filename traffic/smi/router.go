// SPDX-License-Identifier: Apache-2.0

package smi

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "smi"

// DefaultSettle is how long a mesh is given to follow a split. Meshes send changes to
// their proxies within a second or two, and retry what fails.
const DefaultSettle = 10 * time.Second

// Router leaves splits to a mesh. It implements traffic.Router.
type Router struct{ traffic.Objectless }

var _ traffic.Router = Router{}

// New makes a Router that takes a split for programmed after a time; 0 for DefaultSettle.
func New(settle time.Duration) Router {
	return Router{traffic.Objectless{Router: Name, Settle: cmp.Or(settle, DefaultSettle)}}
}

// Means implements traffic.Router.
func (Router) Means() traffic.Means { return traffic.MeansRoutes }

// Check implements traffic.Router. What else a mesh can't do, it does not say.
func (Router) Check(split traffic.Split, _ map[string]*corev1.Service) []traffic.Problem {
	return traffic.Lacking(split, Name, traffic.AbilityMatch)
}
