// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

func twoPorts(http, dns int32) []helmrelease.PortWeight {
	return []helmrelease.PortWeight{{Port: "53/UDP", Weight: dns}, {Port: "80/TCP", Weight: http}}
}

// observationOf is an observation of the cluster with what was changed in it.
func observationOf(t *testing.T, more ...func(*cluster)) observation {
	t.Helper()
	c := newCluster(t)
	for _, change := range more {
		change(c)
	}
	s, err := c.r.observe(t.Context(), c.canaryRelease())
	c.must(err)
	return s
}

func TestASplitSaysTheWeightsThatWereWritten(t *testing.T) {
	s := observationOf(t)
	root := s.root("web")
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for _, weights := range [][]helmrelease.PortWeight{
		twoPorts(0, 0), twoPorts(1, 1), twoPorts(10, 0), twoPorts(0, 10), twoPorts(100, 0), twoPorts(100, 100), twoPorts(33, 34), twoPorts(50, 50),
	} {
		s.setSplit(split, root, weights, "web")
		if diff := cmp.Diff(weights, s.requested(split, root)); diff != "" {
			t.Errorf("it is read as (-want +got):\n%s", diff)
		}
		stays := split.DeepCopy()
		s.setSplit(stays, root, weights, "web")
		if diff := cmp.Diff(split, stays); diff != "" {
			t.Errorf("writing it again changes it:\n%s", diff)
		}
	}
}

func TestWeightsOfPortsThatTheRouterHasNotSeenAreNotProgrammed(t *testing.T) {
	s := observationOf(t)
	root := s.root("web")
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	s.setSplit(split, root, twoPorts(10, 5), "web")
	programmed := func() bool {
		s.splits = map[string]*splitv1.TrafficSplit{"web": split}
		return s.observeSplit("web", root).Programmed
	}
	for _, weights := range [][]helmrelease.PortWeight{twoPorts(10, 6), twoPorts(10, 10), twoPorts(10, 0)} {
		split.Status.ObservedRouting = splitv1.RoutingDigest(split)
		split.Status.Conditions = []metav1.Condition{{Type: splitv1.ConditionProgrammed, Status: metav1.ConditionTrue}}
		if !programmed() {
			t.Errorf("before %v nothing is programmed", weights)
		}
		was := split.Spec.DeepCopy()
		s.setSplit(split, root, weights, "web")
		if !cmp.Equal(*was, split.Spec) || programmed() {
			t.Errorf("with %v, which changes the annotation only, the spec becomes %v, programmed %v", weights, split.Spec, programmed())
		}
	}
}

func TestAnEditOfASplitIsNotTakenForWeights(t *testing.T) {
	s := observationOf(t)
	root := s.root("web")
	for name, edit := range map[string]func(*splitv1.TrafficSplit){
		"another router": func(ts *splitv1.TrafficSplit) {
			splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Router = "istio" })
		},
		"a mirror": func(ts *splitv1.TrafficSplit) {
			splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary", Percent: 10} })
		},
		"another backend":       func(ts *splitv1.TrafficSplit) { ts.Spec.Backends[1].Service = "mine" },
		"weights that sum to 3": func(ts *splitv1.TrafficSplit) { ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 1, 2 },
		"matches": func(ts *splitv1.TrafficSplit) {
			ts.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "all"}}
		},
		"weights that no one can": func(ts *splitv1.TrafficSplit) { ts.Annotations[splitv1.AnnotationRouting] = "{" },
		"no weights of ports":     func(ts *splitv1.TrafficSplit) { delete(ts.Annotations, splitv1.AnnotationRouting) },
	} {
		t.Run(name, func(t *testing.T) {
			split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			s.setSplit(split, root, twoPorts(10, 20), "web")
			edit(split)
			got := s.requested(split, root)
			if cmp.Equal(got, twoPorts(10, 20)) {
				t.Errorf("it counts as %v", got)
			}
		})
	}
}

