// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	proxyfeed "github.com/serin-dev/serin/proxy/feed"
)

// countedClock counts how often a feed has begun to wait. Before it looks, it waits for the rest of a
// burst of changes, and after it has looked it may wait to look again.
type countedClock struct {
	clock.RealClock
	waits atomic.Int64
}

func (c *countedClock) After(d time.Duration) <-chan time.Time {
	c.waits.Add(1)
	return c.RealClock.After(d)
}

// proxyFeed runs the API side of a proxy's agent, with the very rights that the
// router gives it.
func (s *scene) proxyFeed(split *splitv1.TrafficSplit, pod string) *proxyfeed.Feed {
	s.Helper()
	user := pod + "-of-" + s.namespace
	s.bindClusterRole(user, release+"-proxy")
	config, err := plane.ConfigFor(user)
	if err != nil {
		s.Fatal(err)
	}
	key := client.ObjectKeyFromObject(split)
	cluster, err := proxyfeed.NewCluster(config, key)
	if err != nil {
		s.Fatal(err)
	}
	feed := proxyfeed.New(proxyfeed.Options{
		Split: key, Cluster: cluster, Clock: &countedClock{}, Log: testr.New(s.T),
	})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- feed.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the feed ended: %v", err)
		}
	})
	return feed
}

func trafficSplit(weights ...int32) *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "website"}, Spec: splitv1.TrafficSplitSpec{Service: "website"}}
	for i, w := range weights {
		split.Spec.Backends = append(split.Spec.Backends, splitv1.Backend{Service: []string{"website-stable", "website-canary"}[i], Weight: w})
	}
	return split
}

// nextWeights returns the weights of the next want by Service, and its generation.
func nextWeights(t *testing.T, feed *proxyfeed.Feed) (map[string]int32, int64) {
	t.Helper()
	select {
	case want := <-feed.Wants():
		weights := map[string]int32{}
		for _, p := range want.Split.Ports {
			for _, d := range p.Destinations {
				weights[d.Service] = d.Weight
			}
		}
		return weights, want.Split.Generation
	case <-time.After(neverAfter):
		t.Fatal("nothing was wanted")
		return nil, 0
	}
}

// requestsOf counts a user's requests in the audit log, watches apart.
func requestsOf(t *testing.T, user string) int {
	t.Helper()
	log, err := os.ReadFile(plane.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(`"username":"`+user+`"`)) && !bytes.Contains(lines.Bytes(), []byte(`"verb":"watch"`)) {
			count++
		}
	}
	return count
}

func TestAProxyLearnsWhatToServe(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := trafficSplit(100, 0)
	s.create(service("website"), service("website-stable"), service("website-canary"), split)
	feed := s.proxyFeed(split, "proxy-a")
	weights, generation := nextWeights(t, feed)
	if diff := cmp.Diff(map[string]int32{"website-stable": 100, "website-canary": 0}, weights); diff != "" || generation != 1 {
		t.Fatalf("generation %d, weights (-want +got):\n%s", generation, diff)
	}
	split.Spec.Backends[0].Weight, split.Spec.Backends[1].Weight = 90, 10
	if err := admin.Update(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	weights, generation = nextWeights(t, feed)
	if diff := cmp.Diff(map[string]int32{"website-stable": 90, "website-canary": 10}, weights); diff != "" || generation != 2 {
		t.Fatalf("generation %d, weights (-want +got):\n%s", generation, diff)
	}
}

func TestAProxyKnowsABackendThatWasMadeJustBeforeItsWeight(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := trafficSplit(100)
	s.create(service("website"), service("website-stable"), split)
	feed := s.proxyFeed(split, "proxy-a")
	nextWeights(t, feed)
	for range 20 {
		canary := service("website-canary")
		s.create(canary)
		split.Spec.Backends = trafficSplit(50, 50).Spec.Backends
		if err := admin.Update(t.Context(), split); err != nil {
			t.Fatal(err)
		}
		for {
			weights, generation := nextWeights(t, feed)
			if generation < split.Generation {
				continue // what came before the backend
			}
			if diff := cmp.Diff(map[string]int32{"website-stable": 50, "website-canary": 50}, weights); diff != "" {
				t.Fatalf("the generation with the canary is served without it (-want +got):\n%s", diff)
			}
			break
		}
		split.Spec.Backends = trafficSplit(100).Spec.Backends
		if err := admin.Update(t.Context(), split); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), canary); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProxyIsQuiet(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := trafficSplit(100, 0)
	s.create(service("website"), service("website-stable"), service("website-canary"), split)
	feed := s.proxyFeed(split, "proxy-a")
	nextWeights(t, feed)
	user := "proxy-a-of-" + s.namespace
	before := requestsOf(t, user)
	other := &corev1.Service{}
	if err := admin.Get(t.Context(), s.key("website-stable"), other); err != nil {
		t.Fatal(err)
	}
	other.Annotations = map[string]string{"example.com/touched": "yes"}
	if err := admin.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	// What comes after it, and is of interest, is heard after it.
	change(s, "website-canary", &corev1.Service{}, func(o *corev1.Service) { o.Spec.Ports[0].Port = 81 })
	nextWeights(t, feed)
	if after := requestsOf(t, user); after != before {
		t.Errorf("%d requests though nothing changed", after-before)
	}
}

func TestAProxyOfASplitThatIsDeletedWantsNothingNew(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := trafficSplit(100, 0)
	s.create(service("website"), service("website-stable"), service("website-canary"), split)
	feed := s.proxyFeed(split, "proxy-a")
	nextWeights(t, feed)
	if err := admin.Delete(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"website-stable", "website-canary", "website"} {
		if err := admin.Delete(t.Context(), s.ownService(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("the feed's cache has none of them", func(ctx context.Context) bool {
		var services corev1.ServiceList
		err := feed.Cluster.Cache.List(ctx, &services, client.InNamespace(s.namespace))
		return err == nil && len(services.Items) == 0 && apierrors.IsNotFound(feed.Cluster.Cache.Get(ctx, s.key("website"), &splitv1.TrafficSplit{}))
	})
	s.waitLooked(feed)
	select {
	case want := <-feed.Wants():
		t.Errorf("wanted %+v", want)
	default:
	}
}

// waitLooked changes what the feed watches until it has looked at what its cache has by now: of three
// waits one is before a look that the next one is after.
func (s *scene) waitLooked(feed *proxyfeed.Feed) {
	s.Helper()
	waits := &feed.Clock.(*countedClock).waits
	end, changes := waits.Load()+3, 0
	other := service("other")
	s.create(other)
	s.eventually("the feed looks", func(ctx context.Context) bool {
		changes++
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"changes":"%d"}}}`, changes))
		if err := admin.Patch(ctx, other, patch); err != nil {
			s.Fatal(err)
		}
		return waits.Load() >= end
	})
}

func TestAProxyThatStartsWhileItsSplitIsDeletedServesIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := trafficSplit(100, 0)
	split.Finalizers = []string{"example.com/held"}
	s.create(service("website"), service("website-stable"), service("website-canary"), split)
	if err := admin.Delete(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := admin.Patch(context.WithoutCancel(t.Context()), split, patch); err != nil {
			t.Error(err)
		}
	})
	weights, _ := nextWeights(t, s.proxyFeed(split, "proxy-a"))
	if diff := cmp.Diff(map[string]int32{"website-stable": 100, "website-canary": 0}, weights); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

func (s *scene) ownService(name string) *corev1.Service {
	svc := service(name)
	svc.Namespace = s.namespace
	return svc
}
