// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// splitTarget is the Service that the split cuts over.
const splitTarget = "http://" + siteName

// TestTrafficSplit has a split that a user wrote cut a Service over under a constant load,
// changes its weights while parts of the proxies crash, and one stops as the leader is killed, and has it restore the Service. No
// request, probe, long answer or held connection is lost, each weight is the share that users
// see, and nothing is left over.
func TestTrafficSplit(t *testing.T) {
	play(t, func(a *attempt) { playSplit(a, "serin-split", "") })
}

// playSplit is the scenario, with a loss that is planted, or "".
func playSplit(a *attempt, namespace, planted string) {
	s := newSite(a, namespace, "split")
	s.planted = planted
	s.startSplit()
	s.measure("before the split", map[string]float64{"v1": 1})
	s.begin()

	s.cutOver()
	s.measure("weight 50", split(50))
	s.changeWeights()
	s.restore()

	s.requireRestored()
	s.awaitConnections()
	s.measure("after the split", map[string]float64{"v1": 1})
	s.plantLeftover()
	s.requireAsBefore(true)
	s.endLoad()
	s.judge()
}

// startSplit makes the website of two versions and the load, without the split.
func (s *site) startSplit() {
	s.t.Helper()
	s.applyOwn("website.yaml")
	s.waitAvailable("website-v1", "website-v2")
	s.record.PodsStay = true
	s.startLoad(splitTarget, siteName)
}

// cutOver makes the split and returns when it is programmed and every connection has followed.
func (s *site) cutOver() {
	s.t.Helper()
	s.applyOwn("split.yaml")
	s.plantLoss("the cut-over")
	s.awaitSplit(1)
	s.awaitProxies()
}

// changeWeights goes through all weights while parts of the proxies crash.
func (s *site) changeWeights() {
	s.t.Helper()
	var took []time.Duration
	for i, weight := range sizes().weights {
		if i%10 == 1 {
			s.crash(siteName, "serin-proxy")
		}
		if i%10 == 3 {
			s.crash(siteName, "nginx: master")
		}
		if i%10 == 2 {
			s.stopProxyWithoutLeader(siteName)
		}
		took = append(took, s.setWeight(weight))
		s.measure(fmt.Sprintf("weight %d", weight), split(weight), func() { s.plantVersion(weight) })
	}
	slices.Sort(took)
	s.t.Logf("from the write of a weight until every proxy has it, as the status says: median %s, slowest %s", took[len(took)/2], took[len(took)-1])
}

// stopProxyWithoutLeader kills the manager that leads and has a proxy stop at once: the other
// manager, which waits for the lease, takes it out of the Service's endpoints.
func (s *site) stopProxyWithoutLeader(split string) {
	s.t.Helper()
	s.killLeader()
	proxies := s.pods(client.MatchingLabels{traffic.LabelProxy: split})
	s.t.Log("stop", proxies[0].Name)
	if err := s.api.Delete(s.t.Context(), &proxies[0]); err != nil {
		s.t.Fatal(err)
	}
}

// restore deletes the split and returns when it is gone.
func (s *site) restore() {
	s.t.Helper()
	s.kubectl("delete", "trafficsplit", siteName, "--wait=false")
	s.plantLoss("the restoration")
	s.kubectl("delete", "trafficsplit", siteName, "--ignore-not-found", "--timeout", stateLimit.String())
}

// split is the shares of the versions when v2 has a weight.
func split(weight int32) map[string]float64 {
	share := float64(weight) / 100
	return map[string]float64{"v1": 1 - share, "v2": share}
}

// setWeight changes the weights and reports how soon they were programmed.
func (s *site) setWeight(weight int32) time.Duration {
	s.t.Helper()
	split := s.trafficSplit()
	split.Spec.Backends[0].Weight, split.Spec.Backends[1].Weight = 100-weight, weight
	begun := time.Now()
	if err := s.api.Update(s.t.Context(), split); err != nil {
		s.t.Fatal(err)
	}
	s.awaitSplit(split.Generation)
	return time.Since(begun)
}

// requireRestored checks that the Service is what its users wrote.
func (s *site) requireRestored() {
	s.t.Helper()
	root := &corev1.Service{}
	s.get(siteName, root)
	for key := range root.Annotations {
		if strings.HasPrefix(key, "serin.dev/") {
			s.t.Errorf("the Service still has the annotation %s", key)
		}
	}
	if diff := cmp.Diff(map[string]string{"app": siteName, "public": "true"}, root.Spec.Selector); diff != "" {
		s.t.Errorf("the Service does not select what its users wrote (-written +now):\n%s", diff)
	}
}

func (s *site) trafficSplit() *splitv1.TrafficSplit {
	s.t.Helper()
	split := &splitv1.TrafficSplit{}
	s.get(siteName, split)
	return split
}

// awaitSplit returns when a generation of the split is programmed.
func (s *site) awaitSplit(generation int64) {
	s.t.Helper()
	var said string
	err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, stateLimit, true, func(context.Context) (bool, error) {
		c := apimeta.FindStatusCondition(s.trafficSplit().Status.Conditions, splitv1.ConditionProgrammed)
		if c == nil {
			return false, nil
		}
		said = c.Message
		return c.Status == metav1.ConditionTrue && c.ObservedGeneration >= generation, nil
	})
	if err != nil {
		s.t.Fatalf("generation %d of the split is not programmed: %v; it says: %s", generation, err, said)
	}
}
