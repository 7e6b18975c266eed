// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
)

// history is everything that happened to a release: the changes of its objects, in
// the one order in which the API server made them. A state that lasted for a
// millisecond is in it too.
type history struct {
	mu      sync.Mutex
	moments []moment
}

// moment is one change of one object.
type moment struct {
	version uint64
	at      time.Time
	object  client.Object
	gone    bool
}

// record begins the history of a namespace that is empty yet.
func record(s *scene) *history {
	s.Helper()
	h := &history{}
	for _, list := range recorded() {
		s.watch(list, h.add)
	}
	return h
}

// recorded are the kinds whose changes are in a history.
func recorded() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.RolloutList{}, &corev1.PodList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{},
		&splitv1.TrafficSplitList{}, &discoveryv1.EndpointSliceList{},
	}
}

func (h *history) add(e watch.Event, o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moments = append(h.moments, moment{version: versionOf(o), at: time.Now(), object: o, gone: e.Type == watch.Deleted})
}

// versionOf orders all changes of all objects: they are in one store.
func versionOf(o client.Object) uint64 {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("the version of %T %s: %v", o, o.GetName(), err))
	}
	return version
}

// sorted are the moments so far.
func (h *history) sorted() []moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := slices.Clone(h.moments)
	slices.SortFunc(out, func(a, b moment) int { return cmp.Compare(a.version, b.version) })
	return out
}

// moment is the version of the store by now. What happens later has a higher one, whenever a
// watch tells of it: by the clock, what happened before may come after.
func (p *stage) moment() uint64 {
	p.Helper()
	list := &v1alpha1.RolloutList{}
	if err := admin.List(context.WithoutCancel(p.Context()), list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	version, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		p.Fatalf("the version of the store: %v", err)
	}
	return version
}

// caughtUp waits until the history has every object as it is by now: what a test has seen
// elsewhere, a watch may not have told yet.
func (p *stage) caughtUp() {
	p.Helper()
	ctx := context.WithoutCancel(p.Context()) // it is waited for at the end of the test, too
	from, now := p.moment(), map[string]uint64{}
	p.eachOf(ctx, recorded(), func(o client.Object) { now[nameInWorld(o)] = versionOf(o) })
	var untold []string
	err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, neverAfter, true, func(context.Context) (bool, error) {
		untold = p.untold(from, now)
		return len(untold) == 0, nil
	})
	if err != nil {
		p.Fatalf("no watch tells how these are: %v", untold)
	}
}

// untold are the objects whose last change is not in the history: of those that are there now,
// in these versions, and of those that were gone before, which a version of the store tells.
func (h *history) untold(from uint64, now map[string]uint64) (names []string) {
	last := map[string]moment{}
	for _, m := range h.sorted() {
		last[nameInWorld(m.object)] = m
	}
	for name, version := range now {
		if last[name].version < version {
			names = append(names, name)
		}
	}
	for name, m := range last {
		if _, there := now[name]; !there && !m.gone && m.version <= from {
			names = append(names, name)
		}
	}
	return names
}

