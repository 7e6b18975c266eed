// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiService is how the API server makes itself known in the cluster; the name is
// fixed.
const apiService = "kubernetes"

// APIServer finds the addresses of the API server for an egress.Policy: those of the
// Service kubernetes, of its endpoints, and further ones that are known otherwise.
// It is read for each connection, so the reader should be a cache.
func APIServer(cached client.Reader, known ...netip.Addr) func(context.Context) ([]netip.Addr, error) {
	return func(ctx context.Context) ([]netip.Addr, error) {
		service := &corev1.Service{}
		if err := cached.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: apiService}, service); err != nil {
			return nil, fmt.Errorf("read the API server's Service: %w", err)
		}
		slices := &discoveryv1.EndpointSliceList{}
		err := cached.List(ctx, slices, client.InNamespace(metav1.NamespaceDefault),
			client.MatchingLabels{discoveryv1.LabelServiceName: apiService}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list the API server's endpoints: %w", err)
		}
		addresses := append([]netip.Addr(nil), known...)
		for _, text := range service.Spec.ClusterIPs {
			addresses = appendAddress(addresses, text)
		}
		for i := range slices.Items {
			for _, endpoint := range slices.Items[i].Endpoints {
				for _, text := range endpoint.Addresses {
					addresses = appendAddress(addresses, text)
				}
			}
		}
		return addresses, nil
	}
}

// Nodes finds the addresses of the cluster's nodes for an egress.Policy: those of their status,
// the ones by which pods reach them, and what a network plugin writes into annotations. It is
// read for each connection, so the reader should be a cache.
func Nodes(cached client.Reader) func(context.Context) ([]netip.Addr, error) {
	return func(ctx context.Context) (addresses []netip.Addr, err error) {
		nodes := &corev1.NodeList{}
		if err := cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		for i := range nodes.Items {
			node := &nodes.Items[i]
			for _, a := range node.Status.Addresses {
				addresses = appendAddress(addresses, a.Address) // host names are none
			}
			for _, network := range node.Spec.PodCIDRs {
				addresses = appendOwn(addresses, network)
			}
			for _, text := range node.Annotations {
				text, _, _ = strings.Cut(text, "/") // 10.0.0.7/24 is that address in its network
				addresses = appendAddress(addresses, text)
			}
		}
		return addresses, nil
	}
}

// appendOwn adds the addresses of a network of pods that plugins give to the node itself: the
// first one to the bridge of its pods, and that of the network to its tunnel.
func appendOwn(list []netip.Addr, network string) []netip.Addr {
	n, err := netip.ParsePrefix(network)
	if err != nil {
		return list
	}
	tunnel := n.Masked().Addr()
	list = append(list, tunnel)
	if bridge := tunnel.Next(); n.Contains(bridge) {
		list = append(list, bridge)
	}
	return list
}

// appendAddress leaves out what is none: a headless Service has the word None.
func appendAddress(list []netip.Addr, text string) []netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return list
	}
	return append(list, a.Unmap())
}
