// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/cluster/enforcement"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/judgement"
	"github.com/serin-dev/serin/e2e/tools"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// TestLongNetworkPolicies releases a website under load in a namespace that denies everything by
// default, on a node that enforces NetworkPolicies. The clients that the policies let in, in this
// namespace and in another one, lose nothing. At no time does a pod that they keep out reach the
// website, directly or through its proxies, or anything but the manager the counters of a proxy.
// Without the policies each of these pods gets through, before the release and after it.
func TestLongNetworkPolicies(t *testing.T) {
	play(t, func(a *attempt) {
		p := newPolicies(a, "serin-policies", podOfWebsite, serviceOfWebsite, proxyOfWebsite, countersOfProxy)
		p.apply("namespace")
		p.release(false)
	})
}

// TestLongNetworkPolicyOfTheAppAlone does so where a policy isolates the website, and no other
// pod of its namespace; Serin's own pods have the chart's policies. The proxies keep out who is
// kept out of the website, and are not isolated for what they send.
func TestLongNetworkPolicyOfTheAppAlone(t *testing.T) {
	play(t, func(a *attempt) {
		p := newPolicies(a, "serin-policy", podOfWebsite, serviceOfWebsite, proxyOfWebsite, countersOfProxy)
		p.isolateSerin()
		p.apply("app")
		p.release(true)
	})
}

// TestLongNetworkPolicyOfTheProxiesAlone does so without any policy of users: what Serin makes
// keeps all pods but the manager from the counters of the proxies, and no client from the website.
func TestLongNetworkPolicyOfTheProxiesAlone(t *testing.T) {
	play(t, func(a *attempt) { newPolicies(a, "serin-no-policy", countersOfProxy).release(true) })
}

// policies is a website on a node that enforces NetworkPolicies, with clients in its own namespace
// and in another one.
type policies struct {
	*site
	clients  *site
	enforcer *enforcement.Enforcer
	// outsiders are pods that something is to keep from kinds of places.
	outsiders []caller
}

// newPolicies makes the website without policies: all reach it.
func newPolicies(a *attempt, namespace string, kinds ...string) *policies {
	a.Helper()
	p := &policies{clients: newSite(a, namespace+"-clients", "policies"), site: newSite(a, namespace, "policies")}
	p.enforcePolicies()
	p.applyAsGit("v1", "replicas: 2")
	p.startPods("stranger", "mute")
	p.clients.startPods("stranger", "client")
	p.waitAvailable(siteName)
	p.outsiders = []caller{p.caller("stranger", kinds...), p.caller("mute", kinds...), p.clients.caller("stranger", kinds...)}
	p.awaitReached(p.outsiders)
	return p
}

// apply applies the policies of a file, and those of the clients' namespace, and returns when
// they are enforced.
func (s *policies) apply(file string) {
	s.t.Helper()
	s.site.apply("policies/"+file+".yaml", "${CLIENTS}", s.clients.namespace)
	s.clients.apply("policies/clients.yaml", "${SITE}", s.namespace)
	s.awaitKeptOut(s.outsiders)
}

// release promotes a version. Open tells whether the proxies may send to pods that are not the
// website's.
func (s *policies) release(open bool) {
	s.t.Helper()
	s.startWebsite("[{weight: 50, hold: 10m}]", "replicas: 2")
	s.clients.begin()
	send := pingFrom(s.clients.caller("client").network, pingHTTP)
	target, control := newPinger(s.t, s.address(siteName, 80), send), newPinger(s.t, s.address(controlName, 80), send)
	end := s.watch(append(s.outsiders, s.caller("load", countersOfProxy), s.clients.caller("client", countersOfProxy)))

	s.setImage("v2", "v1")
	s.awaitWeight(50)
	s.requireProxies(open)
	s.measure("weight 50", split(50))
	s.decide(v1alpha1.ControlSkip)
	s.follow(nil, v1alpha1.ReasonStable)
	s.requirePromoted()
	s.clients.requireAsBefore(true)
	s.record.Leftovers = append(s.record.Leftovers, s.clients.record.Leftovers...)
	s.record.Pings = []judgement.Pings{{What: "requests of another namespace", Target: target.end(), Control: control.end()}}
	end()
	s.judge()

	s.kubectl("delete", "networkpolicies", "--all")
	s.awaitReached(s.outsiders)
}