func TestProtocolsAndResourcesOfTheSpecAreInTheSplit(t *testing.T) {
	s := observationOf(t)
	s.CanaryRelease.Spec.Resources = &splitv1.ProxyResources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	s.CanaryRelease.Spec.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{
		{Port: 80, Protocol: v1alpha1.CanaryProtocolHTTPS}, {Port: 53, Protocol: v1alpha1.CanaryProtocolUDP},
	}}}
	split := &splitv1.TrafficSplit{}
	s.setSplit(split, s.root("web"), twoPorts(1, 1), "web")
	want := map[string]string{
		splitv1.AnnotationRouting:           `{"router":"nginx","ports":{"53/UDP":{"protocol":"UDP"},"80/TCP":{"protocol":"HTTPS"}},"proxyPods":{"resources":{"limits":{"memory":"1Gi"}}}}`,
		v1alpha1.AnnotationCanaryReleaseUID: "cr", v1alpha1.AnnotationCanaryWorkload: "web",
	}
	if diff := cmp.Diff(want, split.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestAServiceThatCantBeSharedIsNamed(t *testing.T) {
	labels := map[string]string{"app": "web"}
	tests := []struct {
		name string
		add  func(*cluster)
		says string
	}{
		{"it is headless", func(c *cluster) {
			c.must(c.Create(c.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "peers", Namespace: "shop"}, Spec: corev1.ServiceSpec{Selector: labels, ClusterIP: corev1.ClusterIPNone},
			}))
		}, `"peers" is headless, so its clients choose among pods themselves`},
		{"it selects pods of another Deployment", func(c *cluster) {
			c.must(c.Create(c.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: "shop", UID: "w"},
				Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate("worker")},
			}))
		}, "several Deployments (web, worker)"},
		{"it selects pods of something else", func(c *cluster) {
			c.must(c.Create(c.Context(), &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
				Endpoints:  []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "db-0"}}},
			}))
		}, `the pod "db-0"`},
		{"a TrafficSplit has it", func(c *cluster) {
			c.must(c.Create(c.Context(), &splitv1.TrafficSplit{
				ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "shop"}, Spec: splitv1.TrafficSplitSpec{Service: "web"},
			}))
		}, `TrafficSplit "mine"`},
		{"a Rollout has it", func(c *cluster) {
			c.must(c.Create(c.Context(), &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "ours", Namespace: "shop"}, Spec: v1alpha1.RolloutSpec{Service: "web"}}))
		}, `Rollout "ours"`},
		{"the name of a version is taken", func(c *cluster) {
			c.must(c.Create(c.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web-canary", Namespace: "shop"}}))
		}, `"web-canary" does not belong to this CanaryRelease`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			test.add(c)
			c.reconcile()
			if ready := c.ready(); !strings.Contains(ready.Message, test.says) || len(c.writes) != 1 {
				t.Errorf("%q\n%v", ready.Message, c.writes)
			}
		})
	}
}

func TestOnlyARolloutOfSomethingElseTakesAServiceAway(t *testing.T) {
	for name, test := range map[string]struct {
		ref   v1alpha1.WorkloadReference
		taken bool
	}{
		"of this CanaryRelease":    {v1alpha1.WorkloadReference{APIVersion: "serin.dev/v1alpha1", Kind: v1alpha1.KindCanaryRelease, Name: "try"}, false},
		"of another CanaryRelease": {v1alpha1.WorkloadReference{APIVersion: "serin.dev/v1alpha1", Kind: v1alpha1.KindCanaryRelease, Name: "other"}, true},
		"of a Deployment":          {v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: v1alpha1.KindDeployment, Name: "try"}, true},
	} {
		s := observationOf(t, func(c *cluster) {
			ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop"}}
			ro.Spec.Service, ro.Spec.WorkloadRef = "web", test.ref
			c.must(c.Create(c.Context(), ro))
		})
		if got := s.taken("web"); strings.Contains(got, `The Rollout "website" releases versions of the Service "web"`) != test.taken {
			t.Errorf("a Rollout %s: %q", name, got)
		}
	}
}

// Of several obstacles always the same one is reported: a message that changes from look
// to look is written to the status each time.
func TestOfSeveralObstaclesTheSameOneIsReported(t *testing.T) {
	s := observationOf(t, func(*cluster) {})
	var slice discoveryv1.EndpointSlice
	for _, name := range []string{"c", "a", "d", "b"} {
		s.splits[name] = &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: splitv1.TrafficSplitSpec{Service: "web"}}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}})
	}
	s.slices["web"] = []*discoveryv1.EndpointSlice{&slice}
	for range 200 {
		if got := s.taken("web"); !strings.Contains(got, `The TrafficSplit "a"`) {
			t.Fatalf("the split: %s", got)
		}
		if got := s.problem(s.services["web"], []string{"web"}); !strings.Contains(got, `selects the pod "a"`) {
			t.Fatalf("the pod: %s", got)
		}
	}
}

func TestACanaryGetsWhatItsRolloutGivesIt(t *testing.T) {
	c := newCluster(t)
	delegation := v1alpha1.CanaryDelegation{Rollout: "website"}
	c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Delegation = &delegation })
	c.run(12)
	for _, weight := range []int32{0, 40} {
		if weight > 0 {
			delegation.Weight, delegation.By, delegation.ManifestDigest = &weight, delegation.Rollout, c.canaryRelease().Status.ManifestDigest
			c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Delegation = &delegation })
			c.run(5)
		}
		if diff := cmp.Diff(&v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: true}, c.canaryRelease().Status.Delegation); diff != "" {
			t.Errorf("programmed (-want +got):\n%s", diff)
		}
		split := &splitv1.TrafficSplit{}
		c.must(c.Get(t.Context(), key("web"), split))
		if b := split.Spec.Backends; b[1].Weight*100 != weight*(b[0].Weight+b[1].Weight) {
			t.Errorf("weights %+v, want %d %%", b, weight)
		}
	}
	delegation.Transition = v1alpha1.CanaryTransitionAdopted
	c.change(func(s *v1alpha1.CanaryReleaseSpec) { s.Delegation = &delegation })
	c.run(20)
	if d := c.canaryRelease().Status.Decision; d == nil || d.EndedAt == nil || d.Message != `the Rollout "website" has promoted it` {
		t.Errorf("%+v", d)
	}
	c.wantNothingLeft()
}
