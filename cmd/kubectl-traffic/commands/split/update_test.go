// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
	"github.com/serin-dev/serin/traffic"
)

const space = "shop"

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID("uid-of-" + name)}
}

func echoService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "echo", "version": name},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}},
	}}
}

func echoSplit() *splitv1.TrafficSplit {
	split := &splitv1.TrafficSplit{ObjectMeta: named("echo"), Spec: splitv1.TrafficSplitSpec{
		Service: "echo", Backends: []splitv1.Backend{{Service: "echo-v1", Weight: 60}, {Service: "echo-v2", Weight: 40}},
	}}
	split.Annotations = map[string]string{tags.Annotation: `{"stable":"echo-v1"}`, "other": "stays"}
	return split
}

// stableService is what the tag of echoSplit has made.
func stableService(t *testing.T) *corev1.Service {
	t.Helper()
	service, err := tags.Make("stable", echoSplit(), echoService("echo"), echoService("echo-v1"))
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// newWorld is a cluster with the split, its Services, and failures of some requests.
func newWorld(t *testing.T, fails interceptor.Funcs, more ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := cli.NewScheme(splitv1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	more = append(more, echoService("echo"), echoService("echo-v1"), echoService("echo-v2"), echoService("echo-v3"), stableService(t))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(more...).WithInterceptorFuncs(fails).Build()
}

// updated runs an update against a cluster.
func updated(t *testing.T, api client.Client, dry string, flags trafficblock.Flags) error {
	t.Helper()
	change, err := trafficblock.Parse(flags)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loadSplit(t.Context(), api, space, "echo")
	if err != nil {
		return err
	}
	_, _, err = (&editor{dryRun: &dry}).change(t.Context(), l, change)
	return err
}

// state is what the plugin may have changed.
type state struct {
	Backends    []splitv1.Backend
	Annotations map[string]string
	// Services by name, with the version that each selects.
	Services map[string]string
}

func stateOf(t *testing.T, api client.Client) state {
	t.Helper()
	split := &splitv1.TrafficSplit{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "echo"}, split); err != nil {
		t.Fatal(err)
	}
	s := state{Backends: split.Spec.Backends, Annotations: split.Annotations, Services: map[string]string{}}
	var services corev1.ServiceList
	if err := api.List(t.Context(), &services); err != nil {
		t.Fatal(err)
	}
	for _, service := range services.Items {
		s.Services[service.Name] = service.Spec.Selector["version"]
	}
	return s
}

func TestUpdateWritesTheSplitAndTheServicesOfItsTags(t *testing.T) {
	api := newWorld(t, interceptor.Funcs{}, echoSplit())
	err := updated(t, api, cli.DryNone, trafficblock.Flags{
		Untag: []string{"stable"}, Tag: []string{"echo-v3=candidate,echo-v2=current"}, Traffic: []string{"candidate=2", "echo-v2=98"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := state{
		Backends:    []splitv1.Backend{{Service: "echo-v2", Weight: 98}, {Service: "echo-v3", Weight: 2}},
		Annotations: map[string]string{tags.Annotation: `{"candidate":"echo-v3","current":"echo-v2"}`, "other": "stays"},
		Services: map[string]string{
			"echo": "echo", "echo-v1": "echo-v1", "echo-v2": "echo-v2", "echo-v3": "echo-v3",
			"candidate-echo": "echo-v3", "current-echo": "echo-v2",
		},
	}
	if diff := cmp.Diff(want, stateOf(t, api)); diff != "" {
		t.Error(diff)
	}
}

func TestATagThatMovesTakesItsServiceAlong(t *testing.T) {
	api := newWorld(t, interceptor.Funcs{}, echoSplit())
	if err := updated(t, api, cli.DryNone, trafficblock.Flags{Untag: []string{"stable"}, Tag: []string{"echo-v2=stable"}}); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, api); got.Services["stable-echo"] != "echo-v2" || got.Backends[0].Weight != 60 {
		t.Errorf("got %+v", got)
	}
}

// everything is a change of each kind: a Service made, one removed, and the split.
var everything = trafficblock.Flags{Untag: []string{"stable"}, Tag: []string{"echo-v3=candidate"}, Traffic: []string{"candidate=2", "echo-v2=98"}}

func TestAFailingCommandChangesNothing(t *testing.T) {
	refusal := errors.New("refused for the test")
	// unlessDry lets dry runs pass.
	unlessDry := func(dry []string) error {
		if len(dry) > 0 {
			return nil
		}
		return refusal
	}
	tests := []struct {
		name  string
		fails interceptor.Funcs
	}{
		{"a dry run is refused", interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal }}},
		{"no Service can be made", interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			if err := unlessDry(options.DryRun); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		}}},
		{"the split can't be written", interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			if err := unlessDry(options.DryRun); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		}}},
		{"the Service of a previous tag can't be removed", interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if err := unlessDry(options.DryRun); err != nil && o.GetName() == "stable-echo" {
				return err
			}
			return c.Delete(ctx, o, opts...)
		}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := newWorld(t, test.fails, echoSplit())
			before := stateOf(t, api)
			if err := updated(t, api, cli.DryNone, everything); !errors.Is(err, refusal) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, stateOf(t, api)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCanNotBeTakenBackIsNamed(t *testing.T) {
	refusal := errors.New("refused for the test")
	api := newWorld(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) == 0 {
				return refusal
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if len((&client.DeleteOptions{}).ApplyOptions(opts).DryRun) == 0 {
				return refusal
			}
			return c.Delete(ctx, o, opts...)
		},
	}, echoSplit())
	err := updated(t, api, cli.DryNone, everything)
	if err == nil || !strings.Contains(err.Error(), "could not undo: create the Service candidate-echo: refused for the test; undo it by hand") {
		t.Errorf("got %v", err)
	}
}