// isolateSerin gives Serin's own pods the policies of its chart until the attempt ends, and
// returns when all of them were started under these.
func (s *policies) isolateSerin() {
	s.t.Helper()
	s.t.Cleanup(func() {
		if err := s.stage.UpgradeRelease(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
	if err := s.stage.UpgradeRelease(s.t.Context(), "--set", "networkPolicy.enabled=true"); err != nil {
		s.t.Fatal(err)
	}
	pods := func() []corev1.Pod { return s.podsIn(stage.SystemNamespace, nil) }
	s.poll("the policies of Serin's own pods", func() bool {
		return !slices.ContainsFunc(pods(), func(p corev1.Pod) bool { return !s.enforcer.Concerns(p.Status.PodIP) })
	})
	before := pods()
	for _, pod := range before {
		if err := s.api.Delete(s.t.Context(), &pod); err != nil {
			s.t.Fatal(err)
		}
	}
	s.poll("Serin's pods again", func() bool {
		now := pods()
		return len(now) == len(before) && !slices.ContainsFunc(now, func(p corev1.Pod) bool {
			return !podutils.IsPodReady(&p) || slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == p.UID })
		})
	})
}

// enforcePolicies has the node enforce NetworkPolicies until the attempt ends: those of the
// website, of its clients, and of Serin itself. Other scenarios are not concerned.
func (s *policies) enforcePolicies() {
	s.t.Helper()
	s.requireLocal()
	programs, err := s.checkout.Builder(os.Stderr).Build(s.t.Context(), tools.NetworkPolicies)
	if err != nil {
		s.t.Fatal(err)
	}
	program := programs.Path("kube-network-policies")
	s.enforcer, err = enforcement.Start(s.t.Context(), s.cluster, program, s.namespace, s.clients.namespace, stage.SystemNamespace)
	if impossible, is := errors.AsType[*cluster.NotPossibleError](err); is {
		s.t.Skipf("%s; %s", impossible.Reason, impossible.Remedy)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.t.Logf("packets that kube-network-policies had to decide about: %+v", s.enforcer.Packets(context.WithoutCancel(s.t.Context())))
		if err := s.enforcer.Stop(); err != nil {
			s.t.Error(err)
		}
	})
}

// startPods starts pods that have their names as label, and returns when they are ready.
func (s *site) startPods(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.apply("policies/pod.yaml", "${NAME}", name)
	}
	for _, name := range names {
		s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout", stateLimit.String())
	}
}

// Kinds of places.
const (
	podOfWebsite     = "a pod of the website"
	serviceOfWebsite = "a Service of the website"
	proxyOfWebsite   = "a proxy"
	countersOfProxy  = "the counters of a proxy"
	otherPod         = "another pod"
)

// caller is a pod from whose network the test calls.
type caller struct {
	// name tells the pod, network is the path of its network namespace.
	name, network string
	// kinds are what it calls.
	kinds []string
}

// callers are those of some pods whose processes are found.
func callers(pods []corev1.Pod) (found []caller) {
	for _, pod := range pods {
		for _, id := range containers(pod) {
			if p := processOf(id, func(p process) bool { return p.first }); p.pid != 0 {
				found = append(found, caller{name: pod.Namespace + "/" + pod.Name, network: fmt.Sprintf("/proc/%d/ns/net", p.pid)})
				break
			}
		}
	}
	return found
}

// caller is the pod of the site that has a name as its label, and calls some kinds.
func (s *site) caller(app string, kinds ...string) caller {
	s.t.Helper()
	found := callers(s.pods(client.MatchingLabels{"app": app}))
	if len(found) != 1 {
		s.t.Fatalf("the processes of %d pods with the label app=%s are found, want those of one", len(found), app)
	}
	found[0].kinds = kinds
	return found[0]
}

