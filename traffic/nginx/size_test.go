// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/traffic"
)

func TestHowManyProxiesASplitNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		load        Load
		least, most int32
		want        int32
	}{
		"what the operator gives to each":                  {Load{}, 2, 10, 2},
		"two pods of the app need no third proxy":          {Load{Endpoints: 2, Nodes: Nodes{Count: 1}}, 2, 10, 2},
		"a third where three nodes are":                    {Load{Endpoints: 2, Nodes: Nodes{Count: 3}}, 2, 10, 3},
		"no more than three for the sake of the nodes":     {Load{Nodes: Nodes{Count: 200}}, 2, 10, 3},
		"one for ten endpoints":                            {Load{Endpoints: 41}, 2, 10, 5},
		"no more than the operator lets a split have":      {Load{Endpoints: 5000}, 2, 10, 10},
		"proxies that are half busy are enough":            {Load{Busy: []int32{50, 50}}, 2, 10, 2},
		"two that are busy need as many beside them":       {Load{Busy: []int32{100, 100}}, 2, 10, 4},
		"of which all may be idle":                         {Load{Busy: []int32{25, 25, 25, 25}, Sized: 4}, 2, 10, 4},
		"a proxy that was not read counts for nothing":     {Load{Busy: []int32{75, 0}}, 2, 10, 2},
		"the largest need decides":                         {Load{Endpoints: 41, Busy: []int32{75, 100, 100}}, 2, 10, 6},
		"never fewer until the split ends":                 {Load{Endpoints: 1, Sized: 7}, 2, 10, 7},
		"but when the operator allows fewer":               {Load{Sized: 7}, 2, 4, 4},
		"one proxy where the operator wants one":           {Load{}, 1, 1, 1},
		"the least holds where the most is below by error": {Load{}, 5, 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sizeOf(test.load, test.least, test.most); got != test.want {
				t.Errorf("%d proxies, want %d", got, test.want)
			}
		})
	}
}

func TestHowProxiesAreSpread(t *testing.T) {
	three := Nodes{Count: 3, Zones: 3, FewestInZone: 1}
	six := Nodes{Count: 6, Zones: 3, FewestInZone: 2}
	for name, test := range map[string]struct {
		nodes    Nodes
		size     int32
		live     *Spread
		unplaced bool
		want     Spread
	}{
		"nothing is known of the nodes":             {Nodes{}, 2, nil, false, Spread{}},
		"a single node":                             {Nodes{Count: 1}, 1, nil, false, Spread{}},
		"a node for each proxy":                     {three, 3, nil, false, Spread{Nodes: true}},
		"fewer nodes than proxies":                  {three, 4, nil, false, Spread{}},
		"zones with a node to spare":                {six, 3, nil, false, Spread{Nodes: true, Zones: true}},
		"a single zone":                             {Nodes{Count: 6, Zones: 1, FewestInZone: 6}, 3, nil, false, Spread{Nodes: true}},
		"more nodes change nothing that runs":       {six, 3, &Spread{}, false, Spread{}},
		"nor do fewer":                              {Nodes{Count: 1}, 3, &Spread{Nodes: true}, false, Spread{Nodes: true}},
		"a proxy that finds no place goes anywhere": {six, 3, &Spread{Nodes: true, Zones: true}, true, Spread{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spreadOf(test.nodes, test.size, test.live, test.unplaced); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestNodesThatTakeProxies(t *testing.T) {
	node := func(zone string, more ...string) map[string]string {
		labels := map[string]string{corev1.LabelTopologyZone: zone}
		for _, m := range more {
			labels[m] = ""
		}
		return labels
	}
	control := node("a", labelControlPlane)
	for name, test := range map[string]struct {
		nodes    []map[string]string
		selector map[string]string
		want     Nodes
	}{
		"none":                           {nil, nil, Nodes{}},
		"the control plane alone":        {[]map[string]string{control}, nil, Nodes{Count: 1, Zones: 1, FewestInZone: 1}},
		"workers beside a control plane": {[]map[string]string{control, node("a"), node("a"), node("b")}, nil, Nodes{Count: 3, Zones: 2, FewestInZone: 1}},
		"without zones":                  {[]map[string]string{{}, {}}, nil, Nodes{Count: 2}},
		"only those that are selected":   {[]map[string]string{node("a"), node("a", "edge"), node("b", "edge")}, map[string]string{"edge": ""}, Nodes{Count: 2, Zones: 2, FewestInZone: 1}},
		"none is selected":               {[]map[string]string{node("a")}, map[string]string{"edge": ""}, Nodes{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nodesOf(test.nodes, test.selector); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func liveDeployment(t *testing.T, c client.Client) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "serin-proxy-web"}, d))
	return d
}

// applyOutdated has the router write what is outdated, and fails when nothing is.
func applyOutdated(t *testing.T, r *Router, target traffic.Target, kind string) {
	t.Helper()
	o := conditions(t, r, target)[kind]
	if o.Condition != traffic.ObjectOutdated {
		t.Fatalf("%s is %s", kind, o.Condition)
	}
	must(t, r.Apply(t.Context(), target, o))
	if o := conditions(t, r, target)[kind]; o.Condition != traffic.ObjectCurrent {
		t.Fatalf("%s is %s after it was written", kind, o.Condition)
	}
}

func TestProxiesGrowWithTheEndpointsAndSpreadOverTheNodesUntilOneFindsNoPlace(t *testing.T) {
	target := shopTarget()
	r, api := testRouter(t, interceptor.Funcs{})
	for i := range 6 {
		must(t, api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n" + strconv.Itoa(i), Labels: map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))},
		}}))
	}
	for _, o := range conditions(t, r, target) {
		must(t, r.Apply(t.Context(), target, o))
	}
	d := liveDeployment(t, api)
	if got := *liveSpread(d); *d.Spec.Replicas != 3 || !got.Nodes || !got.Zones {
		t.Fatalf("%d proxies, spread %+v, want 3 and strictly", *d.Spec.Replicas, got)
	}
	target.Endpoints = 45
	applyOutdated(t, r, target, "Deployment")
	target.Endpoints = 1
	if o := conditions(t, r, target)["Deployment"]; o.Condition != traffic.ObjectCurrent {
		t.Errorf("with fewer endpoints the proxies are %s", o.Condition)
	}
	if d = liveDeployment(t, api); *d.Spec.Replicas != 5 {
		t.Errorf("%d proxies for 45 endpoints, want 5", *d.Spec.Replicas)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "p", Labels: map[string]string{traffic.LabelProxy: "web"}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
	must(t, api.Create(t.Context(), pod))
	applyOutdated(t, r, target, "Deployment")
	must(t, api.Delete(t.Context(), pod))
	if o, got := conditions(t, r, target)["Deployment"], *liveSpread(liveDeployment(t, api)); o.Condition != traffic.ObjectCurrent || got.Nodes || got.Zones {
		t.Errorf("%s with the spread %+v, want it to stay a preference", o.Condition, got)
	}
}

func TestNodesAreNotReadWithoutTheRight(t *testing.T) {
	r, api := testRouter(t, interceptor.Funcs{})
	must(t, api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	if got, err := r.nodes(t.Context(), nil); err != nil || got.Count != 1 {
		t.Errorf("%+v %v, want the node", got, err)
	}
	r.options.WithoutNodes = true
	if got, err := r.nodes(t.Context(), nil); err != nil || got != (Nodes{}) {
		t.Errorf("%+v %v, want nothing", got, err)
	}
}
