// SPDX-License-Identifier: Apache-2.0

package fakenode

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// PoolLabel on a node, with any value, makes it one of this package's. A pod whose
	// node selector has the label with the same value is assigned to the ready node of
	// that pool that has the fewest pods; other pods are assigned to NodeName.
	PoolLabel = "serin.dev/test-pool"

	// heartbeat is how often a node says that it is alive, as a kubelet does.
	heartbeat = 10 * time.Second
)

// MakeNode builds a node that is ready, with room for many pods.
func MakeNode(name string, labels map[string]string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1000Gi"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "FakeNode", Message: "stands in for a kubelet"}},
		},
	}
	maps.Copy(node.Labels, labels)
	return node
}

// Register creates a node, ready from the first moment.
func Register(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The controllers write to a new node too, so these are patches.
	status, err := json.Marshal(map[string]any{"status": node.Status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	return untaint(ctx, client, node.Name)
}

// untaint removes the taint that admission puts on nodes that are not ready yet.
func untaint(ctx context.Context, client kubernetes.Interface, node string) error {
	patch := []byte(`{"spec":{"taints":null}}`)
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// serves reports whether a kubelet that is alive would run on the node: that of a
// node which is not ready does nothing for its pods.
func (n *Node) serves(name string) bool {
	node, err := n.nodes.Get(name)
	if err != nil {
		return false
	}
	_, pooled := node.Labels[PoolLabel]
	return (pooled || name == NodeName) && nodeReady(node)
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// choose is the node for a pod, "" while there is none.
func (n *Node) choose(pod *corev1.Pod) (string, error) {
	pool, pooled := pod.Spec.NodeSelector[PoolLabel]
	if !pooled {
		return NodeName, nil
	}
	nodes, err := n.nodes.List(labels.Set{PoolLabel: pool}.AsSelector())
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	best := ""
	for _, node := range nodes {
		if !n.serves(node.Name) || len(node.Spec.Taints) > 0 {
			continue
		}
		if load, least := n.load[node.Name], n.load[best]; best == "" || load < least || load == least && node.Name < best {
			best = node.Name
		}
	}
	if best != "" {
		n.load[best]++
	}
	return best, nil
}

// beat keeps the leases of the nodes fresh until ctx ends.
func (n *Node) beat(ctx context.Context) {
	ticker := n.options.Clock.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		nodes, err := n.nodes.List(labels.Everything())
		for _, node := range nodes {
			if n.serves(node.Name) && err == nil {
				err = n.renew(ctx, node)
			}
		}
		if err != nil && ctx.Err() == nil && n.options.OnError != nil {
			n.options.OnError(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (n *Node) renew(ctx context.Context, node *corev1.Node) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(n.options.Clock.Now())
	lease, err := leases.Get(ctx, node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node.Name, RenewTime: &now},
		}, metav1.CreateOptions{})
		return ignoreGone(err)
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return ignoreGone(err)
}
