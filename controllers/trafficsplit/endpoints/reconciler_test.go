// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/traffic"
)

var theSplit = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "website"}}

// newAPI is an API server with a website, two proxies and their nodes.
func newAPI(t *testing.T, root *corev1.Service, pods ...*corev1.Pod) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	of := func(label string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{o.GetLabels()[label]} }
	}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Pod{}, traffic.IndexProxy, of(traffic.LabelProxy)).
		WithIndex(&discoveryv1.EndpointSlice{}, traffic.IndexProxy, of(traffic.LabelProxy)).
		WithIndex(&discoveryv1.EndpointSlice{}, IndexService, of(discoveryv1.LabelServiceName)).
		WithIndex(&corev1.Service{}, IndexHolder, func(o client.Object) []string { return []string{traffic.Holder(o.(*corev1.Service))} })
	for name, zone := range map[string]string{"one": "north", "two": "south"} {
		b = b.WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
	}
	b = b.WithObjects(root)
	for _, p := range pods {
		b = b.WithObjects(p)
	}
	return b.Build()
}

func cutOver(s *corev1.Service) *corev1.Service {
	s.Spec.Selector[traffic.LabelProxy] = "website"
	return s
}

func slicesOf(t *testing.T, api client.Reader) (all []string) {
	t.Helper()
	var list discoveryv1.EndpointSliceList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		list.Items[i].Ports = nil
		all = append(all, tell(&list.Items[i]))
	}
	return all
}

func look(t *testing.T, c client.Client) ctrl.Result {
	t.Helper()
	return lookWith(t, c, c)
}

// lookWith has a client whose cache may be of another moment than what there is.
func lookWith(t *testing.T, c client.Client, live client.Reader) ctrl.Result {
	t.Helper()
	result, err := (&Reconciler{Client: c, Live: live, FieldOwner: "serin"}).Reconcile(t.Context(), theSplit)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestSlicesAreMadeForAServiceThatIsCutOverAndFollowTheProxies(t *testing.T) {
	api := newAPI(t, cutOver(website()), proxy(0))
	look(t, api)
	if diff := cmp.Diff([]string{"website-proxies-ipv4\np0 10.0.0.1 in north"}, slicesOf(t, api)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if err := api.Delete(t.Context(), proxy(0)); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), proxy(1)); err != nil {
		t.Fatal(err)
	}
	look(t, api)
	if diff := cmp.Diff([]string{"website-proxies-ipv4\np1 10.0.0.2 in south"}, slicesOf(t, api)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhetherAServiceIsToHaveProxiesIsNotDecidedHere(t *testing.T) {
	api := newAPI(t, website(), proxy(0))
	look(t, api)
	if got := slicesOf(t, api); len(got) > 0 {
		t.Fatalf("made before they are asked for: %v", got)
	}
	r := &Reconciler{Client: api, Live: api, FieldOwner: "serin"}
	if err := r.Lead(t.Context(), website(), "website"); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), proxy(0)); err != nil {
		t.Fatal(err)
	}
	look(t, api)
	if diff := cmp.Diff([]string{"website-proxies-ipv4"}, slicesOf(t, api)); diff != "" {
		t.Errorf("they follow the proxies (-want +got):\n%s", diff)
	}
}

