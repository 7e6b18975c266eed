// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// named are the Services that a split names, each once. The default backend counts
// for a split of all requests too: a router that works by routes keeps the requests
// to it that pass no route.
func named(split *splitv1.TrafficSplit) []string {
	names := resolve.ServiceNames(split)
	if name := traffic.DefaultBackend(split); name != "" {
		names = append(names, name)
	}
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
