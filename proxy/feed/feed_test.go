// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

var website = types.NamespacedName{Namespace: "shop", Name: "website"}

// late is a cache that knows of what the API has only what the test lets it see.
type late struct {
	*informertest.FakeInformers
	api    client.Reader
	hidden map[string]bool
	// split is the TrafficSplit as it was, while its watch hangs.
	split *splitv1.TrafficSplit
}

func (l *late) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if split, is := o.(*splitv1.TrafficSplit); is && l.split != nil {
		l.split.DeepCopyInto(split)
		return nil
	}
	return l.api.Get(ctx, key, o, opts...)
}

func (l *late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.api.List(ctx, list, opts...)
	if services, ok := list.(*corev1.ServiceList); ok {
		var seen []corev1.Service
		for _, s := range services.Items {
			if !l.hidden[s.Name] {
				seen = append(seen, s)
			}
		}
		services.Items = seen
	}
	return err
}

// stage is a feed whose cluster is in the test's hands.
type stage struct {
	*Feed
	t     *testing.T
	api   client.WithWatch
	cache *late
	// fail is the error of the next read past the cache.
	fail error
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	scheme, mapper, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t}
	s.api = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&splitv1.TrafficSplit{}).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Service); ok && s.fail != nil {
				return s.fail
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	s.cache = &late{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, api: s.api, hidden: map[string]bool{}}
	s.Feed = New(Options{
		Split: website, Cluster: Cluster{Cache: s.cache, Client: s.api},
		Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), Log: testr.New(t),
	})
	return s
}

func (s *stage) look() {
	s.t.Helper()
	if _, err := s.reconcile(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// wanted is the want that waits for the agent; nil when there is none.
func (s *stage) wanted() *Want {
	select {
	case w := <-s.Wants():
		return &w
	default:
		return nil
	}
}

func (s *stage) split() *splitv1.TrafficSplit {
	s.t.Helper()
	split := &splitv1.TrafficSplit{}
	if err := s.api.Get(s.t.Context(), website, split); err != nil {
		s.t.Fatal(err)
	}
	return split
}

func (s *stage) edit(change func(*splitv1.TrafficSplit)) {
	s.t.Helper()
	split := s.split()
	change(split)
	if err := s.api.Update(s.t.Context(), split); err != nil {
		s.t.Fatal(err)
	}
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}, Selector: map[string]string{"app": name}},
	}
}

func objects() []client.Object {
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website", UID: "uid"}, Spec: splitv1.TrafficSplitSpec{
		Service: "website", Backends: []splitv1.Backend{{Service: "website-stable", Weight: 90}, {Service: "website-canary", Weight: 10}},
	}}
	return []client.Object{split, service("website"), service("website-stable"), service("website-canary")}
}

func weights(w *Want) []int32 {
	if w == nil || len(w.Split.Ports) == 0 {
		return nil
	}
	var out []int32
	for _, d := range w.Split.Ports[0].Destinations {
		out = append(out, d.Weight)
	}
	return out
}

func TestEachChangeIsWantedOnceAndTheLatestWins(t *testing.T) {
	s := newStage(t, objects()...)
	s.look()
	s.look()
	if diff := cmp.Diff([]int32{90, 10}, weights(s.wanted())); diff != "" {
		t.Error(diff)
	}
	if w := s.wanted(); w != nil {
		t.Errorf("wanted again: %+v", w)
	}
	for _, canary := range []int32{20, 30} { // the agent takes only the second
		s.edit(func(split *splitv1.TrafficSplit) {
			split.Spec.Backends[0].Weight, split.Spec.Backends[1].Weight = 100-canary, canary
		})
		s.look()
	}
	if diff := cmp.Diff([]int32{70, 30}, weights(s.wanted())); diff != "" {
		t.Error(diff)
	}
}

func TestAServiceThatTheCacheDoesNotHaveYetIsNotMissing(t *testing.T) {
	s := newStage(t, objects()...)
	s.cache.hidden["website-canary"] = true
	s.look()
	if w := s.wanted(); len(weights(w)) != 2 || len(w.Problems) > 0 {
		t.Errorf("wanted %+v", w)
	}
}

func TestWhatCannotBeReadIsNotMissingEither(t *testing.T) {
	s := newStage(t, objects()...)
	s.cache.hidden["website-canary"] = true
	s.fail = errors.New("the API is away")
	if _, err := s.reconcile(t.Context()); !errors.Is(err, s.fail) {
		t.Errorf("got %v", err)
	}
	if w := s.wanted(); w != nil {
		t.Errorf("wanted %+v", w)
	}
	s.fail = nil
	s.look()
	if w := s.wanted(); len(weights(w)) != 2 {
		t.Errorf("wanted %+v", w)
	}
}