// await returns as soon as something has happened, within a moment of it.
func (h *history) await(s *scene, what string, match func(client.Object) bool) {
	s.Helper()
	seen := 0
	err := wait.PollUntilContextTimeout(s.Context(), 2*time.Millisecond, neverAfter, true, func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for ; seen < len(h.moments); seen++ {
			if match(h.moments[seen].object) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		s.Fatalf("never: %s", what)
	}
}

// promise is what must hold of the traffic at every moment.
type promise struct {
	// keeps is how many pods together answer all traffic at least: the smallest scale
	// that the Deployment had.
	keeps int
	// writes are how many Serin may need until a promise holds again that somebody else
	// broke, whatever time the machine takes for them. Zero where nobody takes pods or
	// Services away but Serin.
	writes int
	// oneVersion is whether the Service reaches one version at a time, because what
	// shares the requests by weight stands before it.
	oneVersion bool
}

// check replays the history, and after a version of the store reports each moment at which
// traffic went where no pods were, or stable was short of pods.
func (h *history) check(from uint64, p promise) (problems []string) {
	w := world{}
	broken, writes := "", 0
	report := func(problem string) {
		if !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	for _, m := range h.sorted() {
		if broken != "" && isWritten(m) {
			writes++
		}
		w.apply(m)
		now := ""
		if m.version > from {
			now = w.broken(p)
		}
		if now == "" || broken == "" {
			writes = 0
		}
		if broken = now; broken != "" && (p.writes == 0 || writes > p.writes) {
			report(broken)
		}
	}
	if broken != "" {
		report(broken + ", until the end")
	}
	return problems
}

// isWritten is whether a change may be one of Serin's: what the controllers of the
// cluster change by themselves is not.
func isWritten(m moment) bool {
	switch m.object.(type) {
	case *corev1.Service, *splitv1.TrafficSplit, *v1alpha1.Rollout:
		return true
	}
	return false
}

// world is the state at one moment.
type world map[string]client.Object

func (w world) apply(m moment) {
	if m.gone {
		delete(w, nameInWorld(m.object))
	} else {
		w[nameInWorld(m.object)] = m.object
	}
}

// nameInWorld tells an object from those of other kinds that have its name.
func nameInWorld(o client.Object) string { return fmt.Sprintf("%T/%s", o, o.GetName()) }

func find[T client.Object](w world, name string) (T, bool) {
	var zero T
	o, ok := w[fmt.Sprintf("%T/%s", zero, name)].(T)
	return o, ok
}

// ready counts the ready pods behind a Service: those that it selects, and its proxies.
func (w world) ready(service string) int {
	svc, ok := find[*corev1.Service](w, service)
	if !ok || len(svc.Spec.Selector) == 0 {
		return 0
	}
	selector, proxies, n := labels.SelectorFromSet(svc.Spec.Selector), w.proxies(service), 0
	for _, o := range w {
		pod, ok := o.(*corev1.Pod)
		if ok && pod.DeletionTimestamp == nil && podutils.IsPodReady(pod) && (selector.Matches(labels.Set(pod.Labels)) || proxies[pod.Status.PodIP]) {
			n++
		}
	}
	return n
}

// answers tells whether anything answers behind a Service: a proxy whose backends have no ready pod does not.
func (w world) answers(service string) bool {
	for _, o := range w {
		pod, ok := o.(*corev1.Pod)
		if ok && pod.DeletionTimestamp == nil && podutils.IsPodReady(pod) && pod.Labels[traffic.LabelProxy] == "" {
			return w.ready(service) > 0
		}
	}
	return false
}

// proxies are the addresses of the ready endpoints of a Service by EndpointSlices of Serin's. Those of a
// backup are of pods that had the names of the present ones.
func (w world) proxies(service string) map[string]bool {
	addresses := map[string]bool{}
	for _, o := range w {
		slice, ok := o.(*discoveryv1.EndpointSlice)
		if !ok || !endpoints.Ours(slice) || slice.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for _, e := range slice.Endpoints {
			if *e.Conditions.Ready {
				addresses[e.Addresses[0]] = true
			}
		}
	}
	return addresses
}

// versions are those whose ready pods a Service selects.
func (w world) versions(svc *corev1.Service) map[string]bool {
	selector, versions := labels.SelectorFromSet(svc.Spec.Selector), map[string]bool{}
	for _, o := range w {
		if pod, ok := o.(*corev1.Pod); ok && pod.DeletionTimestamp == nil && podutils.IsPodReady(pod) && selector.Matches(labels.Set(pod.Labels)) {
			versions[pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]] = true
		}
	}
	return versions
}

// broken says which promise is broken, "" when none is.
func (w world) broken(p promise) string {
	keeps := p.keeps
	root, ok := find[*corev1.Service](w, "website")
	if !ok || root.DeletionTimestamp != nil || keeps == 0 {
		return ""
	}
	var problems []string
	need := func(service, why string, want int) {
		if got := w.ready(service); got < want {
			problems = append(problems, fmt.Sprintf("the Service %s has %d ready pods, and needs %d: %s", service, got, want, why))
		}
	}
	if proxied := root.Spec.Selector[traffic.LabelProxy] != ""; proxied {
		need("website", "its proxies", 1)
	} else {
		need("website", "all traffic", keeps)
	}
	if n := len(w.versions(root)); p.oneVersion && n > 1 {
		problems = append(problems, fmt.Sprintf("the Service website reaches %d versions", n))
	}
	ts, ok := find[*splitv1.TrafficSplit](w, "website")
	if !ok {
		return strings.Join(problems, "; ")
	}
	var total int32
	for _, b := range ts.Status.Backends {
		total += b.Weight
	}
	for _, b := range ts.Status.Backends {
		switch {
		case b.Weight == 0:
		case b.Service == "website-stable":
			need(b.Service, fmt.Sprintf("weight %d is in effect", b.Weight), keeps)
		default:
			need(b.Service, fmt.Sprintf("weight %d is in effect", b.Weight), int((int32(keeps)*b.Weight+total-1)/total))
		}
	}
	for _, b := range ts.Spec.Backends {
		if b.Weight > 0 && len(ts.Status.Backends) > 0 {
			need(b.Service, fmt.Sprintf("weight %d was asked for", b.Weight), 1)
		}
	}
	return strings.Join(problems, "; ")
}

// steps are the steps and requested weights that the status of the Rollout showed from
// a version of the store until now, each once in a row: "0/20".
func (p *stage) steps(from uint64) (out []string) {
	p.Helper()
	p.caughtUp()
	for _, m := range p.sorted() {
		ro, ok := m.object.(*v1alpha1.Rollout)
		if !ok {
			continue
		}
		at := "none"
		if st := ro.Status; st.Step != nil && st.Weight != nil {
			at = fmt.Sprintf("%d/%d", st.Step.Index, st.Weight.Requested)
		}
		switch {
		case m.version <= from:
			out = []string{at}
		case len(out) == 0 || out[len(out)-1] != at:
			out = append(out, at)
		}
	}
	return out
}

// String tells the history, but for what proxies and pods are about.
func (h *history) String() string {
	var b strings.Builder
	for _, m := range h.sorted() {
		about := ""
		switch o := m.object.(type) {
		case *corev1.Pod:
			continue
		case *discoveryv1.EndpointSlice:
			if !endpoints.Ours(o) {
				continue
			}
			about = fmt.Sprintf("has %d endpoints", len(o.Endpoints))
		case *corev1.Service:
			about = fmt.Sprintf("selects %v", o.Spec.Selector)
		case *appsv1.Deployment:
			about = fmt.Sprintf("paused %v, %s, replicas %d", o.Spec.Paused, o.Spec.Template.Spec.Containers[0].Image, *o.Spec.Replicas)
		case *appsv1.ReplicaSet:
			about = fmt.Sprintf("replicas %d, available %d, owners %d", *o.Spec.Replicas, o.Status.AvailableReplicas, len(o.OwnerReferences))
		case *splitv1.TrafficSplit:
			about = fmt.Sprintf("asked %v, in effect %v", o.Spec.Backends, o.Status.Backends)
		case *v1alpha1.Rollout:
			_, reason, message := ready(o)
			about = reason + ": " + message
		}
		state := ""
		if m.gone {
			state = " gone"
		} else if m.object.GetDeletionTimestamp() != nil {
			state = " going"
		}
		fmt.Fprintf(&b, "%s %d %T %s%s: %s\n", m.at.Format("05.000"), m.version, m.object, m.object.GetName(), state, about)
	}
	return b.String()
}