// inNetwork runs a function in a network namespace. What it opens stays there.
func inNetwork(path string, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close() //nolint:errcheck // nothing was written
	other, err := os.Open(path)
	if err != nil {
		return err
	}
	defer other.Close() //nolint:errcheck // nothing was written
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	defer func() {
		if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err) // other goroutines of this thread would be in the wrong network
		}
	}()
	return do()
}

// pingFrom sends from the network of a pod.
func pingFrom(network string, send ping) ping {
	return func(ctx context.Context, address string, n int) error {
		return inNetwork(network, func() error { return send(ctx, address, n) })
	}
}

// callLimit is how long a caller waits for a connection: so long that it tries twice.
const callLimit = 1500 * time.Millisecond

// call opens a connection from the network of a pod, and ends it.
func call(ctx context.Context, network, address string) error {
	return inNetwork(network, func() error {
		connection, err := (&net.Dialer{Timeout: callLimit}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// keptOut tells whether a call got no answer. A pod that refuses it was reached; in the place of a
// Service without endpoints the node refuses it. To a pod that is gone there is no way. Any
// other error is one of the test.
func keptOut(kind string, err error) (kept bool, broken error) {
	var network net.Error
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return true, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return kind == serviceOfWebsite, nil
	}
	return false, err
}

// places is all that there is of the website by now: addresses with their kinds.
func (s *site) places(ctx context.Context) (map[string]string, error) {
	pods, services := &corev1.PodList{}, &corev1.ServiceList{}
	err := errors.Join(s.api.List(ctx, pods, client.InNamespace(s.namespace)), s.api.List(ctx, services, client.InNamespace(s.namespace)))
	places := map[string]string{}
	add := func(host string, port int32, kind string) {
		if host != "" && host != corev1.ClusterIPNone {
			places[net.JoinHostPort(host, strconv.Itoa(int(port)))] = kind
		}
	}
	for _, pod := range pods.Items {
		for _, port := range pod.Spec.Containers[0].Ports {
			switch {
			case pod.Labels["app"] == siteName:
				add(pod.Status.PodIP, port.ContainerPort, podOfWebsite)
			case pod.Labels[traffic.LabelProxy] != "" && port.ContainerPort == conf.AgentPort:
				add(pod.Status.PodIP, port.ContainerPort, countersOfProxy)
			case pod.Labels[traffic.LabelProxy] != "":
				add(pod.Status.PodIP, port.ContainerPort, proxyOfWebsite)
			}
		}
	}
	for _, service := range services.Items {
		if strings.HasPrefix(service.Name, siteName) {
			add(service.Spec.ClusterIP, service.Spec.Ports[0].Port, serviceOfWebsite)
		}
	}
	return places, err
}

func (s *site) mustPlaces() map[string]string {
	s.t.Helper()
	places, err := s.places(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return places
}

// only are the places of a kind.
func only(kind string, places map[string]string) map[string]string {
	found := maps.Clone(places)
	maps.DeleteFunc(found, func(_, of string) bool { return of != kind })
	return found
}

// try has each caller call each place, all at once, and counts the places that were reached, and
// the others.
func (s *site) try(callers []caller, places map[string]string) (reached, kept int) {
	s.t.Helper()
	errs := make(map[string]chan error)
	for address := range places {
		errs[address] = make(chan error, len(callers))
		for _, c := range callers {
			go func() { errs[address] <- call(s.t.Context(), c.network, address) }()
		}
	}
	for address, kind := range places {
		for range callers {
			out, err := keptOut(kind, <-errs[address])
			switch {
			case err != nil:
				s.t.Fatal(err)
			case out:
				kept++
			default:
				reached++
			}
		}
	}
	return reached, kept
}

// awaitReached returns when each caller reaches every place that there is of the website.
func (s *site) awaitReached(callers []caller) {
	s.t.Helper()
	s.poll("a way to the website for each pod", func() bool {
		reached, kept := s.try(callers, s.mustPlaces())
		return reached > 0 && kept == 0
	})
}

// awaitKeptOut returns when no caller reaches any place of the website.
func (s *site) awaitKeptOut(callers []caller) {
	s.t.Helper()
	s.poll("the policies", func() bool {
		reached, kept := s.try(callers, s.mustPlaces())
		return reached == 0 && kept > 0
	})
}

// fence notes how often outsiders called, and what let them in.
type fence struct {
	mu       sync.Mutex
	underWay map[string]bool
	calls    map[string]int
	breaches []string
}

// watch has outsiders call all that there is of the website, again and again, until
// end, which fails the attempt where any of them was let in, or none tried. They begin with a pod
// when policies are enforced for it: a node that learns of pods by the API may learn of one after
// the test.
func (s *policies) watch(outsiders []caller) (end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	f := &fence{underWay: map[string]bool{}, calls: map[string]int{}}
	var calls sync.WaitGroup
	calls.Go(func() {
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for ctx.Err() == nil {
			places, err := s.places(ctx)
			if err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
			for address, kind := range places {
				if host, _, _ := net.SplitHostPort(address); kind != serviceOfWebsite && !s.enforcer.Concerns(host) {
					continue
				}
				for _, o := range outsiders {
					if f.begin(o, kind, address) {
						calls.Go(func() { f.end(o, kind, address, call(context.WithoutCancel(ctx), o.network, address)) })
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	s.t.Cleanup(cancel)
	return func() {
		s.t.Helper()
		cancel()
		calls.Wait()
		s.t.Logf("calls of pods that are kept out: %v", f.calls)
		for _, breach := range f.breaches[:min(len(f.breaches), 10)] {
			s.t.Error(breach)
		}
		for _, o := range outsiders {
			for _, kind := range o.kinds {
				if f.calls[o.name+" of "+kind] == 0 {
					s.t.Errorf("%s has not called %s, so nothing is known", o.name, kind)
				}
			}
		}
	}
}

// begin tells whether an outsider is to call an address now: it is kept from it, and does not
// wait for it yet.
func (f *fence) begin(o caller, kind, address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := o.name + address
	if f.underWay[key] || !slices.Contains(o.kinds, kind) {
		return false
	}
	f.underWay[key] = true
	return true
}

// end notes what became of a call.
func (f *fence) end(o caller, kind, address string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.underWay, o.name+address)
	f.calls[o.name+" of "+kind]++
	kept, broken := keptOut(kind, err)
	if !kept {
		f.breaches = append(f.breaches, fmt.Sprintf("at %s %s was let in by %s, %s (%v; the test's error: %v)",
			time.Now().UTC().Format(timeOfDay), o.name, kind, address, err, broken))
	}
}

// requireProxies checks in mid-release that the manager reaches the counters of the proxies, since
// what keeps all others from them lets it in; and that the proxies reach the website. Open tells
// whether they are to reach a pod, too, that is isolated from none.
func (s *policies) requireProxies(open bool) {
	s.t.Helper()
	var proxies []caller
	s.poll("a way from the proxies to the website, and from the manager to their counters", func() bool {
		places := s.mustPlaces()
		proxies = callers(s.pods(client.MatchingLabels{traffic.LabelProxy: siteName}))
		toWebsite, kept := s.try(proxies, only(podOfWebsite, places))
		toCounters, more := s.try(callers(s.podsIn(stage.SystemNamespace, managerLabels)), only(countersOfProxy, places))
		return toWebsite > 0 && toCounters > 0 && kept+more == 0
	})
	others := map[string]string{}
	for _, pod := range s.clients.pods(client.MatchingLabels{"app": "stranger"}) {
		others[net.JoinHostPort(pod.Status.PodIP, "8080")] = otherPod
	}
	if reached, kept := s.try(proxies, others); open && kept > 0 || !open && reached > 0 || reached+kept == 0 {
		s.t.Errorf("%d of %d proxies reach a pod that is not the website's, and are to do so: %t", reached, reached+kept, open)
	}
	made := &networkingv1.NetworkPolicyList{}
	if err := s.api.List(s.t.Context(), made, client.MatchingLabels{traffic.LabelProxy: siteName, traffic.LabelProxyNamespace: s.namespace}); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range made.Items {
		s.t.Logf("made for the release: NetworkPolicy %s/%s", p.Namespace, p.Name)
	}
}
