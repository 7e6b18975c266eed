// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
)

// scenarios are whole lives of a split. Each is told with the controller's actions
// in testdata, and told again with the controller killed before each of its writes.
var scenarios = map[string]func(w *world){
	wholeLife: func(w *world) {
		comeIntoEffect(w)
		w.step("the weights are changed", func() { w.weights(50, 50) })
		w.step("one proxy is quicker than the other", func() { w.confirm("serin-proxy-web-0") })
		w.step("the other follows", func() { w.confirm("serin-proxy-web-1") })
		leave(w)
	},
	"Git resets the selector while the split is live": func(w *world) {
		w.goLive()
		w.step("the key is removed from the selector", func() {
			s := w.service("web")
			delete(s.Spec.Selector, traffic.LabelProxy)
			w.must(w.api.Update(w.ctx(), s))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
	},
	"a proxy is lost and replaced": func(w *world) {
		w.goLive()
		w.step("a proxy's pod is gone", func() {
			for _, p := range w.proxies()[:1] {
				p.Finalizers = nil
				w.must(w.api.Update(w.ctx(), &p))
				w.must(w.api.Delete(w.ctx(), &p))
			}
			w.endpoints()
		})
		w.step("its replacement is ready before it has reported", func() { w.deploy(); w.ready(); w.endpoints() })
		w.step("it reports", func() { w.confirm() })
	},
	"a proxy refuses the new configuration": func(w *world) {
		w.goLive()
		w.step("the weights are changed", func() { w.weights(50, 50) })
		w.step("a proxy says why it does not follow", func() {
			split := w.split()
			split.Generation--
			w.report("serin-proxy-web-0", split.Generation, "nginx: emerg")
			w.confirm("serin-proxy-web-1")
		})
		w.step("it follows", func() { w.confirm("serin-proxy-web-0") })
	},
	"an invalid edit leaves the traffic alone": func(w *world) {
		w.goLive()
		w.step("the split names its own root", func() {
			w.editSplit(func(s *splitv1.TrafficSplit) { s.Spec.Backends[1].Service = "web" })
		})
		w.step("the edit is taken back", func() {
			w.editSplit(func(s *splitv1.TrafficSplit) { s.Spec.Backends[1].Service = "web-canary" })
		})
		w.step("the proxies follow", func() { w.confirm() })
	},
	"the split is deleted while no pod of its own could serve the root Service": func(w *world) {
		w.goLive()
		w.step("the backends become Services of other pods", func() {
			for version, name := range map[string]string{"1": "web-stable", "2": "web-canary"} {
				s := w.service(name)
				s.Spec.Selector = map[string]string{"app": "web2", "version": version}
				w.must(w.api.Update(w.ctx(), s))
				w.create(makePod("other-"+version, s.Spec.Selector))
			}
			for _, name := range []string{"app-1", "app-2"} {
				w.must(w.api.Delete(w.ctx(), makePod(name, nil)))
			}
			w.endpoints()
		})
		w.step("the split is deleted", func() { w.must(w.api.Delete(w.ctx(), w.split())) })
		w.step("a pod of the root Service's is ready", func() { w.create(makePod("app-3", map[string]string{"app": "web"})) })
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the proxies stop", func() { w.deploy() })
		w.step("the proxies are gone", func() { w.stopped() })
	},
	"Git changes what the root Service selects": func(w *world) {
		w.goLive()
		w.step("the Service and the pods get another label", func() {
			s := w.service("web")
			s.Spec.Selector["app"] = "web2"
			w.must(w.api.Update(w.ctx(), s))
			w.create(makePod("other-1", map[string]string{"app": "web2", "version": "1"}))
			w.endpoints()
		})
	},
	"a split is limited to requests that match": func(w *world) {
		w.goLive()
		w.step("the split refers to a group that does not exist", func() {
			w.editSplit(func(s *splitv1.TrafficSplit) {
				splitv1.SetRouting(s, splitv1.Routing{DefaultBackend: "web-stable"})
				s.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "beta"}}
				s.Spec.Backends[0].Weight, s.Spec.Backends[1].Weight = 0, 100
			})
		})
		w.step("the proxies follow", func() { w.confirm() })
		w.step("the group is made, which is no new generation", func() { w.create(makeGroup("beta", "1")) })
		w.step("one proxy sees it", func() { w.confirm("serin-proxy-web-0") })
		w.step("the other does", func() { w.confirm() })
		w.step("the group is changed to what no proxy can match", func() { w.editGroup("(a+)+") })
		w.step("the group is put right", func() { w.editGroup("2") })
		w.step("the proxies follow again", func() { w.confirm() })
	},
	"requests are mirrored": func(w *world) {
		w.goLive()
		annotate := func(value string) {
			split := w.split()
			split.Annotations = map[string]string{splitv1.AnnotationRouting: value}
			w.must(w.api.Update(w.ctx(), split))
		}
		w.step("the annotation is set, which is no new generation", func() { annotate("mirror: {service: web-canary, percent: 10}") })
		w.step("one proxy follows", func() { w.confirm("serin-proxy-web-0") })
		w.step("the other follows", func() { w.confirm() })
		w.step("the percentage is changed to one that is none", func() { annotate("mirror: {service: web-canary, percent: 1000}") })
		w.step("the annotation is removed", func() {
			split := w.split()
			split.Annotations = nil
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the proxies follow at last", func() { w.confirm() })
	},
	"a port gets weights of its own": func(w *world) {
		w.goLive()
		annotate := func(value string) {
			split := w.split()
			split.Annotations = map[string]string{splitv1.AnnotationRouting: "ports: " + value}
			w.must(w.api.Update(w.ctx(), split))
		}
		w.step("the annotation is set, which is no new generation", func() { annotate(`{"80/TCP": {"weights": {"web-stable": 3, "web-canary": 1}}}`) })
		w.step("one proxy follows", func() { w.confirm("serin-proxy-web-0") })
		w.step("the other follows", func() { w.confirm() })
		w.step("the weights are changed", func() { annotate(`{"80/TCP": {"weights": {"web-stable": 1, "web-canary": 3}}}`) })
		w.step("the proxies follow again", func() { w.confirm() })
		w.step("the annotation names a port that there is not", func() { annotate(`{"81/TCP": {"weights": {"web-stable": 1}}}`) })
		w.step("the annotation is removed", func() {
			split := w.split()
			split.Annotations = nil
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the proxies follow at last", func() { w.confirm() })
	},
	"a Service of UDP keeps its pods for a while": func(w *world) {
		w.step("a split is created", func() {
			w.create(shop()...)
			for _, name := range []string{"web", "web-stable", "web-canary"} {
				s := w.service(name)
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(53), Protocol: corev1.ProtocolUDP})
				w.must(w.api.Update(w.ctx(), s))
			}
			w.endpoints()
			w.create(makeSplit(100, 0))
		})
		w.step("its proxies start", func() { w.deploy() })
		w.step("they are ready and confirm", func() { w.ready(); w.confirm() })
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("five seconds later", func() { w.clock.Step(5 * time.Second) })
		w.step("its pods have answered", func() { w.clock.Step(5 * time.Second) })
		leave(w)
	},
	"a split of UDP is deleted while its pods drain": func(w *world) {
		w.create(shop()...)
		for _, name := range []string{"web", "web-stable", "web-canary"} {
			s := w.service(name)
			s.Spec.Ports[0].Protocol = corev1.ProtocolUDP
			w.must(w.api.Update(w.ctx(), s))
		}
		w.endpoints()
		w.create(makeSplit(100, 0))
		w.settle()
		w.deploy()
		w.ready()
		w.step("its proxies confirm", func() { w.confirm() })
		leave(w)
	},
	"every proxy is lost": func(w *world) {
		w.goLive()
		w.step("no proxy is ready", func() {
			for _, p := range w.proxies() {
				p.Status.Conditions = nil
				w.must(w.api.Status().Update(w.ctx(), &p))
			}
			w.endpoints()
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the proxies are back", func() { w.ready() })
		w.step("the endpoints follow again", func() { w.endpoints() })
		w.step("its own pods are no endpoints any more", func() { w.endpoints() })
	},
	"another actor deletes the EndpointSlice of the proxies": func(w *world) {
		w.goLive()
		w.step("the EndpointSlice is deleted", func() {
			w.must(w.api.Delete(w.ctx(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-proxies-ipv4"}}))
		})
	},
	"a backup brings the EndpointSlice of the proxies without its owner": func(w *world) {
		w.goLive()
		w.step("the EndpointSlice is restored", func() {
			slice := &discoveryv1.EndpointSlice{}
			w.must(w.api.Get(w.ctx(), types.NamespacedName{Namespace: namespace, Name: "web-proxies-ipv4"}, slice))
			slice.OwnerReferences = nil
			w.must(w.api.Update(w.ctx(), slice))
		})
	},
	"proxies of the version before carry the labels of the app": func(w *world) {
		w.goLive()
		w.step("the operator is upgraded", func() {
			for _, p := range w.proxies() {
				p.Labels["app"] = "web"
				w.must(w.api.Update(w.ctx(), &p))
			}
			w.must(w.api.Delete(w.ctx(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-proxies-ipv4"}}))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		leave(w)
	},
	"the root Service is deleted with the split": func(w *world) {
		w.goLive()
		w.step("both are deleted", func() {
			w.must(w.api.Delete(w.ctx(), w.service("web")))
			w.must(w.api.Delete(w.ctx(), w.split()))
		})
		w.step("the proxies stop", func() { w.deploy() })
		w.step("the proxies are gone", func() { w.stopped() })
	},
	"the router is changed to smi": func(w *world) {
		w.goLive()
		w.step("the annotation names smi", func() {
			split := w.split()
			splitv1.SetRouting(split, splitv1.Routing{Router: "smi"})
			w.must(w.api.Update(w.ctx(), split))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the proxies stop", func() { w.deploy() })
		w.step("the proxies are gone", func() { w.stopped() })
	},
	"the finalizer is removed by hand": func(w *world) {
		w.goLive()
		w.say("# (the finalizer is removed by hand)")
		w.step("the split is gone at once", func() {
			split := w.split()
			split.Finalizers = nil
			w.must(w.api.Update(w.ctx(), split))
			w.must(w.api.Delete(w.ctx(), split))
		})
		w.step("the endpoints follow", func() { w.endpoints() })
		w.step("the proxies stop", func() { w.deploy() })
		w.step("the proxies are gone", func() { w.stopped() })
	},
}

// wholeLife is told from the beginning to the end. The others begin when the
// split is live.
const wholeLife = "a split goes live, moves weights and is deleted"

// goLive makes the split live without logging how.
func (w *world) goLive() {
	w.t.Helper()
	kill := w.killAfter
	w.killAfter = -1
	w.create(shop()...)
	w.create(makeSplit(100, 0))
	w.settle()
	w.deploy()
	w.ready()
	w.confirm()
	w.settle()
	w.endpoints()
	w.settle()
	w.killAfter, w.writes, w.log = kill, 0, nil
	w.say("# a split is live")
}

func comeIntoEffect(w *world) {
	w.step("a split is created", func() {
		w.create(shop()...)
		w.endpoints()
		w.create(makeSplit(100, 0))
	})
	w.step("its proxies start", func() { w.deploy() })
	w.step("one is ready and confirms", func() { w.ready("serin-proxy-web-0"); w.confirm("serin-proxy-web-0") })
	w.step("the other is ready", func() { w.ready() })
	w.step("the other confirms", func() { w.confirm() })
	w.step("the endpoints follow", func() { w.endpoints() })
}

func leave(w *world) {
	w.step("the split is deleted", func() { w.must(w.api.Delete(w.ctx(), w.split())) })
	w.step("the endpoints follow", func() { w.endpoints() })
	w.step("the proxies stop", func() { w.deploy() })
	w.step("the proxies are gone", func() { w.stopped() })
}

// editGroup changes what a header of the group's requests has to be.
func (w *world) editGroup(regex string) {
	w.t.Helper()
	group := &specsv1.HTTPRouteGroup{}
	w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "beta"}, group))
	group.Spec = makeGroup("beta", regex).Spec
	w.must(w.api.Update(w.ctx(), group))
}

func (w *world) weights(stable, canary int32) {
	w.editSplit(func(s *splitv1.TrafficSplit) { s.Spec.Backends[0].Weight, s.Spec.Backends[1].Weight = stable, canary })
}

func TestScenarios(t *testing.T) {
	all := maps.Clone(scenarios)
	maps.Copy(all, routeScenarios)
	maps.Copy(all, policyScenarios)
	for name, scenario := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			scenario(w)
			golden.Check(t, filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".txt"), strings.Join(w.log, "\n")+"\n")
			quiet(t, w)
			end := w.summary()
			for kill := range w.writes {
				t.Run(fmt.Sprintf("killed before write %d", kill), func(t *testing.T) {
					w := newWorld(t)
					w.killAfter = kill
					scenario(w)
					if diff := cmp.Diff(end, w.summary()); diff != "" {
						t.Errorf("it ends another way (-undisturbed +killed):\n%s", diff)
					}
				})
			}
		})
	}
}

// quiet checks that at rest a pass costs nothing. Where users have NetworkPolicies, and of a split
// without proxies, the first one after a restart looks at the app's pods.
func quiet(t *testing.T, w *world) {
	t.Helper()
	writes, reads := w.writes, w.liveReads
	if len(w.networkPolicies()) > len(w.madePolicies()) || len(w.proxies()) == 0 {
		reads++
	}
	r := w.controller()
	for range 3 {
		_, err := w.reconcile(r)
		w.must(err)
	}
	if w.writes != writes || w.liveReads > reads {
		t.Errorf("at rest, 3 passes made %d writes and %d reads past the cache", w.writes-writes, w.liveReads-reads)
	}
}
