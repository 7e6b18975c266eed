// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// tenant is a namespace with an installation of its own: the objects of the chart, and the
// manager as a process with the arguments and the rights that the chart gives it.
type tenant struct {
	*scene
	user string
	// metrics is the address of its metrics.
	metrics string
	log     bytes.Buffer
	process *exec.Cmd
}

// newTenant installs the chart for one namespace and starts its manager.
func newTenant(t *testing.T, values string) *tenant {
	t.Helper()
	c := &tenant{scene: newScene(t)}
	c.user = "system:serviceaccount:" + c.namespace + ":" + release
	// The receivers of notifications have the address of the manager here, as nothing of a tenant has in a cluster.
	here := ownAddress(t)
	objects, err := renderChart(t.Context(), "--namespace", c.namespace,
		"--set", "watchNamespaces={"+c.namespace+"},crds.serin=false,crds.smi=false,metrics.enabled=false"+values,
		"--set", "outbound.allowedCIDRs={"+here.String()+"/32}")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range kinds(objects, "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
		"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding") {
		c.installObject(o)
	}
	c.startManager(argumentsOf(t, objects))
	return c
}

// installObject creates an object of the chart; what belongs to no namespace goes with the test.
func (c *tenant) installObject(o client.Object) {
	c.Helper()
	if err := admin.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
	if o.GetNamespace() == c.namespace {
		return
	}
	c.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(c.Context()), o); err != nil {
			c.Error(err)
		}
	})
}

// argumentsOf are those of the manager's container.
func argumentsOf(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Spec.Containers[0].Args
	}
	t.Fatal("the chart has no manager")
	return nil
}

// startManager runs the manager, and returns when it is ready.
func (c *tenant) startManager(args []string) {
	c.Helper()
	binary, err := builtCommand()
	if err != nil {
		c.Fatal(err)
	}
	config, err := plane.ConfigFor(c.user, "system:serviceaccounts", "system:serviceaccounts:"+c.namespace, "system:authenticated")
	if err != nil {
		c.Fatal(err)
	}
	probes := freeAddress(c.T)
	c.metrics = freeAddress(c.T)
	environment := strings.NewReplacer("$(POD_NAMESPACE)", c.namespace, "$(NODE_ADDRESSES)", "192.0.2.1")
	for i := range args {
		args[i] = environment.Replace(args[i])
	}
	args = append(args, "--metrics-bind-address="+c.metrics, "--health-probe-bind-address="+probes)
	c.process = exec.Command(binary, args...)
	c.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigOf(c, config, c.namespace))
	c.process.Stderr = &c.log
	if err := c.process.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(c.end)
	eventually(c, "the manager is ready", func() error {
		response, err := http.Get("http://" + probes + "/readyz")
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %w", response.Status, err)
		}
		return nil
	})
}

// freeAddress is one that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	return free.Addr().String()
}

// getMetrics asks for the metrics, with a token unless that is "".
func (c *tenant) getMetrics(scheme, token string) (status int, err error) {
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, scheme+"://"+c.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: neverAfter}).Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// tokenOf makes a ServiceAccount and returns a token of it.
func (c *tenant) tokenOf(account string) string {
	c.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	c.create(sa)
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(c.Context(), sa, request); err != nil {
		c.Fatal(err)
	}
	return request.Status.Token
}

