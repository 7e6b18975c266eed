// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

const (
	// endpointsPerProxy are ready pods of the app that one proxy carries the traffic of, as long as
	// no load was measured.
	endpointsPerProxy = 10
	// busyWanted is how much of what proxies take on at once they should have in progress at most,
	// in percent: one of two can be lost.
	busyWanted = 50
	// proxiesForLoss is how many proxies there are where there are as many nodes, so that
	// the loss of one takes no more than a third of the requests with it.
	proxiesForLoss = 3

	labelControlPlane = "node-role.kubernetes.io/control-plane"
)

// Nodes are what proxies can be spread over.
type Nodes struct {
	// Count of the nodes that take pods; 0 when that is not known.
	Count int
	// Zones that they are in.
	Zones int
	// FewestInZone is how many nodes the zone with the fewest has.
	FewestInZone int
}

// Load is what decides how many proxies a split needs.
type Load struct {
	// Endpoints of the backends that are ready.
	Endpoints int
	// Nodes that proxies can be spread over.
	Nodes Nodes
	// Busy is how much of what it takes on at once each proxy has in progress, in percent.
	Busy []int32
	// Sized is how many proxies were needed before: there are never fewer until the split ends, since
	// each proxy that stops closes its clients' connections.
	Sized int32
}

// sizeOf is how many proxies a split needs: at least what the operator gives to each, and at most
// what the operator lets a split have.
func sizeOf(load Load, least, most int32) int32 {
	busy := int32(0)
	for _, b := range load.Busy {
		busy += b
	}
	needed := max(
		int32((load.Endpoints+endpointsPerProxy-1)/endpointsPerProxy), //nolint:gosec // bounded by the cluster's pods
		int32(min(load.Nodes.Count, proxiesForLoss)),                  //nolint:gosec // at most proxiesForLoss
		(busy+busyWanted-1)/busyWanted, load.Sized,
	)
	return max(min(needed, most), least)
}

// Spread is whether the scheduler must spread proxies, or only prefers to.
type Spread struct {
	// Nodes: no node has two proxies more than another.
	Nodes bool
	// Zones: no zone has two proxies more than another.
	Zones bool
}

// spreadOf is how proxies are spread: strictly where there are enough nodes, and zones that have
// enough of them. A proxy that finds no place ends that for as long as the split lasts: a
// proxy beside another one is better than none.
func spreadOf(nodes Nodes, size int32, live *Spread, unplaced bool) Spread {
	if live != nil {
		return Spread{Nodes: live.Nodes && !unplaced, Zones: live.Zones && !unplaced}
	}
	return Spread{
		Nodes: nodes.Count >= max(int(size), 2),
		Zones: nodes.Zones >= 2 && nodes.FewestInZone >= 2,
	}
}

// nodesOf sums up nodes by their labels. The control plane's take no pods, unless there are no
// others.
func nodesOf(nodes []map[string]string, selector map[string]string) Nodes {
	ours := labels.SelectorFromSet(selector)
	var found []map[string]string
	for _, n := range nodes {
		if _, control := n[labelControlPlane]; !control && ours.Matches(labels.Set(n)) {
			found = append(found, n)
		}
	}
	if len(found) == 0 && len(selector) == 0 {
		found = nodes
	}
	inZone := map[string]int{}
	for _, n := range found {
		if zone := n[corev1.LabelTopologyZone]; zone != "" {
			inZone[zone]++
		}
	}
	out := Nodes{Count: len(found), Zones: len(inZone)}
	for _, n := range inZone {
		if out.FewestInZone == 0 || n < out.FewestInZone {
			out.FewestInZone = n
		}
	}
	return out
}

// nodes reads the labels of the cluster's nodes, of which the cache holds the metadata.
func (r *Router) nodes(ctx context.Context, selector map[string]string) (Nodes, error) {
	if r.options.WithoutNodes {
		return Nodes{}, nil
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return Nodes{}, fmt.Errorf("list the nodes: %w", err)
	}
	all := make([]map[string]string, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, list.Items[i].Labels)
	}
	return nodesOf(all, selector), nil
}

// size sets how many proxies the options ask for, and how they are spread. The nodes are read once
// for each split: those that come and go later move no proxy.
func (r *Router) size(ctx context.Context, target traffic.Target, s *settings, pods []corev1.Pod, readings []traffic.Reading) error {
	load := Load{Endpoints: target.Endpoints}
	for _, reading := range readings {
		load.Busy = append(load.Busy, reading.Busy)
	}
	live, err := r.sized(ctx, target, s, &load)
	if err != nil {
		return err
	}
	if live == nil {
		if load.Nodes, err = r.nodes(ctx, plain(s.Pods.NodeSelector)); err != nil {
			return err
		}
	}
	s.Replicas = sizeOf(load, s.Replicas, s.MaxReplicas)
	s.Spread = spreadOf(load.Nodes, s.Replicas, live, slices.ContainsFunc(pods, unplaced))
	return nil
}

// sized notes how many proxies were needed before and whether others say so, and returns how they
// are spread; nil when there are none.
func (r *Router) sized(ctx context.Context, target traffic.Target, s *settings, load *Load) (*Spread, error) {
	key := client.ObjectKey{Namespace: target.Split.Namespace, Name: traffic.ProxyName(target.Split.Name)}
	if autoscaled(target, s.Options) {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := client.IgnoreNotFound(r.client.Get(ctx, key, autoscaler)); err != nil {
			return nil, fmt.Errorf("HorizontalPodAutoscaler %s: %w", key.Name, err)
		}
		if least := autoscaler.Spec.MinReplicas; labelled(autoscaler, target.Split.Name) && least != nil {
			load.Sized = *least
		}
	}
	deployment := &appsv1.Deployment{}
	if err := client.IgnoreNotFound(r.client.Get(ctx, key, deployment)); err != nil {
		return nil, fmt.Errorf("Deployment %s: %w", key.Name, err) //nolint:staticcheck // a kind
	}
	if !labelled(deployment, target.Split.Name) {
		return nil, nil
	}
	var err error
	if s.scaled, err = scaledByOthers(deployment); err != nil {
		return nil, err
	}
	if !s.scaled && deployment.Spec.Replicas != nil {
		load.Sized = max(load.Sized, *deployment.Spec.Replicas)
	}
	return liveSpread(deployment), nil
}

// liveSpread is how the proxies that there are were spread.
func liveSpread(d *appsv1.Deployment) *Spread {
	strict := func(key string) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule
		})
	}
	return &Spread{Nodes: strict(corev1.LabelHostname), Zones: strict(corev1.LabelTopologyZone)}
}

// unplaced is whether the scheduler finds no place for a pod.
func unplaced(pod corev1.Pod) bool {
	return pod.Spec.NodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