// Once the app's own pods get new requests again, the way of each proxy from its first sign of
// stopping to its end costs no writes.
func TestProxiesThatStopAfterTheServiceWasRestoredAreWrittenOnce(t *testing.T) {
	for name, test := range map[string]struct {
		root *corev1.Service
		want []string
	}{
		"restored": {website(), []string{"website-proxies-ipv4\np0 10.0.0.1 in north terminating unready\np1 10.0.0.2 in south"}},
		"cut over": {cutOver(website()), []string{"website-proxies-ipv4\np1 10.0.0.2 in south"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, test.root, proxy(0, func(p *corev1.Pod) { p.Finalizers = []string{"test/running"} }), proxy(1))
			r := &Reconciler{Client: api, Live: api, FieldOwner: "serin"}
			if err := r.Lead(t.Context(), test.root, "website"); err != nil {
				t.Fatal(err)
			}
			p := proxy(0)
			for _, change := range []func() error{
				func() error { return api.Delete(t.Context(), p) }, // it is terminating
				func() error { return api.Get(t.Context(), client.ObjectKeyFromObject(p), p) },
				func() error { p.Finalizers = nil; return api.Update(t.Context(), p) }, // it is gone
			} {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				look(t, api)
			}
			if diff := cmp.Diff(test.want, slicesOf(t, api)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := api.Delete(t.Context(), proxy(1)); err != nil {
				t.Fatal(err)
			}
			look(t, api)
			if diff := cmp.Diff([]string{"website-proxies-ipv4"}, slicesOf(t, api)); diff != "" {
				t.Errorf("one that was ready is gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLastProxyThatStopsAfterTheServiceWasRestoredLeavesNoEmptySlice(t *testing.T) {
	existing := made(t, website(), proxy(0, terminating), proxy(1, terminating))
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want bool
	}{
		"one is gone":              {[]*corev1.Pod{proxy(1, terminating)}, true},
		"both are gone":            {nil, true},
		"one does not serve":       {[]*corev1.Pod{proxy(0, terminating), proxy(1, terminating, unready)}, true},
		"there is one more":        {[]*corev1.Pod{proxy(1, terminating), proxy(2)}, false},
		"there is one that begins": {[]*corev1.Pod{proxy(2, unready)}, false},
	} {
		changes, err := Diff(website(), "website", test.pods, existing, twoZones(t))
		if err != nil || len(changes.Update) != 1 {
			t.Fatalf("%s: error %v, updates %v", name, err, tellAll(changes.Update))
		}
		if got := onlyLeaves(changes.Update[0], existing); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWithoutNodesTheZoneIsThatOfAPodsLabel(t *testing.T) {
	api := newAPI(t, cutOver(website()), proxy(0, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Labels[corev1.LabelTopologyZone] = "hidden", "east"
	}))
	r := &Reconciler{Client: api, Live: api, FieldOwner: "serin", PodZones: true}
	if _, err := r.Reconcile(t.Context(), theSplit); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"website-proxies-ipv4\np0 10.0.0.1 in east"}, slicesOf(t, api)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The pods that answer datagrams after a cutover are kept by slices with the same label.
func TestSlicesOfOtherControllersAreTheirs(t *testing.T) {
	api := newAPI(t, cutOver(website()), proxy(0))
	others := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website-leaving", Labels: map[string]string{
			traffic.LabelProxy: "website", discoveryv1.LabelServiceName: "website", discoveryv1.LabelManagedBy: "serin.dev",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if err := api.Create(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	look(t, api)
	if diff := cmp.Diff([]string{"website-leaving", "website-proxies-ipv4\np0 10.0.0.1 in north"}, slicesOf(t, api)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A write that another replica was faster with is no failure: the cache shows it soon.
func TestReplicasDoNotHinderEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		begun bool
		funcs func(other func()) interceptor.Funcs
	}{
		"both create": {funcs: func(other func()) interceptor.Funcs {
			return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				other()
				return c.Create(ctx, o, opts...)
			}}
		}},
		"both update": {begun: true, funcs: func(other func()) interceptor.Funcs {
			return interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				other()
				return c.Update(ctx, o, opts...)
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, cutOver(website()), proxy(0))
			if test.begun {
				look(t, api)
				if err := api.Create(t.Context(), proxy(1)); err != nil {
					t.Fatal(err)
				}
			}
			slow := interceptor.NewClient(api, test.funcs(func() { look(t, api) }))
			if again := look(t, slow).RequeueAfter; again != staleRetry {
				t.Errorf("it looks again after %v", again)
			}
			before := slicesOf(t, api)
			if again := look(t, api).RequeueAfter; again != 0 || len(before) != 1 {
				t.Errorf("it looks again after %v, and there are %v", again, before)
			}
			if diff := cmp.Diff(before, slicesOf(t, api)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// Each replica has a cache of its own. The one whose watch of the pods hangs leaves the slices
// as those that know more have written them.
func TestAReplicaWhosePodsAreOutOfDateChangesNothing(t *testing.T) {
	for name, seen := range map[string][]*corev1.Pod{
		"it does not know a proxy that came":   {proxy(0)},
		"it knows a proxy that is gone":        {proxy(0), proxy(1), proxy(2)},
		"it takes a proxy for one that begins": {proxy(0), proxy(1, unready)},
		"it knows none":                        nil,
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, cutOver(website()), proxy(0), proxy(1))
			look(t, api)
			outOfDate := interceptor.NewClient(api, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				pods, is := list.(*corev1.PodList)
				if !is {
					return c.List(ctx, list, opts...)
				}
				for _, p := range seen {
					pods.Items = append(pods.Items, *p)
				}
				return nil
			}})
			lookWith(t, outOfDate, api)
			if diff := cmp.Diff([]string{"website-proxies-ipv4\np0 10.0.0.1 in north\np1 10.0.0.2 in south"}, slicesOf(t, api)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := api.Delete(t.Context(), proxy(0)); err != nil {
				t.Fatal(err)
			}
			lookWith(t, outOfDate, api)
			if diff := cmp.Diff([]string{"website-proxies-ipv4\np1 10.0.0.2 in south"}, slicesOf(t, api)); diff != "" {
				t.Errorf("it writes what there is (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlicesOfAServiceThatIsGoneAreLeftToTheGarbageCollector(t *testing.T) {
	api := newAPI(t, cutOver(website()), proxy(0))
	look(t, api)
	if err := api.Delete(t.Context(), website()); err != nil {
		t.Fatal(err)
	}
	if again := look(t, api); again.RequeueAfter != 0 {
		t.Errorf("it looks again after %v", again.RequeueAfter)
	}
}

func TestWhichEventsLeadToWhichSplit(t *testing.T) {
	api := newAPI(t, website(), proxy(0))
	r := &Reconciler{Client: api, Live: api, FieldOwner: "serin"}
	want := []ctrl.Request{theSplit}
	if got := r.splitsOfService(t.Context(), website()); len(got) > 0 {
		t.Errorf("a Service in no split: %v", got)
	}
	if err := r.Lead(t.Context(), website(), "website"); err != nil {
		t.Fatal(err)
	}
	if got := r.splitsOfService(t.Context(), website()); !cmp.Equal(got, want) {
		t.Errorf("a Service that has slices: %v", got)
	}
	if got := splitOf(t.Context(), proxy(0)); !cmp.Equal(got, want) {
		t.Errorf("a proxy: %v", got)
	}
	others := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{traffic.LabelProxy: "website"}}}
	if got := splitOfSlice(t.Context(), others); len(got) > 0 {
		t.Errorf("a slice of another manager: %v", got)
	}
}
