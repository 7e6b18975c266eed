// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objectless is what routers that make and patch no object have in common: they embed it. What
// follows their splits does not say when it does, and is given a time.
type Objectless struct {
	// Router is the name of the router.
	Router string
	// Settle is how long what follows a split is given.
	Settle time.Duration
}

// Name implements Router.
func (o Objectless) Name() string { return o.Router }

// Kinds implements Router.
func (Objectless) Kinds() []schema.GroupVersionKind { return nil }

// Observe implements Router. A split that is being deleted has nothing to wait for.
func (o Objectless) Observe(_ context.Context, of Target) (State, error) {
	if !of.Split.DeletionTimestamp.IsZero() {
		return State{}, nil
	}
	return State{Settle: o.Settle}, nil
}

// Apply implements Router.
func (o Objectless) Apply(_ context.Context, _ Target, object Object) error {
	return fmt.Errorf("router %s makes no %s", o.Router, object.Kind)
}

// Restore implements Router.
func (o Objectless) Restore(_ context.Context, _ Target, object Object) error {
	return fmt.Errorf("router %s patches no %s", o.Router, object.Kind)
}
