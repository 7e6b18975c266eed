// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/poll/fair"
)

// newCaches judges the caches of a manager. Whether the API answers is asked of itself,
// which needs its storage for that.
func newCaches(config *rest.Config) (*bounds.Caches, error) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API: %w", err)
	}
	return bounds.NewCaches(clock.RealClock{}, func(ctx context.Context) error {
		return api.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}), nil
}

// newSlots are those of one kind of work, which namespaces share, with metrics of their use.
func newSlots(work string, n int) (*fair.Slots, error) {
	slots := fair.NewSlots(fair.Limits{Slots: n})
	return slots, reportSlots(work, slots)
}

func reportSlots(work string, slots *fair.Slots) error {
	if err := metrics.Registry.Register(bounds.NewSlotUse(work, slots)); err != nil {
		return fmt.Errorf("register the metrics of slots for %s: %w", work, err)
	}
	return nil
}

// addHealth adds the probes: ready with filled caches, alive while they follow the API.
func addHealth(mgr manager.Manager, caches *bounds.Caches) error {
	if err := metrics.Registry.Register(caches); err != nil {
		return fmt.Errorf("register the metrics of caches: %w", err)
	}
	if err := mgr.AddHealthzCheck("caches", caches.Follow); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", caches.Filled); err != nil {
		return err
	}
	return mgr.Add(caches)
}
