// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// The label of a proxy's pod is the name of its split.
const proxyLabel = "serin.dev/proxy"

// reportProxies stands in for the agents of the nginx router until ctx ends: each
// ready proxy reports that it serves the newest generation of its split, in one
// write, as a real one does after it has reloaded nginx.
func reportProxies(ctx context.Context, s *stage, f fleet) error {
	if f.router != v1alpha1.RouterNginx {
		return nil
	}
	config := rest.CopyConfig(s.plane.Config)
	config.UserAgent = agentOfProxies
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return fmt.Errorf("stand in for the proxies: %w", err)
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		split := o.GetLabels()[proxyLabel]
		if split == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: split}}}
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("proxies-"+f.name).
		For(&splitv1.TrafficSplit{}).Watches(&corev1.Pod{}, byLabel).
		Complete(proxies{mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("stand in for the proxies: %w", err)
	}
	go func() { _ = mgr.Start(ctx) }() // it ends with ctx; without reports no release goes on, which shows
	return nil
}

type proxies struct{ client.Client }

// Reconcile reports for each proxy of a split.
func (p proxies) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ts := &splitv1.TrafficSplit{}
	if err := p.Get(ctx, req.NamespacedName, ts); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pods := &corev1.PodList{}
	if err := p.List(ctx, pods, client.InNamespace(req.Namespace), client.MatchingLabels{proxyLabel: req.Name}); err != nil {
		return reconcile.Result{}, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !podReady(pod) || serves(ts, pod.Name) {
			continue
		}
		if err := p.report(ctx, ts, pod.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

func (p proxies) report(ctx context.Context, ts *splitv1.TrafficSplit, pod string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": ts.Name, "namespace": ts.Namespace, "uid": string(ts.UID)},
		"status":   map[string]any{"proxies": []any{map[string]any{"name": pod, "observedGeneration": ts.Generation}}},
	}}
	u.SetGroupVersionKind(splitv1.GroupVersion.WithKind("TrafficSplit"))
	err := p.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(pod), client.ForceOwnership)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the split went meanwhile
	}
	return err
}

func serves(ts *splitv1.TrafficSplit, pod string) bool {
	return slices.ContainsFunc(ts.Status.Proxies, func(s splitv1.ProxyStatus) bool {
		return s.Name == pod && s.ObservedGeneration == ts.Generation
	})
}

func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
