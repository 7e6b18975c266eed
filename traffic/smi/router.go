// SPDX-License-Identifier: Apache-2.0

package smi

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/traffic"
)

// Name is the value of the field router of a split's routing that chooses this router.
const Name = "smi"

// DefaultSettle is how long a mesh is given to follow a split. Meshes send changes to
// their proxies within a second or two, and retry what fails.
const DefaultSettle = 10 * time.Second

// Router leaves splits to a mesh. It implements traffic.Router.
type Router struct {
	settle time.Duration
}

var _ traffic.Router = (*Router)(nil)

// New makes a Router that takes a split for programmed after a time; 0 for DefaultSettle.
func New(settle time.Duration) *Router {
	if settle == 0 {
		settle = DefaultSettle
	}
	return &Router{settle: settle}
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansRoutes }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind { return nil }

// Check implements traffic.Router. What else a mesh can't do, it does not say.
func (r *Router) Check(split traffic.Split, _ map[string]*corev1.Service) []traffic.Problem {
	return traffic.Lacking(split, Name, traffic.AbilityMatch)
}

// Observe implements traffic.Router. A mesh goes by a split until that is gone, so that
// there is nothing to wait for before its deletion.
func (r *Router) Observe(_ context.Context, of traffic.Target) (traffic.State, error) {
	if !of.Split.DeletionTimestamp.IsZero() {
		return traffic.State{}, nil
	}
	return traffic.State{Settle: r.settle}, nil
}

// Apply implements traffic.Router.
func (r *Router) Apply(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s makes no %s", Name, object.Kind)
}

// Restore implements traffic.Router.
func (r *Router) Restore(_ context.Context, _ traffic.Target, object traffic.Object) error {
	return fmt.Errorf("router %s patches no %s", Name, object.Kind)
}
