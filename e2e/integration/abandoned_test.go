// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// TestProxiesThatLostTheirDeploymentStopWithTheirSplit, which ends then, so that the release goes on.
// Nothing but Serin stops them: as after a restore, their ReplicaSet has no owner.
func TestProxiesThatLostTheirDeploymentStopWithTheirSplit(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.operator.stop(t)
	lost := p.proxySets()
	if len(lost) != 1 {
		t.Fatalf("the proxies have %d ReplicaSets", len(lost))
	}
	if err := admin.Delete(t.Context(), &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "website"}}); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "serin-proxy-website"}}
	if err := admin.Delete(t.Context(), deployment, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	p.eventually("the ReplicaSet of the proxies has no owner", func(context.Context) bool {
		sets := p.proxySets()
		return len(sets) == 1 && metav1.GetControllerOf(&sets[0]) == nil
	})
	p.operator = p.startOperator(p.time)
	p.eventually("the ReplicaSet of the proxies is deleted", func(context.Context) bool {
		sets := p.proxySets()
		return len(sets) == 0 || sets[0].UID != lost[0].UID
	})
	p.held(0)
}

// proxySets are the ReplicaSets of the proxies.
func (p *stage) proxySets() []appsv1.ReplicaSet {
	p.Helper()
	var list appsv1.ReplicaSetList
	if err := admin.List(p.Context(), &list, client.InNamespace(p.namespace), client.HasLabels{traffic.LabelProxy}); err != nil {
		p.Fatal(err)
	}
	return list.Items
}
