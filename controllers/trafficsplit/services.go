// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic/resolve"
)

// named are the Services that a split names, each once.
func named(split *splitv1.TrafficSplit) []string {
	names := resolve.ServiceNames(split)
	slices.Sort(names)
	return slices.Compact(names)
}

// services are those that concern a split, by name. They are shared with the cache and
// must not be changed.
func (r *Reconciler) services(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*corev1.Service, error) {
	services := map[string]*corev1.Service{}
	for _, name := range named(split) {
		service := &corev1.Service{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: split.Namespace, Name: name}, service, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read Service %q: %w", name, err)
		}
		services[name] = service
	}
	return services, nil
}

// observePlaces looks where the endpoints of the root Service and of the backends are,
// if one of them has a traffic distribution: else it decides nothing.
func (r *Reconciler) observePlaces(ctx context.Context, o *observation, services map[string]*corev1.Service) error {
	placed := make([]plan.Placed, 0, len(o.Split.Spec.Backends)+1)
	if o.Root.Service != nil {
		placed = append(placed, plan.Placed{Service: o.Root.Service, Root: true})
	}
	for _, b := range o.Split.Spec.Backends {
		if s := services[b.Service]; s != nil && b.Service != o.Resolved.Root {
			p := plan.Placed{Service: s, Weight: b.Weight}
			if o.Resolved.PortWeights {
				p.Weight = o.Resolved.Weight(b.Service)
			}
			placed = append(placed, p)
		}
	}
	if !slices.ContainsFunc(placed, func(p plan.Placed) bool { return p.Service.Spec.TrafficDistribution != nil }) {
		return nil
	}
	for i := range placed {
		var err error
		if placed[i].Endpoints, err = r.places(ctx, placed[i].Service); err != nil {
			return err
		}
	}
	o.placed = placed
	return nil
}

// places are the ready endpoints of a Service by name, so that what is said of the
// first of them stays the same.
func (r *Reconciler) places(ctx context.Context, service *corev1.Service) ([]plan.Endpoint, error) {
	var list discoveryv1.EndpointSliceList
	err := r.Client.List(ctx, &list, client.InNamespace(service.Namespace),
		client.MatchingFields{indexService: service.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %q: %w", service.Name, err)
	}
	var places []plan.Endpoint
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				places = append(places, placeOf(e))
			}
		}
	}
	slices.SortFunc(places, func(a, b plan.Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return places, nil
}

func placeOf(e discoveryv1.Endpoint) plan.Endpoint {
	place := plan.Endpoint{Name: shell.EndpointName(e), Zone: ptr.Deref(e.Zone, "")}
	if e.Hints != nil {
		place.ZoneHint, place.NodeHint = len(e.Hints.ForZones) > 0, len(e.Hints.ForNodes) > 0
	}
	return place
}
