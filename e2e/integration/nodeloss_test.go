// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
)

// onTwoNodes spreads the website over two nodes of its own, which it leaves as soon
// as one is not ready.
func onTwoNodes(pool string) func(*cast) {
	return func(c *cast) {
		spec := &c.deployment.Spec.Template.Spec
		spec.NodeSelector = map[string]string{fakenode.PoolLabel: pool}
		for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(0)),
			})
		}
	}
}

// startNodes registers the nodes of a pool.
func startNodes(t *testing.T, names ...string) {
	t.Helper()
	c, err := kubernetes.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		node := fakenode.MakeNode(name, map[string]string{fakenode.PoolLabel: names[0]})
		if err := fakenode.Register(t.Context(), c, node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := client.IgnoreNotFound(admin.Delete(ctx, node)); err != nil {
				t.Error(err)
			}
		})
	}
}

// lose makes a node not ready, as its kubelet reports it or as it is found out:
// the real controllers mark its pods, taint it and evict them. None of its pods
// ever ends by itself.
func lose(t *testing.T, name string) {
	t.Helper()
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Lost"}]}}`)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Status().Patch(t.Context(), node, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// where counts the pods of an image on a node that are not on their way out.
func (p *stage) where(image, node string) (n int) {
	p.Helper()
	list := &corev1.PodList{}
	if err := p.reader.List(p.Context(), list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Spec.Containers[0].Image == image && pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func TestTheLossOfANodeTakesOnlyItsPodsAndTheReleaseGoesOn(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"the node may come back": false, "the node is deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := newScene(t).namespace
			lost := node + "-b"
			startNodes(t, node, lost)
			p := begin(t, onTwoNodes(node))
			p.release()
			p.pass(time.Hour)
			p.held(1)
			if stable, canary := p.where(imageV1, lost), p.where(imageV2, lost); stable != 2 || canary == 0 || canary == 3 {
				t.Fatalf("%d pods of stable and %d of the canary on a node of two", stable, canary)
			}
			acted := p.moment()
			p.promise = promise{keeps: 2, writes: restoredWithin} // of the canary it may hold more than its share
			lose(t, lost)
			p.eventually("the pods are on the other node", func(context.Context) bool {
				return p.where(imageV1, node) == 4 && p.where(imageV2, node) == 3
			})
			if deleted {
				p.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}})
			}
			p.held(1)
			p.whole()
			p.checkStayed(acted)
			p.pass(time.Hour)
			p.waitReady()
			p.checkPods(imageV2, 4)
			p.checkGivenBack()
		})
	}
}
