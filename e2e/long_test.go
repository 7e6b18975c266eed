// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// Scenarios whose names begin with TestLong harm the cluster itself, or take minutes. Each is
// played alone, and make test leaves them out.

// TestLongApplyInMidRelease has another tool apply the manifests of a website with force, each
// second during a whole release, as one that keeps a cluster to what is in Git does.
func TestLongApplyInMidRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-apply", "long")
		s.startWebsite("[{weight: 0, canaryReplicas: 1, hold: 15s}, {weight: 10, hold: 20s}, {weight: 50, hold: 20s}]", "replicas: 3")
		shares := &shares{}

		end := s.keepApplying("v2")
		s.canary, s.stable = "v2", "v1"
		s.await("the release of v2", func(ro *v1alpha1.Rollout) bool { return ro.Status.Step != nil })
		s.follow(shares, v1alpha1.ReasonStable)
		s.t.Logf("the manifests were applied %d times", end())

		s.requirePromoted()
		s.addShares(shares, 0, 10, 50)
		s.judge()
	})
}

// TestLongDrainInMidRelease evicts all pods of a website and its proxies in the middle of a
// release, as kubectl drain does, while the budget of the website holds.
func TestLongDrainInMidRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-drain", "long")
		s.startWebsite("[{weight: 50, hold: 1m}]", "replicas: 3")

		s.setImage("v2", "v1")
		s.awaitWeight(50)
		s.drain(client.MatchingLabels{"app": siteName}, client.MatchingLabels{traffic.LabelProxy: siteName})
		s.measure("weight 50 after the drain", split(50))
		s.follow(nil, v1alpha1.ReasonStable)

		s.requirePromoted()
		s.judge()
	})
}

// TestLongProxyPodsInMidRelease has a Rollout say in the middle of a release how its proxies run,
// so that each of them is replaced by another one.
func TestLongProxyPodsInMidRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-proxypods", "long")
		s.startWebsite("[{weight: 20, until: Manual}, {weight: 50, hold: 1m}]", "replicas: 3")

		s.setImage("v2", "v1")
		s.awaitWeight(20)
		s.measure("weight 20 while all proxies are replaced", split(20), s.changeProxies)
		s.decide(v1alpha1.ControlPromote)
		s.awaitWeight(50)
		s.follow(nil, v1alpha1.ReasonStable)

		s.requirePromoted()
		s.judge()
	})
}

// changeProxies gives the proxies of the website other resources and a label.
func (s *site) changeProxies() {
	s.t.Helper()
	s.kubectl("patch", "rollouts.serin.dev", siteName, "--type=merge", "-p",
		`{"spec":{"proxyPods":{"replicas":3,"annotations":{"example.com/cost-centre":"4711"},"resources":{"limits":{"memory":"384Mi"}}}}}`)
	s.awaitProxiesThat("of the cost centre", func(pod corev1.Pod) bool { return pod.Annotations["example.com/cost-centre"] == "4711" })
}

// startWebsite makes the website with a Rollout and the load, and returns when it is stable.
// Empty replicas leave their number to another.
func (s *site) startWebsite(steps, replicas string) {
	s.t.Helper()
	s.applyAsGit("v1", replicas)
	s.waitAvailable(siteName)
	s.startLoad(splitTarget, siteName)
	s.apply("long/rollout.yaml", "${STEPS}", steps)
	s.follow(nil, v1alpha1.ReasonStable)
	s.begin()
}

// applyAsGit applies the manifests of the website as tools do that keep a cluster to what is
// in Git.
func (s *site) applyAsGit(version, replicas string) {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "long", "website.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.NewReplacer("${VERSION}", version, "${REPLICAS}", replicas).Replace(string(content))
	s.run(s.cluster.Kubectl, text, append(s.connection("--context"), "apply", "--namespace", s.namespace,
		"--server-side", "--force-conflicts", "--field-manager", "git", "-f", "-")...)
}

// keepApplying applies the manifests of a version each second, until end, which says how often
// that was.
func (s *site) keepApplying(version string) (end func() int) {
	s.t.Helper()
	stop, done := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		defer func() { done <- n }()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			s.applyAsGit(version, "replicas: 3")
			n++
			select {
			case <-s.t.Context().Done():
				return
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() int {
		close(stop)
		return <-done
	}
}

// awaitWeight returns when the canary's weight is live, and every connection of the load leads to
// the proxies that have it. The TrafficSplit says so of the weight; the Rollout does only where a
// step takes long.
func (s *site) awaitWeight(weight int32) {
	s.t.Helper()
	s.poll("the weight", func() bool {
		w, live := s.window()
		return live && w.weight == weight
	})
	s.awaitProxies()
}

// requirePromoted checks that the release of v2 was promoted, that v2 answers everything, and that
// nothing of the release is left; and ends the load.
func (s *site) requirePromoted() {
	s.t.Helper()
	s.requireEndedPromoted()
	s.awaitConnections()
	s.measure("after the release", map[string]float64{"v2": 1})
	s.requireAsBefore(false)
	s.endLoad()
}

// requireEndedPromoted checks that the only release since the first version was promoted.
func (s *site) requireEndedPromoted() {
	s.t.Helper()
	history := s.rollout().Status.History
	for _, entry := range history {
		s.t.Logf("%s: %s", entry.Outcome, entry.Message)
	}
	if len(history) == 0 || history[0].Outcome != v1alpha1.OutcomePromoted {
		s.t.Errorf("the release was not promoted: %+v", history)
	}
}

// drain evicts every pod that has such labels by now, all at once, and each again and again
// while a budget forbids it.
func (s *site) drain(labels ...client.MatchingLabels) {
	s.t.Helper()
	var pods []corev1.Pod
	for _, l := range labels {
		found := s.pods(l)
		if len(found) == 0 {
			s.t.Fatalf("there is no pod with %v to evict", l)
		}
		pods = append(pods, found...)
	}
	gone := make(chan error, len(pods))
	for i := range pods {
		go func() { gone <- s.evict(&pods[i]) }()
	}
	for range pods {
		if err := <-gone; err != nil {
			s.t.Error(err)
		}
	}
}

// evict evicts a pod and returns when it is gone. kubectl drain tries again every 5 s too.
func (s *site) evict(pod *corev1.Pod) error {
	refused := 0
	err := wait.PollUntilContextTimeout(s.t.Context(), 5*time.Second, stateLimit, true, func(ctx context.Context) (bool, error) {
		err := s.core.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
		})
		if apierrors.IsTooManyRequests(err) {
			refused++
			return false, nil
		}
		return true, client.IgnoreNotFound(err)
	})
	s.t.Log(time.Now().UTC().Format(timeOfDay), "evicted", pod.Name, "refused before:", refused, err)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		now, err := s.core.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID, client.IgnoreNotFound(err)
	})
}
