// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	proxyfeed "github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/traffic"
)

// testers is a group of the requests with a header, written as the published
// schema wants it: the headers are a list.
func testers(regex string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "testers"},
		"spec": map[string]any{"matches": []any{map[string]any{
			"name": "beta", "methods": []any{"*"}, "headers": []any{map[string]any{"X-Beta": regex}},
		}}},
	}}
	u.SetGroupVersionKind(specsv1.GroupVersion.WithKind("HTTPRouteGroup"))
	return u
}

// limit limits a split to the testers; all others go to a backend.
func limit(split *splitv1.TrafficSplit, others string) *splitv1.TrafficSplit {
	splitv1.SetRouting(split, splitv1.Routing{DefaultBackend: others})
	split.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "testers"}}
	return split
}

// nextWant returns what a feed wants next.
func nextWant(t *testing.T, feed *proxyfeed.Feed) proxyfeed.Want {
	t.Helper()
	select {
	case want := <-feed.Wants():
		return want
	case <-time.After(neverAfter):
		t.Fatal("nothing was wanted")
		return proxyfeed.Want{}
	}
}

func (s *scene) setGroup(regex string) {
	s.Helper()
	group := &specsv1.HTTPRouteGroup{}
	if err := admin.Get(s.Context(), s.key("testers"), group); err != nil {
		s.Fatal(err)
	}
	group.Spec.Matches[0].Headers.Items[0].Regex = regex
	if err := admin.Update(s.Context(), group); err != nil {
		s.Fatal(err)
	}
}

func TestAProxyFollowsTheGroupsOfItsSplit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	split := limit(trafficSplit(0, 100), "website-stable")
	s.create(service("website"), service("website-stable"), service("website-canary"), split)
	feed := s.proxyFeed(split, "proxy-a")
	want := nextWant(t, feed)
	if !want.Split.Limited || len(want.Split.Matches) > 0 || len(want.Problems) != 1 || want.Problems[0].Reason != splitv1.ReasonGroupNotFound {
		t.Fatalf("without the group: %+v", want)
	}
	s.create(testers("1"))
	want = nextWant(t, feed)
	header := func(regex string) []traffic.Match {
		return []traffic.Match{{Group: "testers", Name: "beta", Headers: []traffic.Header{{Name: "x-beta", Regex: regex}}}}
	}
	if diff := cmp.Diff(header("1"), want.Split.Matches); diff != "" || len(want.Problems) > 0 {
		t.Fatalf("with the group: problems %v, matches (-want +got):\n%s", want.Problems, diff)
	}
	s.setGroup("^2$")
	want = nextWant(t, feed)
	if diff := cmp.Diff(header("^2$"), want.Split.Matches); diff != "" {
		t.Fatalf("when the group has changed (-want +got):\n%s", diff)
	}
	split.Spec.Matches = nil
	if err := admin.Update(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	if want = nextWant(t, feed); want.Split.Limited {
		t.Errorf("without matches: %+v", want)
	}
	limit(split, "website-stable")
	if err := admin.Update(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	want = nextWant(t, feed)
	if diff := cmp.Diff(header("^2$"), want.Split.Matches); diff != "" {
		t.Fatalf("with matches again (-want +got):\n%s", diff)
	}
}

func TestASplitByHandIsLimitedAndMirrored(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	s.create(testers("1"))
	says := func(condition string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		s.eventually(condition+" "+reason, func(context.Context) bool {
			ts := s.birdSplit()
			c := meta.FindStatusCondition(ts.Status.Conditions, condition)
			return c != nil && c.ObservedGeneration == ts.Generation && c.Status == status && c.Reason == reason
		})
	}
	edit := func(change func(*splitv1.TrafficSplit)) {
		t.Helper()
		ts := s.birdSplit()
		base := ts.DeepCopy()
		change(ts)
		if err := admin.Patch(t.Context(), ts, client.MergeFrom(base)); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(ts *splitv1.TrafficSplit) {
		limit(ts, "birds-blue")
		ts.Spec.Backends[0].Weight, ts.Spec.Backends[1].Weight = 0, 100
	})
	s.inEffect(0, 100)

	s.setGroup("(a+)+")
	says(splitv1.ConditionAccepted, metav1.ConditionFalse, splitv1.ReasonInvalid)
	s.setGroup("2")
	says(splitv1.ConditionAccepted, metav1.ConditionTrue, splitv1.ReasonAccepted)
	s.inEffect(0, 100)

	edit(func(ts *splitv1.TrafficSplit) {
		splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "birds-green", Percent: 25} })
	})
	s.eventually("mirrored", func(context.Context) bool {
		m := s.birdSplit().Status.Mirror
		return m != nil && *m == splitv1.MirrorStatus{Service: "birds-green", Percent: 25}
	})
	group := testers("1")
	group.SetNamespace(s.namespace)
	if err := admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	says(splitv1.ConditionResolvedRefs, metav1.ConditionFalse, splitv1.ReasonGroupNotFound)
	edit(func(ts *splitv1.TrafficSplit) {
		splitv1.EditRouting(ts, func(r *splitv1.Routing) { r.DefaultBackend = "" })
	})
	s.eventually("the root Service's own pods get the others", func(ctx context.Context) bool {
		return admin.Get(ctx, s.key(traffic.UnmatchedName("birds")), &corev1.Service{}) == nil
	})
	says(splitv1.ConditionProgrammed, metav1.ConditionTrue, splitv1.ReasonProgrammed)
}
