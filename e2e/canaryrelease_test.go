// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// canaryPart is one of the Helm releases of the test: what is tried, on which port.
type canaryPart struct {
	release, service string
	port             int32
	protocol         v1alpha1.CanaryProtocol
	path, config     string
	// deployment whose pods change.
	deployment string
	// shown is what `helm get values` has to hold after the adoption.
	shown string
}

var canaryParts = []canaryPart{
	{
		release: "shop", service: "shop-web", port: 80, protocol: v1alpha1.CanaryProtocolHTTP, deployment: "shop-web",
		path: "web", config: "version: v2\n", shown: "web:\n  version: v2\n",
	},
	{
		release: "cache", service: "cache", port: 6379, protocol: v1alpha1.CanaryProtocolTCP, deployment: "cache",
		config: "maxmemory: 16mb\n", shown: "maxmemory: 16mb\n",
	},
	{
		release: "echo", service: "echo", port: 53, protocol: v1alpha1.CanaryProtocolUDP, deployment: "echo",
		config: "version: v2\n", shown: "version: v2\n",
	},
}

// TestCanaryRelease tries other values of three Helm releases, a chart of two sub-charts by
// HTTP, Redis by TCP and an echo server by UDP, under load: once to deprecate them, which
// leaves no trace, and once to adopt them, while parts of a proxy and the operator crash. No
// request, connection or datagram is lost.
func TestCanaryRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-canaries", "canary")
		s.installCharts(canaryParts)
		s.startLoad("http://shop-web", "shop-web", "cache", "echo")
		pingers := s.startPingers()
		s.begin()

		a.Log("create, change the weights, deprecate")
		s.releaseCanaries(v1alpha1.CanaryTransitionDeprecated)
		s.deleteCanaries()
		s.requireAsBefore(true)

		a.Log("create, change the weights, adopt")
		canaries := s.releaseCanaries(v1alpha1.CanaryTransitionAdopted)
		for _, part := range canaryParts {
			s.requireAdopted(part, canaries[part.release])
		}
		s.awaitConnections()
		s.measure("after the adoption", map[string]float64{"v2": 1})
		s.deleteCanaries()
		s.requireAsBefore(false)
		s.addPings(pingers)
		s.endLoad()
		s.judge()
	})
}

// installCharts installs the Helm releases, and what the first one needs as a chart of two
// sub-charts.
func (s *site) installCharts(parts []canaryPart) {
	s.t.Helper()
	s.applyOwn("access.yaml")
	for _, part := range parts {
		s.helm("install", part.release, filepath.Join("testdata", s.folder, "charts", part.release), "--wait", "--timeout", stateLimit.String())
	}
	s.keepChart(parts[0].release)
}

// releaseCanaries makes the canaries, changes their weights, ends them, and returns the names
// of the canaries' pods by the names of the releases. When they are to be adopted, parts of a
// proxy crash meanwhile, and so does the operator.
func (s *site) releaseCanaries(transition v1alpha1.CanaryTransition) map[string][]string {
	s.t.Helper()
	for _, part := range canaryParts {
		if err := s.api.Create(s.t.Context(), part.canary(s.namespace)); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, part := range canaryParts {
		s.awaitCanary(part, v1alpha1.ReasonServing)
	}
	s.awaitProxies()
	for i, weight := range sizes().canaryWeights {
		if transition == v1alpha1.CanaryTransitionAdopted && i < 2 {
			s.crash(canaryParts[0].service, []string{"serin-proxy", "nginx: master"}[i])
		}
		s.setCanaryWeights(weight)
		s.measure(fmt.Sprintf("weight %d, to be %s", weight, transition), split(weight))
	}
	pods := map[string][]string{}
	for _, part := range canaryParts {
		pods[part.release] = s.podsOfCanary(part)
	}
	s.endCanaries(transition)
	for _, part := range canaryParts {
		s.awaitCanary(part, v1alpha1.Reason(transition))
	}
	return pods
}

// setCanaryWeights changes the weights of all canaries and returns when they are programmed.
func (s *site) setCanaryWeights(weight int32) {
	s.t.Helper()
	for _, part := range canaryParts {
		s.editCanary(part, func(spec *v1alpha1.CanaryReleaseSpec) { spec.Services[0].Ports[0].Config.Weight = &weight })
	}
	for _, part := range canaryParts {
		s.requireWeight(part, s.awaitCanary(part, v1alpha1.ReasonServing).Status, weight)
	}
}

// endCanaries asks for the end of all canaries. When that is their adoption, the manager that
// leads is killed: before, or with -soak when Helm is called, which Serin tries again after a
// minute.
func (s *site) endCanaries(transition v1alpha1.CanaryTransition) {
	s.t.Helper()
	adopt := transition == v1alpha1.CanaryTransitionAdopted
	if adopt && !*soak {
		s.killLeader()
	}
	for _, part := range canaryParts {
		s.editCanary(part, func(spec *v1alpha1.CanaryReleaseSpec) { spec.Transition = transition })
	}
	if adopt && *soak {
		s.poll("the beginning of an adoption", func() bool { return slices.ContainsFunc(canaryParts, s.isAdopting) })
		s.killLeader()
	}
}

func (s *site) isAdopting(part canaryPart) bool {
	c := apimeta.FindStatusCondition(s.canaryRelease(part).Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Reason == v1alpha1.ReasonAdopting
}

// canary is the CanaryRelease of the part. It has no weight, which means 1 %.
func (p canaryPart) canary(namespace string) *v1alpha1.CanaryRelease {
	return &v1alpha1.CanaryRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.release},
		Spec: v1alpha1.CanaryReleaseSpec{
			Release: p.release, Version: 1, Path: p.path, Config: p.config,
			Services: []v1alpha1.CanaryService{{Service: p.service, Ports: []v1alpha1.CanaryPort{{Port: p.port, Protocol: p.protocol}}}},
		},
	}
}