// followThePageOfMetrics does what the page says to let a Prometheus get the metrics, and looks at what
// it gets. The manager of this test is reached without kubectl port-forward.
func (c *tenant) followThePageOfMetrics() {
	c.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		testenv.Missing(c.T, "there is no curl", "install the package curl")
	}
	const account = release + "-prometheus"
	c.Cleanup(func() {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.namespace + "-" + account}}
		if err := admin.Delete(context.WithoutCancel(c.Context()), binding); err != nil {
			c.Error(err)
		}
	})
	here := strings.NewReplacer("clusterrolebinding "+account, "clusterrolebinding "+c.namespace+"-"+account,
		release+"-metrics-reader", c.namespace+"-"+release+"-metrics-reader", "serin-system", c.namespace, "localhost:8080", c.metrics)
	var commands []string
	for _, s := range page(c.T, "metrics.md") {
		for _, b := range s.blocks {
			if s.heading == "Who gets them" && b.kind == "sh" {
				commands = append(commands, here.Replace(forwarded.ReplaceAllString(b.text, "")))
			}
		}
	}
	if len(commands) != 2 {
		c.Fatalf("the page has %d blocks of commands, want those that allow it, and those that look", len(commands))
	}
	c.sh(plane.Kubeconfig, commands[0])
	eventually(c, "what the page shows gets the metrics", func() error { // a refusal is remembered for a while
		cmd := exec.CommandContext(c.Context(), "sh", "-euc", commands[1])
		cmd.Env = environment(plane.Kubeconfig)
		out, err := cmd.CombinedOutput()
		if err == nil && !strings.Contains(string(out), "serin_rollouts{") {
			err = errors.New("no metric of Rollouts")
		}
		if err != nil {
			return fmt.Errorf("%w\n%s\n%s", err, commands[1], out)
		}
		return nil
	})
}

// forwarded is a line that makes a port of a pod one of the user's machine.
var forwarded = regexp.MustCompile(`(?m)^kubectl .*port-forward .*\n`)

// checkMetrics checks that only who may get /metrics does, as those to whom the chart's role is bound.
func (c *tenant) checkMetrics() {
	c.Helper()
	c.followThePageOfMetrics()
	// The library answers a token that the API server does not know with an internal error.
	for token, want := range map[string]int{"": http.StatusUnauthorized, "forged": http.StatusInternalServerError, c.tokenOf("other"): http.StatusForbidden} {
		if status, err := c.getMetrics("https", token); err != nil || status != want {
			c.Errorf("with the token %q: status %d, %v; want %d", token, status, err, want)
		}
	}
	// The server of Go answers plain HTTP on a port of TLS so, and shows nothing.
	if status, err := c.getMetrics("http", ""); err != nil || status != http.StatusBadRequest {
		c.Errorf("without TLS: status %d, %v", status, err)
	}
}

func (c *tenant) end() {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		c.Error(err)
	}
	if err := c.process.Wait(); err != nil {
		c.Errorf("the manager ended with %v", err)
	}
	if c.Failed() {
		c.Logf("the manager of %s says:\n%s", c.namespace, c.log.String())
	}
}

// listen is the address of a receiver of notifications. Before each connection the manager
// looks whether it leads to the API server.
func listen(t *testing.T) (url string, got <-chan struct{}) {
	t.Helper()
	received := make(chan struct{}, 100)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ownAddress(t).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received <- struct{}{} }))
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, received
}

// shared is a website whose versions share the traffic by their replicas.
func (c *tenant) shared(receiver string) *v1alpha1.Rollout {
	ro := newRollout(v1alpha1.Step{Weight: 25, Until: v1alpha1.UntilManual})
	ro.Spec.Router = v1alpha1.RouterNone
	ro.Spec.Notifications = []v1alpha1.Notification{{Name: "all", Endpoint: v1alpha1.Endpoint{URL: receiver}}}
	return ro
}

// release has a version released to its end.
func (c *tenant) release() {
	c.Helper()
	c.waitReady()
	c.setImage(imageV2)
	c.waitReason(v1alpha1.ReasonWaitingForApproval)
	c.decide(v1alpha1.ControlPromote)
	c.waitReady()
	if pods := c.pods(); len(pods[imageV1]) != 0 || len(pods[imageV2]) != 2 {
		c.Errorf("pods %v, want 2 of v2", pods)
	}
}

