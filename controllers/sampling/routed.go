// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/traffic"
)

// Measurements measure TrafficSplits in the background.
type Measurements interface {
	// Measure begins to measure a split, or says what changed.
	Measure(ctx context.Context, rollout types.NamespacedName, of analysis.Subject, w analysis.Weight) error
	// Forget ends the measurement.
	Forget(rollout types.NamespacedName)
	// Windows returns what was measured after a time, and why data is missing.
	Windows(rollout types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health)
}

// Routed measures each split where its router's traffic is counted: in this process the
// counters of Serin's own proxies, and through the TrafficMetrics API all others.
type Routed struct {
	changes.Channel // carries the Rollouts with a new window or a change of health

	splits   client.Reader
	fallback string
	inside   map[string]bool
	proxies  Measurements
	others   Measurements

	mu     sync.Mutex
	router map[types.NamespacedName]string
}

// RoutedOptions configure a Routed.
type RoutedOptions struct {
	// Splits are read from a cache.
	Splits client.Reader
	// DefaultRouter serves the splits that name none.
	DefaultRouter string
	// ProxyRouters are those whose traffic Proxies measure.
	ProxyRouters []string
	// Proxies and Others measure, and notify Changes.
	Proxies, Others Measurements
	Changes         changes.Channel
}

// NewRouted makes a Routed.
func NewRouted(o RoutedOptions) *Routed {
	r := &Routed{
		Channel: o.Changes,
		splits:  o.Splits, fallback: o.DefaultRouter, proxies: o.Proxies, others: o.Others, inside: map[string]bool{},
		router: map[types.NamespacedName]string{},
	}
	for _, name := range o.ProxyRouters {
		r.inside[name] = true
	}
	return r
}

// Measure begins to measure a split for a Rollout, by what its router is, or updates its weight. A split
// that is not there has no traffic. Pods without a split are not measured by proxies.
func (r *Routed) Measure(ctx context.Context, key types.NamespacedName, of analysis.Subject, w analysis.Weight) error {
	if of.Split == "" {
		r.choose(key, "none")
		r.proxies.Forget(key)
		return r.others.Measure(ctx, key, of, w)
	}
	ts := &splitv1.TrafficSplit{}
	if err := r.splits.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: of.Split}, ts); err != nil {
		if apierrors.IsNotFound(err) {
			r.Forget(key)
			return nil
		}
		return fmt.Errorf("the TrafficSplit %q could not be read: %w", of.Split, err)
	}
	router := traffic.RouterName(ts, r.fallback)
	if r.choose(key, router) {
		r.others.Forget(key)
		return r.proxies.Measure(ctx, key, of, w)
	}
	r.proxies.Forget(key)
	return r.others.Measure(ctx, key, of, w)
}

// choose notes the router of a Rollout's split and reports whether proxies of Serin's serve it.
func (r *Routed) choose(key types.NamespacedName, router string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.router[key] = router
	return r.inside[router]
}

// Forget ends the measurement for a Rollout.
func (r *Routed) Forget(key types.NamespacedName) {
	r.mu.Lock()
	delete(r.router, key)
	r.mu.Unlock()
	r.proxies.Forget(key)
	r.others.Forget(key)
}

// Windows returns the windows that ended after a time, oldest first, and how well the
// split is measured.
func (r *Routed) Windows(key types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	r.mu.Lock()
	router, known := r.router[key]
	r.mu.Unlock()
	switch {
	case !known:
		return nil, analysis.Health{}
	case r.inside[router]:
		return r.proxies.Windows(key, after)
	}
	windows, health := r.others.Windows(key, after)
	if strings.HasPrefix(health.Message, notServed) {
		health.Message = fmt.Sprintf("nothing measures what the router %s shares: %s, or, with spec.analysis.onInconclusive Promote, "+
			"let steps go by time and by the metrics of spec.analysis", router, notServed)
	}
	return windows, health
}