func (s *site) canaryRelease(part canaryPart) *v1alpha1.CanaryRelease {
	s.t.Helper()
	cr := &v1alpha1.CanaryRelease{}
	s.get(part.release, cr)
	return cr
}

func (s *site) editCanary(part canaryPart, edit func(*v1alpha1.CanaryReleaseSpec)) {
	s.t.Helper()
	cr := s.canaryRelease(part)
	before := cr.DeepCopy()
	edit(&cr.Spec)
	if err := s.api.Patch(s.t.Context(), cr, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// awaitCanary waits until a canary is as a reason says, and returns it as it was then.
func (s *site) awaitCanary(part canaryPart, reason v1alpha1.Reason) (cr *v1alpha1.CanaryRelease) {
	s.t.Helper()
	var said string
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) {
		cr = s.canaryRelease(part)
		c := apimeta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil {
			return false, nil
		}
		if text := c.Reason + ": " + c.Message; text != said {
			said = text
			s.t.Log(time.Now().UTC().Format(timeOfDay), part.release, said)
		}
		return c.Reason == reason && c.ObservedGeneration == cr.Generation, nil
	})
	if err != nil {
		s.t.Fatalf("wait for %s to be %s: %v; it says: %s", part.release, reason, err, said)
	}
	return cr
}

// requireWeight checks that a status tells the weight that is in effect.
func (s *site) requireWeight(part canaryPart, status v1alpha1.CanaryReleaseStatus, weight int32) {
	s.t.Helper()
	i := slices.IndexFunc(status.Services, func(v v1alpha1.CanaryServiceStatus) bool { return v.Service == part.service })
	if i < 0 || !status.Services[i].Programmed || len(status.Services[i].Ports) != 1 || status.Services[i].Ports[0].Weight != weight {
		s.t.Errorf("the status of %s does not say that %d %% are in effect: %+v", part.release, weight, status.Services)
	}
}

// podsOfCanary are the names of the pods that a canary has, once it has as many as it needs:
// one that is still to be removed is none that can be adopted.
func (s *site) podsOfCanary(part canaryPart) (names []string) {
	s.t.Helper()
	service := &corev1.Service{}
	s.get(part.service+"-canary", service)
	s.poll("the pods that the canary of "+part.release+" needs", func() bool {
		names = s.podNames(client.MatchingLabels(service.Spec.Selector))
		workloads := s.canaryRelease(part).Status.Workloads
		i := slices.IndexFunc(workloads, func(w v1alpha1.CanaryWorkload) bool { return w.Name == part.deployment })
		return i >= 0 && len(names) > 0 && len(names) == int(workloads[i].Replicas)
	})
	return names
}

func (s *site) podNames(labels client.MatchingLabels) (names []string) {
	s.t.Helper()
	for _, pod := range s.pods(labels) {
		if pod.DeletionTimestamp.IsZero() {
			names = append(names, pod.Name)
		}
	}
	return names
}

// requireAdopted checks that Helm has the adoption as a revision like any other, that
// what it says is what runs, and that the canary's pods are the release's. It returns the
// revision: an upgrade in the middle of which the operator was killed is one too, that failed.
func (s *site) requireAdopted(part canaryPart, canaries []string) int32 {
	s.t.Helper()
	revision := s.canaryRelease(part).Status.Release.AdoptedRevision
	service := &corev1.Service{}
	s.get(part.service, service)
	now := s.podNames(client.MatchingLabels(service.Spec.Selector))
	for _, name := range canaries {
		if !slices.Contains(now, name) {
			s.t.Errorf("the pod %s of the canary is not among those of the release: %v", name, now)
		}
	}
	if values := s.helm("get", "values", part.release); !strings.Contains(values, part.shown) {
		s.t.Errorf("helm get values %s: %q, want %q in it", part.release, values, part.shown)
	}
	s.requireRevision(part, revision)
	history := s.helm("history", part.release)
	if rows := strings.Count(history, "\n") - 1; !strings.Contains(history, "superseded") || rows != int(revision) || strings.Count(history, "interrupted") != rows-2 {
		s.t.Errorf("helm history %s: %s", part.release, history)
	}
	s.requireNoDifference(part.release)
	return revision
}

// requireNoDifference asks the API server what would change if Helm's manifest were
// applied to the cluster, and ends the attempt where that is anything.
func (s *site) requireNoDifference(release string) {
	s.t.Helper()
	s.run(s.cluster.Kubectl, s.helm("get", "manifest", release), append(s.connection("--context"), "diff", "--namespace", s.namespace, "-f", "-")...)
}

// keepChart puts the archive of a chart with sub-charts where Serin finds it: Helm's
// records leave sub-charts out.
func (s *site) keepChart(release string) {
	s.t.Helper()
	folder := s.t.TempDir()
	s.helm("package", filepath.Join("testdata", s.folder, "charts", release), "--destination", folder)
	s.kubectl("create", "configmap", "serin-chart-"+release, "--from-file="+folder)
}

func (s *site) deleteCanaries() {
	s.t.Helper()
	for _, part := range canaryParts {
		s.deleteCanary(part)
	}
}

func (s *site) deleteCanary(part canaryPart) {
	s.t.Helper()
	s.kubectl("delete", "canaryrelease", part.release, "--timeout", stateLimit.String())
}

// address of a Service's port, which this machine reaches as pods do.
func (s *site) address(service string, port int32) string {
	s.t.Helper()
	return fmt.Sprintf("%s:%d", s.clusterIP(service), port)
}
