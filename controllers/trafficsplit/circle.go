// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// indexCircular of a TrafficSplit has those that were refused for closing a circle.
const indexCircular = "trafficsplit.serin.dev/circular"

func circularIndex(o client.Object) []string {
	split, ok := o.(*splitv1.TrafficSplit)
	if !ok {
		return nil
	}
	c := meta.FindStatusCondition(split.Status.Conditions, splitv1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != splitv1.ReasonCircular {
		return nil
	}
	return []string{"true"}
}

// circle refuses a split whose requests would come back to its root Service. Where no
// backend is another split's root Service, it costs one look-up a Service.
func (r *Reconciler) circle(ctx context.Context, split *splitv1.TrafficSplit) ([]traffic.Problem, error) {
	var found []resolve.OtherSplit
	seen, asked := map[string]bool{split.Name: true}, map[string]bool{} // splits and Services
	for services := referred(split); len(services) > 0; {
		var next []string
		for _, name := range services {
			if asked[name] {
				continue
			}
			asked[name] = true
			others, err := r.splitsOf(ctx, split.Namespace, name)
			if err != nil {
				return nil, err
			}
			for _, other := range others {
				if seen[other.Name] {
					continue
				}
				seen[other.Name] = true
				found = append(found, resolve.OtherSplit{Split: other, Served: r.leader(other) != nil})
				next = append(next, referred(other)...)
			}
		}
		services = next
	}
	return resolve.Circle(split, found), nil
}

// referred are the Services that a split sends requests to, by its spec or still by its
// status.
func referred(split *splitv1.TrafficSplit) []string {
	names := resolve.ServiceNames(split)
	for _, b := range split.Status.Backends {
		names = append(names, b.Service)
	}
	if m := split.Status.Mirror; m != nil {
		names = append(names, m.Service)
	}
	return names
}

// splitsOf are the splits of a root Service that a router of the operator serves, or
// still has proxies for, by name: the cache has them in any order, and the circle that is
// reported must not change with it.
func (r *Reconciler) splitsOf(ctx context.Context, namespace, root string) ([]*splitv1.TrafficSplit, error) {
	var list splitv1.TrafficSplitList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{indexRoot: root}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list TrafficSplits of Service %q: %w", root, err)
	}
	var splits []*splitv1.TrafficSplit
	for i := range list.Items {
		split := &list.Items[i]
		if controllerutil.ContainsFinalizer(split, traffic.Finalizer) || r.Options.claim(split) == plan.ClaimOurs {
			splits = append(splits, split)
		}
	}
	slices.SortFunc(splits, func(a, b *splitv1.TrafficSplit) int { return cmp.Compare(a.Name, b.Name) })
	return splits, nil
}

// circular maps a split to those that were refused for a circle, which it may have been
// a part of.
func (r *Reconciler) circular(ctx context.Context, o client.Object) []reconcile.Request {
	return r.splits(ctx, o.GetNamespace(), client.MatchingFields{indexCircular: "true"})
}
