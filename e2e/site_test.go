// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/diagnosis"
	"github.com/serin-dev/serin/e2e/gateway"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

const (
	// siteName is the name of the website's objects.
	siteName = "website"

	// look is how often the state is read. It is shorter than any hold of a step.
	look = 250 * time.Millisecond
	// stateLimit bounds how long a release may take to get to a state.
	stateLimit = 4 * time.Minute
	// timeOfDay is how times are logged.
	timeOfDay = "15:04:05.000"
)

// site is a website in a namespace of its own.
type site struct {
	t loud
	// namespace of the website, which is also the folder of its files in testdata.
	namespace string
	cluster   *cluster.Cluster
	api       client.Client
	core      kubernetes.Interface
	stage     *stage.Stage
	// canary is the version that is being released.
	canary string
	// notJudged is what the test leaves out, which it says at its end.
	notJudged []string
}

// newSite makes a cluster with Serin in it, and with a gateway when the website needs
// one, and takes them away when the test ends.
func newSite(t loud, namespace string, behindGateway bool) *site {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{
		Kubeconfig: os.Getenv(cluster.KubeconfigVariable), Context: os.Getenv(cluster.ContextVariable), Out: t.Output(),
	})
	if errors.Is(err, cluster.ErrNotPossible) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Load(t.Context(), images.NewBuilder(checkout, t.Output()), c, images.Table...); err != nil {
		t.Fatal(err)
	}
	s := connect(t, c)
	s.namespace = namespace
	if behindGateway {
		s.installGateway(gateway.Gateway{Cluster: c, Checkout: checkout, Out: t.Output()})
	}
	s.installSerin(checkout)
	t.Cleanup(s.remove)
	t.Cleanup(s.explain) // before anything is removed
	return s
}

// explain says of a test that failed how the cluster is by now.
func (s *site) explain() {
	if s.t.Failed() {
		s.t.Log(diagnosis.Explain(context.WithoutCancel(s.t.Context()), s.core))
	}
}

func connect(t loud, c *cluster.Cluster) *site {
	t.Helper()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), splitv1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, cluster: c, api: api, core: core}
}

