// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/traffic"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

const (
	// changes of weights that the test makes.
	changes = 50
	// stretch is how long each weight is watched: more than a thousand requests, or longer, for
	// as many requests as tell anything.
	stretch = 1200 * time.Millisecond
	some    = 200
	// outliers are how many of the changes may be outside of the band that holds
	// 99.9 % of all cases: more happen once in fifty thousand runs.
	outliers = 2
)

// TestTrafficSplitStory has a split that a person wrote take over a Service under a
// constant load, move its weights fifty times while parts of the proxies crash, and
// give the Service back. No request fails or is repeated, and each weight is the
// share that users see, and the one that the API of TrafficMetrics tells.
func TestTrafficSplitStory(test *testing.T) {
	t := loud{test}
	s := newSite(t, "serin-split", false)
	s.apply("website.yaml")
	s.waitAvailable("website-v1")
	s.waitAvailable("website-v2")
	s.applyLoad()
	before := s.loadReport()

	s.apply("split.yaml")
	s.awaitSplit(1)
	half := map[string]float64{"website-v1": 0.5, "website-v2": 0.5}
	s.requireMetrics(half)
	s.requireStoredMetrics(half)
	crashes := map[int]string{10: "serin", 20: "nginx: master", 30: "serin", 40: "nginx: master"}
	var outside []string
	var took []time.Duration
	for i := range changes {
		if name := crashes[i]; name != "" {
			s.crash(siteName, name)
		}
		share, effect, text := s.move(i)
		took = append(took, effect)
		if !share {
			outside = append(outside, text)
		}
	}
	slices.Sort(took)
	t.Logf("from the write of a weight to its effect at every proxy, as the status says: median %s, p98 %s, slowest %s",
		took[len(took)/2], took[len(took)-2], took[len(took)-1])

	s.kubectl("delete", "--namespace", s.namespace, "trafficsplit", siteName, "--timeout", stateLimit.String())
	root := &corev1.Service{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: siteName}, root); err != nil {
		t.Fatal(err)
	}
	for key := range root.Annotations {
		if strings.HasPrefix(key, "serin.dev/") {
			t.Errorf("the Service still has the annotation %s", key)
		}
	}
	if diff := cmp.Diff(map[string]string{"app": siteName, "public": "true"}, root.Spec.Selector); diff != "" {
		t.Errorf("the Service does not select what its people wrote (-written +now):\n%s", diff)
	}
	if len(outside) > outliers {
		t.Errorf("%d of %d changes are outside of the band:\n%s", len(outside), changes, strings.Join(outside, "\n"))
	}
	requireServed(t, before, s.loadReport(), s.notJudged...) // the last, since it leaves the rest out on a slow machine
}

// move changes the weights and reports whether users see them, and how soon they were
// in effect.
func (s *site) move(i int) (share bool, effect time.Duration, text string) {
	s.t.Helper()
	weight := int32([]int{10, 0, 37, 100, 62}[i%5])
	split := s.trafficSplit()
	split.Spec.Backends[0].Weight, split.Spec.Backends[1].Weight = 100-weight, weight
	begun := time.Now()
	if err := s.api.Update(s.t.Context(), split); err != nil {
		s.t.Fatal(err)
	}
	s.awaitSplit(split.Generation)
	effect = time.Since(begun)
	first := s.settledReport()
	var part, all int64
	s.pause(stretch)
	s.poll("so many requests that they tell anything", func() bool {
		last := s.loadReport()
		part = last.Version("v2").Requests - first.Version("v2").Requests
		all = part + last.Version("v1").Requests - first.Version("v1").Requests
		return all >= some
	})
	text = fmt.Sprintf("at weight %d v2 answered %d of %d requests", weight, part, all)
	return inBand(part, all, float64(weight)/100), effect, text
}

// settledReport is what the load generator has counted when nothing is on its way any more
// that was sent before now.
func (s *site) settledReport() (report generator.Report) {
	s.t.Helper()
	sent := s.loadReport().Sent
	s.poll("the end of all requests under way", func() bool {
		report = s.loadReport()
		return report.Settled >= sent
	})
	return report
}

// poll looks until something is there, and ends the test when it does not come.
func (s *site) poll(what string, there func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) { return there(), nil })
	if err != nil {
		s.t.Fatalf("%s did not come: %v", what, err)
	}
}

// pause lets traffic flow.
func (s *site) pause(d time.Duration) {
	s.t.Helper()
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
		s.t.Fatal(s.t.Context().Err())
	}
}

func (s *site) trafficSplit() *splitv1.TrafficSplit {
	s.t.Helper()
	split := &splitv1.TrafficSplit{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: siteName}, split); err != nil {
		s.t.Fatal(err)
	}
	return split
}

// awaitSplit returns when a generation of the split is in effect.
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
		s.t.Fatalf("generation %d of the split is not in effect: %v; it says: %s", generation, err, said)
	}
}

// crash kills the process of one proxy of a split whose command begins with a name, and which
// is not the first of its container: that one's end is the end of the pod's container.
func (s *site) crash(split, name string) {
	s.t.Helper()
	if !s.cluster.Local {
		s.t.Logf("nothing is crashed: the processes of the cluster %q are not on this machine", s.cluster.Context)
		return
	}
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := s.api.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{traffic.LabelProxy: split}); err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				_, id, _ := strings.Cut(status.ContainerID, "://")
				if pid := childOf(id, name); pid != 0 {
					s.t.Logf("kill %s of %s", name, pod.Name)
					return true, syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		return false, nil // a former crash may have left none for a moment
	})
	if err != nil {
		s.t.Fatalf("kill a process %s of a proxy of %s: %v", name, split, err)
	}
}

// childOf finds a process of a container by its command, 0 when there is none. The
// name of its control group holds the container's identifier.
func childOf(container, name string) int {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || container == "" {
		return 0
	}
	for _, process := range processes {
		group, groupErr := os.ReadFile(filepath.Join(process, "cgroup"))
		command, commandErr := os.ReadFile(filepath.Join(process, "cmdline"))
		status, statusErr := os.ReadFile(filepath.Join(process, "status"))
		if groupErr != nil || commandErr != nil || statusErr != nil || !bytes.Contains(group, []byte(container)) {
			continue // it has ended, or is another's
		}
		base := filepath.Base(strings.SplitN(string(command), "\x00", 2)[0])
		if strings.HasPrefix(name, "nginx") {
			base = string(command)
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && strings.HasPrefix(base, name) && !first(string(status)) {
			return pid
		}
	}
	return 0
}

// first tells from /proc/PID/status whether a process is number 1 of its container.
func first(status string) bool {
	for line := range strings.Lines(status) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			fields := strings.Fields(numbers)
			return fields[len(fields)-1] == "1"
		}
	}
	return true
}
