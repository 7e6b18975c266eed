// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/trafficsplit/reporting"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
	"github.com/serin-dev/serin/traffic/smi"
)

const namespace = "shop"

// errKilled is what every write of a process that was killed comes to.
var errKilled = errors.New("the process was killed")

// world is an API server with the controllers that surround the one under test:
// Deployments get pods, Services get endpoints and proxies report, each when the
// test says so.
type world struct {
	t      *testing.T
	api    client.WithWatch // as the world sees it
	clock  *testingclock.FakeClock
	events *events.FakeRecorder
	log    []string

	// said is what each proxy says that it serves, by its UID.
	said map[types.UID]traffic.Reading

	// killAfter is how many writes of the controller succeed before it is killed;
	// negative for all.
	killAfter int
	writes    int
	liveReads int
	// restricted has the controller close the port of counters, and closed is true since it has.
	restricted, closed bool
	// fail decides whether a call of the controller fails.
	fail func(call string, object client.Object) error
}

// testScheme has no kinds but those that are used: the fake API server maps every
// kind of its scheme anew for each world.
func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, autoscalingv2.AddToScheme, rbacv1.AddToScheme, splitv1.AddToScheme, specsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newWorld(t *testing.T) *world {
	t.Helper()
	merging, err := converters()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(testScheme(t)).WithReturnManagedFields().
		WithTypeConverters(merging...).
		WithStatusSubresource(&splitv1.TrafficSplit{})
	for _, i := range indexes() {
		builder = builder.WithIndex(i.object, i.name, i.values)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "north"}}}
	return &world{
		t: t, api: builder.WithObjects(node).Build(), killAfter: -1, said: map[types.UID]traffic.Reading{},
		clock:  testingclock.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		events: events.NewFakeRecorder(1000),
	}
}

// controller starts the controller anew: nothing survives but the API's objects.
func (w *world) controller() *Reconciler {
	w.t.Helper()
	written := interceptor.NewClient(w.api, w.interceptor())
	live := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			w.liveReads++
			if err := w.failure("live get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.liveReads++
			if err := w.failure("live list", nil); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
	proxies := nginx.Options{Image: "serin:test", Reports: w, AppPods: live, Namespaces: true}
	if w.restricted {
		proxies.Access.Restricted = []string{"*"}
	}
	router, err := nginx.New(written, proxies)
	if err != nil {
		w.t.Fatal(err)
	}
	options := Options{Routers: []traffic.Router{router, smi.New(0), &gateway{written}}, DefaultRouter: nginx.Name, Recorder: w.events, Clock: w.clock}
	if err := options.complete(); err != nil {
		w.t.Fatal(err)
	}
	return &Reconciler{Client: written, Live: live, Options: options}
}

// Read is what proxies say that they serve.
func (w *world) Read(_ types.NamespacedName, _ traffic.Want, pods map[types.UID]string) map[types.UID]traffic.Reading {
	out := map[types.UID]traffic.Reading{}
	for uid := range pods {
		out[uid] = w.said[uid]
	}
	return out
}

// interceptor counts the writes of the controller, and lets them fail.
func (w *world) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.failure("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.failure(fmt.Sprintf("list %T", list), nil); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := w.write("create", o); err != nil {
				return err
			}
			o.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := w.write("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := w.write("patch", o); err != nil {
				return err
			}
			if err := c.Patch(ctx, o, patch, opts...); err != nil {
				return err
			}
			w.neverEmpty(o)
			return nil
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := w.write("apply", nil); err != nil {
				return err
			}
			if applied, err := applyPolicy(ctx, c, config); applied {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := w.write("delete", o); err != nil {
				return err
			}
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if options.Preconditions == nil || options.Preconditions.ResourceVersion == nil || options.Preconditions.UID == nil {
				w.t.Errorf("delete of %s has no preconditions", o.GetName())
			}
			if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
				w.t.Errorf("to delete %s by its metadata, the cache begins to watch the kind a second time", o.GetName())
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if err := w.write("apply "+sub, nil); err != nil {
				return err
			}
			return c.SubResource(sub).Apply(ctx, config, opts...)
		},
	}
}

func (w *world) failure(call string, o client.Object) error {
	if w.fail == nil {
		return nil
	}
	return w.fail(call, o)
}

func (w *world) write(call string, o client.Object) error {
	if w.killAfter == 0 {
		return errKilled
	}
	if err := w.failure(call, o); err != nil {
		return err
	}
	if w.killAfter > 0 {
		w.killAfter--
	}
	w.writes++
	return nil
}

// settle reconciles until there is nothing more to do, starting the controller
// anew whenever it was killed, and checks the invariants after every pass.
func (w *world) settle() {
	w.t.Helper()
	r := w.controller()
	for range 30 {
		before := w.writes
		again, err := w.reconcile(r)
		w.invariants(err == nil)
		switch {
		case errors.Is(err, errKilled):
			w.killAfter = -1
			r = w.controller()
		case err != nil:
			w.t.Fatalf("reconcile: %v\n%s", err, strings.Join(w.log, "\n"))
		case w.writes == before && again > 0 && again <= reporting.Pause:
			w.clock.Step(again) // a report waits
		case w.writes == before:
			return
		}
	}
	w.t.Fatalf("the controller does not come to rest:\n%s", strings.Join(w.log, "\n"))
}

func (w *world) reconcile(r *Reconciler) (time.Duration, error) {
	w.t.Helper()
	logger := funcr.New(func(_, args string) { w.say("    " + tidy(args)) }, funcr.Options{Verbosity: 0})
	result, err := r.Reconcile(log.IntoContext(w.ctx(), logger), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "web"}})
	return result.RequeueAfter, err
}