func TestMalformedSplitsAreWantedWithTheirProblems(t *testing.T) {
	for name, change := range map[string]func(*splitv1.TrafficSplit){
		"an annotation that is no YAML": func(s *splitv1.TrafficSplit) { s.Annotations = map[string]string{splitv1.AnnotationRouting: "{"} },
		"a Service that is no name":     func(s *splitv1.TrafficSplit) { s.Spec.Service = "web site/.." },
		"a weight that is negative":     func(s *splitv1.TrafficSplit) { s.Spec.Backends[0].Weight = -1 },
		"the same backend twice":        func(s *splitv1.TrafficSplit) { s.Spec.Backends[1].Service = "website-stable" },
		"a backend that is the Service": func(s *splitv1.TrafficSplit) { s.Spec.Backends[1].Service = "website" },
		"backends that are nowhere":     func(s *splitv1.TrafficSplit) { s.Spec.Backends[0].Service, s.Spec.Backends[1].Service = "a", "b" },
	} {
		t.Run(name, func(t *testing.T) {
			all := objects()
			change(all[0].(*splitv1.TrafficSplit))
			s := newStage(t, all...)
			s.look()
			if w := s.wanted(); w == nil || len(w.Problems) == 0 {
				t.Errorf("wanted %+v", w)
			}
		})
	}
}

func TestASplitThatGoesWantsNothingNewButOfAnAgentThatStarts(t *testing.T) {
	all := objects()
	all[0].SetFinalizers([]string{"test"})
	s := newStage(t, all...)
	s.look()
	s.wanted()
	if err := s.api.Delete(t.Context(), s.split()); err != nil {
		t.Fatal(err)
	}
	if err := s.api.Delete(t.Context(), service("website-canary")); err != nil {
		t.Fatal(err)
	}
	s.look()
	if w := s.wanted(); w != nil {
		t.Errorf("wanted %+v while the split goes", w)
	}
	s.last = nil // another agent
	s.look()
	if w := s.wanted(); len(weights(w)) == 0 {
		t.Errorf("an agent that starts now wants %+v", w)
	}
	s.edit(func(split *splitv1.TrafficSplit) { split.Finalizers = nil })
	s.look() // it is gone
	if w := s.wanted(); w != nil {
		t.Errorf("wanted %+v of a split that is gone", w)
	}
}

// The watch of the Services may be faster than that of the split.
func TestAServiceThatGoesAfterItsSplitHasChangedIsNotMissing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stage)
		want   []int32 // weights; nil for nothing new
	}{
		"the split is gone": {change: func(s *stage) {
			if err := s.api.Delete(t.Context(), s.split()); err != nil {
				t.Fatal(err)
			}
		}},
		"the split is being deleted": {change: func(s *stage) {
			s.edit(func(split *splitv1.TrafficSplit) { split.Finalizers = []string{"example.com/held"} })
			if err := s.api.Delete(t.Context(), s.split()); err != nil {
				t.Fatal(err)
			}
		}},
		"the split names it no more": {change: func(s *stage) {
			s.edit(func(split *splitv1.TrafficSplit) { split.Spec.Backends = split.Spec.Backends[:1] })
		}, want: []int32{90}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, objects()...)
			s.look()
			s.wanted()
			s.cache.split = s.split()
			test.change(s)
			if err := s.api.Delete(t.Context(), service("website-canary")); err != nil {
				t.Fatal(err)
			}
			s.look()
			w := s.wanted()
			if diff := cmp.Diff(test.want, weights(w)); diff != "" || w != nil && len(w.Problems) > 0 {
				t.Errorf("wanted %+v; weights (-want +got):\n%s", w, diff)
			}
		})
	}
	s := newStage(t, objects()...)
	if err := s.api.Delete(t.Context(), service("website-canary")); err != nil {
		t.Fatal(err)
	}
	s.look()
	if w := s.wanted(); w == nil || len(w.Problems) == 0 {
		t.Errorf("wanted %+v without a Service that the split names", w)
	}
}

// The requests that match none get a Service that Serin makes: until every node knows it, what
// is served stays as it is.
func TestANewServiceForTheRequestsThatMatchNoneIsUsedOnceItHasSettled(t *testing.T) {
	split, services := website, objects()
	for _, o := range services {
		if ts, ok := o.(*splitv1.TrafficSplit); ok {
			ts.Annotations, ts.Spec.Matches = nil, []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "testers"}}
		}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: split.Namespace, Name: traffic.UnmatchedName(split.Name), CreationTimestamp: metav1.NewTime(time.Unix(1e9-1, 0))},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.9.9.9", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	s := newStage(t, append(services, service)...)
	after, err := s.reconcile(t.Context())
	if err != nil || after != time.Second {
		t.Fatalf("looks again after %s, error %v", after, err)
	}
	if w := s.wanted(); w == nil || len(w.Split.Ports) > 0 || traffic.Refused(w.Problems) {
		t.Errorf("wanted %+v", w)
	}
	s.Clock.(*clocktesting.FakeClock).Step(after)
	s.look()
	if w := s.wanted(); w == nil || len(w.Split.Ports) != 1 || w.Split.Ports[0].Default.Address != "10.9.9.9" {
		t.Errorf("wanted %+v", w)
	}
}
