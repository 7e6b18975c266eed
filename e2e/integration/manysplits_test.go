// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

var manySplits = flag.String("splits", "4,24", "numbers of splits of one namespace, from which TestTheWorkGrowsWithTheNumberOfSplits takes its measure")

// mostPasses is how many passes a split may take until it is in effect. Where each
// event of a Service leads to a pass over all splits, it is several for each of them.
const mostPasses = 30

// A split leads to no more passes when its namespace has many others.
func TestTheWorkGrowsWithTheNumberOfSplits(t *testing.T) {
	t.Parallel()
	for text := range strings.SplitSeq(*manySplits, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-splits: %v", err)
		}
		t.Run(text, func(t *testing.T) {
			if passes := measureSplits(t, n); passes > mostPasses {
				t.Errorf("each of %d splits takes %.1f passes until it is in effect", n, passes)
			}
		})
	}
}

// measureSplits is how many passes a split takes from its creation until nothing
// happens any more.
func measureSplits(t *testing.T, n int) float64 {
	t.Helper()
	s := newScene(t)
	s.reader = cached
	s.startOperator(newMeasurements())
	s.serveProxies()
	for i := range n {
		name := fmt.Sprintf("app-%03d", i)
		for suffix, version := range map[string]string{"": "", "-v1": "v1", "-v2": "v2"} {
			o := service(name + suffix)
			o.Spec.Selector = map[string]string{"app": name}
			if version != "" {
				o.Spec.Selector["version"] = version
			}
			s.create(o)
		}
	}
	created := s.untilQuiet(n, func() {
		for i := range n {
			name := fmt.Sprintf("app-%03d", i)
			s.create(split(name, name, splitv1.Backend{Service: name + "-v1", Weight: 9}, splitv1.Backend{Service: name + "-v2", Weight: 1}))
		}
	})
	changed := s.untilQuiet(n, func() {
		for i := range n {
			s.setBackends(fmt.Sprintf("app-%03d", i), splitv1.Backend{Service: fmt.Sprintf("app-%03d-v1", i), Weight: 1})
		}
	})
	touched := s.untilQuiet(n, func() {
		for i := range n {
			s.annotate(fmt.Sprintf("app-%03d-v2", i), "team", "shop")
		}
	})
	each := func(passes float64) float64 { return passes / float64(n) }
	t.Logf("%d splits, passes for each: %.1f until it is in effect, %.1f until a change of its weights is, %.1f for a change of another Service",
		n, each(created), each(changed), each(touched))
	if touched > 0 {
		t.Errorf("%.0f passes for Services that concern no split", touched)
	}
	return each(created)
}

// untilQuiet are the passes that an act led to until every split is in effect and nothing
// happens for a while.
func (s *scene) untilQuiet(n int, act func()) float64 {
	s.Helper()
	const quiet = 3 * time.Second
	begun, before := time.Now(), passes(s.T)
	act()
	at, count := time.Now(), passes(s.T)
	for time.Since(at) < quiet || s.inEffectNow() < n {
		if now := passes(s.T); now != count {
			at, count = time.Now(), now
		}
		if time.Since(begun) > 10*time.Minute {
			s.Fatalf("%d of %d splits are in effect", s.inEffectNow(), n)
		}
		select {
		case <-s.Context().Done():
			s.Fatal(s.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return count - before
}

// passes are those of the controller of TrafficSplits in this process.
func passes(t *testing.T) (n float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "trafficsplit" {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func (s *scene) inEffectNow() (n int) {
	s.Helper()
	list := &splitv1.TrafficSplitList{}
	if err := s.reader.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		c := meta.FindStatusCondition(list.Items[i].Status.Conditions, splitv1.ConditionProgrammed)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == list.Items[i].Generation {
			n++
		}
	}
	return n
}