// tidy turns a log entry into a line that reads well.
func tidy(args string) string {
	return strings.NewReplacer(`"level"=0 "msg"=`, "", ` "TrafficSplit"={"name"="web" "namespace"="`+namespace+`"}`, "",
		`"reason"=`, "event ", `\"`, `"`, `"`, "").Replace(args)
}

func (w *world) ctx() context.Context { return logr.NewContext(w.t.Context(), logr.Discard()) }

func (w *world) say(line string) { w.log = append(w.log, line) }

// must fails the test when the world itself could not be changed.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// step is one change of the world with what the controller does about it.
func (w *world) step(title string, change func()) {
	w.t.Helper()
	w.say("# " + title)
	change()
	w.settle()
	w.say("  " + w.summary())
}

func (w *world) split() *splitv1.TrafficSplit {
	w.t.Helper()
	split := &splitv1.TrafficSplit{}
	err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "web"}, split)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return split
}

func (w *world) service(name string) *corev1.Service {
	w.t.Helper()
	s := &corev1.Service{}
	w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: name}, s))
	return s
}

// editSplit changes the spec as a user would, with a new generation.
func (w *world) editSplit(edit func(*splitv1.TrafficSplit)) {
	w.t.Helper()
	split := w.split()
	edit(split)
	split.Generation++
	w.must(w.api.Update(w.ctx(), split))
}

// summary is the state in one line.
func (w *world) summary() string {
	w.t.Helper()
	split := w.split()
	path := "direct"
	s := &corev1.Service{}
	if err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "web"}, s); err != nil {
		path = "no Service"
	} else if s.Spec.Selector[traffic.LabelProxy] != "" {
		path = "through proxies"
	} else if pin := traffic.PinOf(s); len(pin.Keys) > 0 {
		path = "pinned to version " + pin.Keys["version"]
	}
	path += w.draining()
	if split == nil {
		return "split gone, " + path
	}
	if len(split.Finalizers) == 0 && traffic.RouterName(split, "") == "smi" {
		return "split left to another controller, " + path
	}
	parts := []string{path}
	for _, c := range split.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s@%d (%s: %s)", c.Type, c.Status, c.ObservedGeneration, c.Reason, c.Message))
	}
	parts = append(parts, "live: ["+reporting.Weights(split.Status.Backends)+"]")
	if m := split.Status.Mirror; m != nil {
		parts = append(parts, fmt.Sprintf("mirrored: %d %% to %s", m.Percent, m.Service))
	}
	return strings.Join(parts, "\n  ")
}

// draining are the pods that stay among the root Service's endpoints for a while.
func (w *world) draining() string {
	w.t.Helper()
	var list discoveryv1.EndpointSliceList
	w.must(w.api.List(w.ctx(), &list, client.MatchingLabels{discoveryv1.LabelManagedBy: managedBySerin}))
	var text strings.Builder
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			c := e.Conditions
			fmt.Fprintf(&text, ", %s drains (ready %t, serving %t, terminating %t)", e.TargetRef.Name, *c.Ready, *c.Serving, *c.Terminating)
		}
		for _, port := range slice.Ports {
			fmt.Fprintf(&text, " on %d/%s", *port.Port, *port.Protocol)
		}
	}
	return text.String()
}

// invariants are what must hold at every moment, and, after a pass that was not
// interrupted, of what is reported.
func (w *world) invariants(reported bool) {
	w.t.Helper()
	w.staysClosed()
	split := w.split()
	root := &corev1.Service{}
	if err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "web"}, root); err != nil {
		return
	}
	proxied := root.Spec.Selector[traffic.LabelProxy] != ""
	if split == nil && proxied && !w.orphan() {
		w.t.Errorf("the split is gone and the root Service still selects proxies:\n%s", strings.Join(w.log, "\n"))
	}
	if split != nil && reported {
		w.truthful(split, root)
	}
}

// neverEmpty checks after a write to a Service that it selects something, if
// there is anything that it could select.
func (w *world) neverEmpty(o client.Object) {
	w.t.Helper()
	s, ok := o.(*corev1.Service)
	if !ok || len(w.serving(s)) > 0 {
		return
	}
	direct := s.DeepCopy()
	direct.Spec.Selector = traffic.DeclaredSelector(s)
	if len(w.selected(direct)) > 0 {
		w.t.Errorf("the root Service has no endpoint:\n%s", strings.Join(w.log, "\n"))
	}
}

func (w *world) orphan() bool {
	return len(w.log) > 0 && strings.Contains(strings.Join(w.log, "\n"), "finalizer is removed by hand")
}

// truthful checks that a split which says that its weights are live, has them live.
func (w *world) truthful(split *splitv1.TrafficSplit, root *corev1.Service) {
	w.t.Helper()
	for _, c := range split.Status.Conditions {
		if c.Type != splitv1.ConditionProgrammed || c.Status != metav1.ConditionTrue || c.ObservedGeneration != split.Generation {
			continue
		}
		if router := traffic.RouterName(split, ""); router == gatewayName || router == smi.Name {
			w.steeredTruly(split, root)
			continue
		}
		if root.Spec.Selector[traffic.LabelProxy] != split.Name {
			w.t.Errorf("Programmed, but traffic does not go through the proxies:\n%s", strings.Join(w.log, "\n"))
		}
		for _, pod := range w.proxies() {
			if podReady(&pod) && w.said[pod.UID].Serves.Generation != split.Generation {
				w.t.Errorf("Programmed, but proxy %s does not serve the generation:\n%s", pod.Name, strings.Join(w.log, "\n"))
			}
		}
	}
}
