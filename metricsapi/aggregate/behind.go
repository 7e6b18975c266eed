// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/traffic"
)

// behind knows the pods of Services, for flows that tell the Service and not the pod:
// a proxy that sends to the address of a Service does not know who answers.
type behind struct {
	inventory observe.Inventory
	// pods by Service, of the namespaces that were asked about.
	pods map[string]map[types.NamespacedName][]types.NamespacedName
	// known are the answers of common: many flows have the same Service.
	known map[ref][]types.NamespacedName
}

func newBehind(inventory observe.Inventory) *behind {
	return &behind{
		inventory: inventory, pods: map[string]map[types.NamespacedName][]types.NamespacedName{}, known: map[ref][]types.NamespacedName{},
	}
}

// notProxies leaves Serin's own proxies out: they pass the requests of a Service on, and
// answer none.
var notProxies = func() labels.Selector {
	r, err := labels.NewRequirement(traffic.LabelProxy, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // the key is a constant
	}
	return labels.NewSelector().Add(*r)
}()

// common are the objects of a kind that contain all pods of a Service, so that any of
// them may have answered. There are none if the pods differ in that.
func (b *behind) common(kind observe.Kind, service types.NamespacedName) []types.NamespacedName {
	known, found := b.known[ref{kind, service}]
	if !found {
		known = b.find(kind, service)
		b.known[ref{kind, service}] = known
	}
	return known
}

func (b *behind) find(kind observe.Kind, service types.NamespacedName) []types.NamespacedName {
	if b.pods[service.Namespace] == nil {
		b.pods[service.Namespace] = b.read(service.Namespace)
	}
	var common types.NamespacedName
	for i, pod := range b.pods[service.Namespace][service] {
		holder := pod
		if kind != observe.Pods {
			holders := b.inventory.Holders(kind, pod)
			if len(holders) == 0 {
				return nil
			}
			holder = holders[0]
		}
		if i > 0 && holder != common {
			return nil
		}
		common = holder
	}
	if common.Name == "" {
		return nil
	}
	return []types.NamespacedName{common}
}

func (b *behind) read(namespace string) map[types.NamespacedName][]types.NamespacedName {
	pods := map[types.NamespacedName][]types.NamespacedName{}
	for _, pod := range b.inventory.Names(observe.Pods, namespace, notProxies) {
		for _, service := range b.inventory.Holders(observe.Services, pod) {
			pods[service] = append(pods[service], pod)
		}
	}
	return pods
}