// installGateway comes before Serin, which looks at its start what kinds there are.
func (s *site) installGateway(g gateway.Gateway) {
	s.t.Helper()
	if err := g.Build(s.t.Context()); err != nil {
		s.t.Skipf("without Traefik there is no gateway to test with: %v", err)
	}
	s.t.Cleanup(func() {
		if err := g.Remove(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
	if err := g.Install(s.t.Context()); err != nil {
		s.t.Fatalf("%v\n%s", err, diagnosis.Explain(s.t.Context(), s.core))
	}
}

func (s *site) installSerin(checkout tools.Checkout) {
	s.t.Helper()
	demo, err := stage.New(stage.Options{
		Kubeconfig: s.cluster.Kubeconfig, Context: s.cluster.Context,
		Kubectl: s.cluster.Kubectl, Helm: s.cluster.Helm, Root: checkout.Root,
		Say: func(line string) { s.t.Log(line) }, Clock: clock.RealClock{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := demo.Clean(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := demo.Clean(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
	if err := demo.Install(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.stage = demo
}

// remove takes the website away while Serin is still there to give everything back.
func (s *site) remove() {
	ctx := context.WithoutCancel(s.t.Context())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := client.IgnoreNotFound(s.api.Delete(ctx, namespace)); err != nil {
		s.t.Error(err)
	}
	err := wait.PollUntilContextTimeout(ctx, look, stateLimit, true, func(ctx context.Context) (bool, error) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(namespace), &corev1.Namespace{})
		return err != nil && client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		s.t.Errorf("namespace %s is not gone: %v", s.namespace, err)
	}
}

// apply applies a file of the website.
func (s *site) apply(file string) {
	s.t.Helper()
	s.kubectl("apply", "-f", filepath.Join("testdata", s.namespace, file))
}

// applyLoad begins to call the website, and a server beside it.
func (s *site) applyLoad() {
	s.t.Helper()
	for _, name := range []string{"control", "load"} {
		s.apply(name + ".yaml")
		s.waitAvailable(name)
	}
}

func (s *site) waitAvailable(deployment string) {
	s.t.Helper()
	s.kubectl("rollout", "status", "--namespace", s.namespace, "deployment/"+deployment, "--timeout", stateLimit.String())
}

func (s *site) kubectl(args ...string) {
	s.t.Helper()
	s.t.Log("$ kubectl " + strings.Join(args, " "))
	args = append(args, "--kubeconfig", s.cluster.Kubeconfig, "--context", s.cluster.Context)
	if output, err := exec.CommandContext(s.t.Context(), s.cluster.Kubectl, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", args[0], err, output)
	}
}

// helm runs the command in the site's namespace and returns what it prints.
func (s *site) helm(args ...string) string {
	s.t.Helper()
	return s.helmAt(s.namespace, args...)
}

func (s *site) helmAt(namespace string, args ...string) string {
	s.t.Helper()
	s.t.Log("$ helm " + strings.Join(args, " "))
	args = append(args, "--namespace", namespace, "--kubeconfig", s.cluster.Kubeconfig, "--kube-context", s.cluster.Context)
	output, err := exec.CommandContext(s.t.Context(), s.cluster.Helm, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("helm %s: %v\n%s", args[0], err, output)
	}
	return string(output)
}

// setImage releases a version of the website, and returns when Serin has seen it.
func (s *site) setImage(version string) {
	s.t.Helper()
	before := readyReason(s.rollout())
	s.canary = version
	s.kubectl("set", "image", "--namespace", s.namespace, "deployment/"+siteName, siteName+"=docker.io/serin-dev/demo-app:"+version)
	s.await("Serin to see "+version, func(ro *v1alpha1.Rollout) bool { return readyReason(ro) != before })
}

// follow measures the shares of the versions until the release is in a state.
func (s *site) follow(shares *shares, state v1alpha1.Reason) {
	s.t.Helper()
	s.await("the state "+state, func(ro *v1alpha1.Rollout) bool {
		if shares != nil {
			shares.add(s.canary, ro.Status.Weight, s.loadReport)
		}
		return readyReason(ro) == state
	})
}

// abort has the release rolled back, as a person would.
func (s *site) abort() {
	s.t.Helper()
	ro := s.rollout()
	patch := fmt.Appendf(nil, `{"spec":{"control":{"revision":%q,"action":%q}}}`, ro.Status.Canary.Revision, v1alpha1.ControlAbort)
	if err := s.api.Patch(s.t.Context(), ro, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) await(what string, done func(*v1alpha1.Rollout) bool) {
	s.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) {
		ro := s.rollout()
		// With the time, by which failures of the load can be told what they belong to.
		if message := readyMessage(ro); message != last {
			last = message
			s.t.Log(time.Now().UTC().Format(timeOfDay), last)
		}
		return done(ro), nil
	})
	if err != nil {
		s.t.Fatalf("wait for %s: %v; the Rollout says: %s", what, err, last)
	}
}

func (s *site) rollout() *v1alpha1.Rollout {
	s.t.Helper()
	ro := &v1alpha1.Rollout{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: siteName}, ro); err != nil {
		s.t.Fatal(err)
	}
	return ro
}

func readyReason(ro *v1alpha1.Rollout) string {
	if c := apimeta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.ObservedGeneration == ro.Generation {
		return c.Reason
	}
	return ""
}

func readyMessage(ro *v1alpha1.Rollout) string {
	if c := apimeta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// routeText is what people wrote of a route, as text.
type routeText struct{ Labels, Annotations, Spec string }

func (s *site) route() routeText {
	s.t.Helper()
	route := s.httpRoute()
	text := func(part any) string {
		content, err := yaml.Marshal(part)
		if err != nil {
			s.t.Fatal(err)
		}
		return string(content)
	}
	return routeText{Labels: text(route.Labels), Annotations: text(route.Annotations), Spec: text(route.Spec)}
}

func (s *site) httpRoute() *gatewayv1.HTTPRoute {
	s.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: siteName}, route); err != nil {
		s.t.Fatal(err)
	}
	return route
}

// loadReport is what the load generator has counted. On a machine that stands still it may
// not answer in time, nor be ready; what it counts is not lost by that.
func (s *site) loadReport() generator.Report {
	s.t.Helper()
	var content []byte
	var last error
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		content, last = s.core.CoreV1().Services(s.namespace).ProxyGet("http", "load", "http", "/report", nil).DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		s.t.Fatalf("ask the load generator: %v", last)
	}
	var report generator.Report
	if err := json.Unmarshal(content, &report); err != nil {
		s.t.Fatalf("read the load generator's report: %v", err)
	}
	return report
}
