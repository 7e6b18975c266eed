// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes answers the library's question in which zone a pod is. Of a node it knows only the
// metadata.
type nodes struct {
	corelisters.NodeLister
	ctx    context.Context //nolint:containedctx // the interface has no place for it
	client client.Reader
}

// podZones are nodes in the zones that the labels of their pods say, which Kubernetes sets
// since 1.35.
type podZones struct {
	corelisters.NodeLister
	pods []*corev1.Pod
}

// Get implements corelisters.NodeLister.
func (z podZones) Get(name string) (*corev1.Node, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, pod := range z.pods {
		if zone, found := pod.Labels[corev1.LabelTopologyZone]; found && pod.Spec.NodeName == name {
			node.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		}
	}
	return node, nil
}

// Node is one of which the cache holds only the metadata.
func Node() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return node
}

// Get implements corelisters.NodeLister.
func (n nodes) Get(name string) (*corev1.Node, error) {
	node := Node()
	if err := n.client.Get(n.ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}, nil
}