// proxiesAreBound checks that the proxies of a split get the Role of the tenant, and that none but the
// tenant's installation reads them.
func (c *tenant) proxiesAreBound() {
	c.Helper()
	c.create(service("site"), service("site-v1"), service("site-v2"))
	c.create(c.routedBy("site", ""))
	c.eventually("the identity of proxies is bound", func(ctx context.Context) bool {
		binding := &rbacv1.RoleBinding{}
		err := admin.Get(ctx, c.key("serin-proxy"), binding)
		return err == nil && binding.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: release + "-proxy"}
	})
	c.eventually("the port of their counters is closed", func(ctx context.Context) bool {
		policy := &networkingv1.NetworkPolicy{}
		return admin.Get(ctx, c.key("serin-proxy-site"), policy) == nil && slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
			return len(rule.From) == 1 && rule.From[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] == c.namespace &&
				len(rule.Ports) == 1 && rule.Ports[0].Port.IntVal == conf.AgentPort
		})
	})
}

// requests are those of the tenant's manager by the namespace of what they concern, or ""
// where that is an object of the cluster.
func (c *tenant) requests(since int64) map[string][]auditEvent {
	c.Helper()
	events, err := auditedSince(since, operatorAgent)
	if err != nil {
		c.Fatal(err)
	}
	by := map[string][]auditEvent{}
	for _, e := range events {
		if e.User.Username != c.user || e.ObjectRef == nil {
			continue
		}
		by[e.ObjectRef.Namespace] = append(by[e.ObjectRef.Namespace], e)
		if e.forbidden() {
			c.Errorf("the chart's Roles forbid %s %s", e.Verb, e.RequestURI)
		}
	}
	return by
}

func TestTenantsWithInstallationsOfTheirOwnStayApart(t *testing.T) {
	t.Parallel()
	since := auditEnd(t)
	other := newScene(t)
	other.create(deployment("website", 2), service("website"), newRollout())
	// The second has no rights but in their namespace.
	a, b := newTenant(t, ""), newTenant(t, ",clusterObjects.enabled=false")
	received := map[*tenant]<-chan struct{}{}
	for _, c := range []*tenant{a, b} {
		receiver, calls := listen(t)
		received[c] = calls
		c.create(deployment("website", 2), service("website"), c.shared(receiver))
	}
	for _, c := range []*tenant{a, b} {
		c.release()
		c.proxiesAreBound()
		c.eventually("a notification", func(context.Context) bool { return len(received[c]) > 0 })
	}
	a.checkMetrics()
	if status, err := b.getMetrics("http", ""); err != nil || status != http.StatusOK {
		t.Errorf("metrics in the clear: status %d, %v", status, err)
	}
	if ro := other.rollout(); len(ro.Finalizers) > 0 || len(ro.Status.Conditions) > 0 {
		t.Errorf("a Rollout of a namespace that none watches: %+v", ro)
	}
	a.eventually("the Deployment is not paused, thanks to the policy of the tenant", func(context.Context) bool { return !a.deployment().Spec.Paused })
	if paused := b.deployment().Spec.Paused; !paused {
		t.Error("without a policy the Deployment has to stay paused")
	}
	checkApart(t, a.requests(since), a.namespace, "default", "")
	checkApart(t, b.requests(since), b.namespace)
}

// checkApart checks that a manager concerned itself with the objects of some namespaces, and
// only read what is not the first one's.
func checkApart(t *testing.T, requests map[string][]auditEvent, allowed ...string) {
	t.Helper()
	for namespace, events := range requests {
		if !slices.Contains(allowed, namespace) {
			t.Errorf("%d requests in the namespace %q, such as %s %s", len(events), namespace, events[0].Verb, events[0].RequestURI)
		}
		for _, e := range events {
			asks := slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, e.ObjectRef.Resource)
			if namespace != allowed[0] && !asks && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
				t.Errorf("%s %s", e.Verb, e.RequestURI)
			}
		}
	}
	if len(requests[allowed[0]]) == 0 {
		t.Errorf("no requests in the namespace %q", allowed[0])
	}
}