func TestDryRunsChangeNothing(t *testing.T) {
	for _, dry := range []string{cli.DryClient, cli.DryServer} {
		api := newWorld(t, interceptor.Funcs{}, echoSplit())
		before := stateOf(t, api)
		if err := updated(t, api, dry, everything); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, stateOf(t, api)); diff != "" {
			t.Errorf("%s: %s", dry, diff)
		}
	}
}

func TestUpdateRefuses(t *testing.T) {
	led := echoSplit()
	led.Labels = map[string]string{v1alpha1.LabelRollout: "website"}
	owned := echoSplit()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serin.dev/v1alpha1", Kind: "Rollout", Name: "website", UID: "x"}}
	ported := echoSplit()
	ported.Annotations[splitv1.AnnotationRouting] = "ports: {80/TCP: {weights: {echo: 1}}}"
	unroutable := echoSplit()
	unroutable.Annotations[splitv1.AnnotationRouting] = "{"
	unreadable := echoSplit()
	unreadable.Annotations[tags.Annotation] = "{"
	foreign := echoService("candidate-echo")
	tests := []struct {
		name  string
		split *splitv1.TrafficSplit
		flags trafficblock.Flags
		want  string
	}{
		{"a split that a Rollout has made", led, everything, "belongs to the Rollout website, which would revert any change of it; use kubectl traffic rollout promote"},
		{"a split with weights for individual ports", ported, everything, "has weights for the port 80/TCP, and percentages for all would not change those; edit its annotation serin.dev/routing first"},
		{"a split whose routing can't be read", unroutable, everything, "metadata.annotations[serin.dev/routing]: can't be read"},
		{"a split that a Rollout owns", owned, everything, "belongs to the Rollout website"},
		{"a name that is neither a tag nor a Service", echoSplit(), trafficblock.Flags{Traffic: []string{"stabel=100"}}, "stabel is neither a tag of the split echo nor a Service"},
		{"the root Service as a revision", echoSplit(), trafficblock.Flags{Traffic: []string{"echo=100"}}, "echo is the root Service"},
		{"a tag whose Service has another owner", echoSplit(), trafficblock.Flags{Tag: []string{"echo-v2=candidate"}}, "candidate-echo belongs to another owner"},
		{"tags that can't be read", unreadable, everything, "fix or remove it"},
		{"@latest without any ready endpoint", echoSplit(), trafficblock.Flags{Traffic: []string{"@latest=100"}}, "none is ready"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			api := newWorld(t, interceptor.Funcs{}, test.split, foreign)
			before := stateOf(t, api)
			if err := updated(t, api, cli.DryNone, test.flags); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(before, stateOf(t, api)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// running are the objects of a version whose one pod is ready or not.
func running(service string, born time.Time, ready bool) []client.Object {
	controls := true
	set := &appsv1.ReplicaSet{ObjectMeta: named(service + "-set")}
	set.CreationTimestamp = metav1.NewTime(born)
	pod := &corev1.Pod{ObjectMeta: named(service + "-pod")}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, Controller: &controls}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: named(service + "-slice"), Endpoints: []discoveryv1.Endpoint{{
		Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name},
	}}}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return []client.Object{set, pod, slice}
}

func TestLatestIsTheVersionWithTheNewestReplicaSetThatIsReady(t *testing.T) {
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	split := echoSplit()
	split.Spec.Backends = append(split.Spec.Backends, splitv1.Backend{Service: "echo-v3"})
	objects := []client.Object{split}
	objects = append(objects, running("echo-v1", early.Add(time.Hour), true)...)
	objects = append(objects, running("echo-v2", early, true)...)
	objects = append(objects, running("echo-v3", early.Add(2*time.Hour), false)...)
	api := newWorld(t, interceptor.Funcs{}, objects...)
	if err := updated(t, api, cli.DryNone, trafficblock.Flags{Traffic: []string{"@latest=100"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]splitv1.Backend{{Service: "echo-v1", Weight: 100}}, stateOf(t, api).Backends); diff != "" {
		t.Error(diff)
	}
}

// backendsAfterLatest runs a command with @latest in a world whose split has the backends echo-v1 and
// echo-v2 and holds the root Service by a pin, and returns the backends that it leaves.
func backendsAfterLatest(t *testing.T, pin traffic.Pin, objects ...client.Object) ([]splitv1.Backend, error) {
	t.Helper()
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	objects = append(objects, echoSplit())
	objects = append(objects, running("echo-v1", early, true)...)
	objects = append(objects, running("echo-v2", early.Add(time.Hour), true)...)
	api := newWorld(t, interceptor.Funcs{}, objects...)
	root := &corev1.Service{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "echo"}, root); err != nil {
		t.Fatal(err)
	}
	root.Spec.Selector = map[string]string{"app": "echo", traffic.LabelProxy: "echo"}
	if err := traffic.SetPin(root, pin); err != nil {
		t.Fatal(err)
	}
	if err := api.Update(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	err := updated(t, api, cli.DryNone, trafficblock.Flags{Traffic: []string{"@latest=100"}})
	return stateOf(t, api).Backends, err
}

func TestLatestMayBeAVersionThatIsNoBackend(t *testing.T) {
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, pin := range map[string]traffic.Pin{
		"the root Service leads to proxies":       {},
		"the root Service is narrowed to echo-v1": {Split: "echo", Keys: map[string]string{"version": "echo-v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := backendsAfterLatest(t, pin, running("echo-v3", early.Add(2*time.Hour), true)...)
			if err != nil {
				t.Fatal(err)
			}
			// echo-v1 stays for its tag.
			want := []splitv1.Backend{{Service: "echo-v1"}, {Service: "echo-v3", Weight: 100}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLatestIsNoServiceOfAnotherApp(t *testing.T) {
	early := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, selector := range map[string]map[string]string{
		"of another app":              {"app": "other", "version": "v3"},
		"of all versions":             {"app": "echo"},
		"without a selector":          nil,
		"of the version of a backend": {"app": "echo", "version": "echo-v2"},
	} {
		t.Run(name, func(t *testing.T) {
			other := echoService("other")
			other.Spec.Selector = selector
			got, err := backendsAfterLatest(t, traffic.Pin{}, append(running("other", early.Add(2*time.Hour), true), other)...)
			if err != nil {
				t.Fatal(err)
			}
			if want := []splitv1.Backend{{Service: "echo-v1"}, {Service: "echo-v2", Weight: 100}}; !cmp.Equal(want, got) {
				t.Error(got)
			}
		})
	}
}
