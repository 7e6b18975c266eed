// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// What selects the pods of the app by their labels, such as autoscalers, budgets, monitors,
// policies and other Services, does not find the proxies.
func TestNoSelectorOfTheAppFindsAProxy(t *testing.T) {
	t.Parallel()
	p := begin(t, atMostOneAway, func(c *cast) {
		metrics := service("metrics") // another Service of the same pods, on a port that proxies do not serve
		metrics.Spec.Selector, metrics.Spec.Ports = map[string]string{"app": "website"}, []corev1.ServicePort{{Name: "metrics", Port: 9090}}
		c.extras = append(c.extras, metrics)
	})
	p.release()
	if n := len(p.throughProxies(t.Context())); n != 2 {
		t.Fatalf("%d proxies are endpoints of the Service", n)
	}
	app := 0
	for _, names := range p.pods() {
		app += len(names)
	}
	for _, proxy := range p.proxies() {
		if _, found := proxy.Labels["app"]; found || proxy.Labels[traffic.LabelProxy] != "website" {
			t.Errorf("the proxy %s has the labels %v", proxy.Name, proxy.Labels)
		}
	}
	selected := &corev1.PodList{}
	selector := p.deployment().Spec.Selector.MatchLabels
	if err := admin.List(t.Context(), selected, client.InNamespace(p.namespace), client.MatchingLabels(selector)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range selected.Items {
		if _, proxy := pod.Labels[traffic.LabelProxy]; proxy {
			t.Errorf("the Deployment's selector, which an autoscaler of it uses, finds %s", pod.Name)
		}
	}
	p.eventually("the budget of the app counts its pods and no others", func(ctx context.Context) bool {
		budget := &policyv1.PodDisruptionBudget{}
		return admin.Get(ctx, p.key("website"), budget) == nil && budget.Status.ObservedGeneration == budget.Generation && int(budget.Status.CurrentHealthy) == app
	})
	p.eventually("the other Service has the pods of the app as endpoints and no others", func(ctx context.Context) bool {
		list := &discoveryv1.EndpointSliceList{}
		if admin.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "metrics"}) != nil {
			return false
		}
		n := 0
		for i := range list.Items {
			n += len(list.Items[i].Endpoints)
		}
		return n == app
	})
}
