// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// A release on three nodes has a proxy on each, so that the loss of a node takes a third of
// them, and the real HorizontalPodAutoscaler of these proxies neither has fewer than that nor
// lasts longer than they do.
func TestProxiesAreOnEachOfThreeNodesAndHaveAnAutoscaler(t *testing.T) {
	t.Parallel()
	pool := newScene(t).namespace
	startNodes(t, pool, pool+"-b", pool+"-c")
	onThem := func(o *nginx.Options) {
		o.WithoutNodes, o.Autoscaling = false, &nginx.Autoscaling{IfPossible: true}
		o.Pods.NodeSelector = map[string]splitv1.LabelValue{fakenode.PoolLabel: splitv1.LabelValue(pool)}
	}
	p := begin(t, func(c *cast) { c.sight = append(c.sight, func(see *sight) { see.proxies = onThem }) })
	p.release()
	p.pass(time.Hour)
	p.held(1)
	nodes := map[string]bool{}
	for _, proxy := range p.proxies() {
		nodes[proxy.Spec.NodeName] = true
	}
	if len(p.proxies()) != 3 || len(nodes) != 3 {
		t.Errorf("%d proxies are on %v, want one on each of three nodes", len(p.proxies()), nodes)
	}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: traffic.ProxyName("website")}, scaler); err != nil {
		t.Fatal(err)
	}
	if scaler.Spec.MinReplicas == nil || *scaler.Spec.MinReplicas != 3 || scaler.Spec.MaxReplicas != 10 {
		t.Errorf("the autoscaler's bounds: %+v", scaler.Spec)
	}
	p.pass(time.Hour)
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
}
