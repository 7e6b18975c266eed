// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/metricsapi/observe"
)

var updateTraffic = flag.Bool("update-trafficmetrics", false, "write the golden answers of the TrafficMetrics API")

// root is the path of the API.
const root = "/apis/metrics.smi-spec.io/v1alpha1"

// market is the namespace of these tests, and of the page about TrafficMetrics.
const market = "shop"

// stageTraffic makes a Deployment foo, a StatefulSet baz that it calls, and a TrafficSplit
// in a new namespace, and returns what is seen of their requests.
func stageTraffic(t *testing.T, market string) observe.Snapshot {
	t.Helper()
	space := &corev1.Namespace{}
	space.Name = market
	createForTest(t, space)
	foo := deployment("foo", 1)
	baz := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: "baz", Replicas: new(int32(1)), Selector: foo.Spec.Selector.DeepCopy(), Template: *foo.Spec.Template.DeepCopy()}}
	baz.Name = "baz"
	baz.Spec.Selector.MatchLabels, baz.Spec.Template.Labels = map[string]string{"app": "baz"}, map[string]string{"app": "baz"}
	split := &splitv1.TrafficSplit{Spec: splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "web-v1", Weight: 90}, {Service: "web-v2", Weight: 10}}}}
	split.Name = "web"
	for _, o := range []client.Object{foo, baz, service("baz"), split} {
		o.SetNamespace(market)
		createForTest(t, o)
	}
	var caller string
	eventually(t, "the pods have addresses", func() error {
		pods := &corev1.PodList{}
		if err := admin.List(t.Context(), pods, client.InNamespace(market)); err != nil {
			return err
		}
		ready := 0
		for _, p := range pods.Items {
			if p.Status.PodIP != "" {
				ready++
			}
			if p.Labels["app"] == "foo" {
				caller = p.Name
			}
		}
		if ready != 2 {
			return fmt.Errorf("%d pods", ready)
		}
		return nil
	})
	end := time.Date(2019, 4, 8, 22, 25, 55, 0, time.UTC)
	latency := &observe.Histogram{LE: []float64{0.005, 0.01, 0.02}, Counts: []float64{50, 99, 100}, Total: 100}
	from := observe.Party{Namespace: market, Pod: caller}
	flow := observe.Flow{Side: metricsv1.SideClient, Client: from, Server: observe.Party{Namespace: market, Pod: "baz-0"}, Success: 95, Failure: 5, Latency: latency}
	v1, v2 := flow, flow
	v1.Server, v1.Apex, v1.Backend, v1.Success, v1.Failure = observe.Party{Namespace: market}, "web", "web-v1", 90, 0
	v2.Server, v2.Apex, v2.Backend, v2.Success, v2.Failure, v2.Latency = observe.Party{Namespace: market}, "web", "web-v2", 8, 2, nil
	return observe.Snapshot{Start: end.Add(-30 * time.Second), End: end, Flows: []observe.Flow{flow, v1, v2}}
}

// kubectl runs kubectl and returns what it prints.
func kubectl(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), plane.Programs.Path("kubectl"), append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// podOfFoo has another name in each run.
var podOfFoo = regexp.MustCompile(`foo-[0-9a-z]+-[0-9a-z]{5}|foo-[0-9a-z]{8,10}\b`)

func TestTrafficMetrics(t *testing.T) {
	installTraffic(t)
	source := &seen{}
	first, second := serveTraffic(t, source), serveTraffic(t, source)
	first.join(t)
	second.join(t)
	serving(t)
	snapshot := stageTraffic(t, market)
	source.set(snapshot, nil)
	caller := snapshot.Flows[0].Client.Pod
	settled(t, caller)
	described(t)
	t.Run("requests of the specification", func(t *testing.T) { testRequests(t, caller) })
	t.Run("the page", testPage)
	t.Run("tables", testTables)
	t.Run("rights", func(t *testing.T) { testRights(t, caller) })
	t.Run("forged headers", func(t *testing.T) { testForged(t, first) })
	t.Run("selectors and chunks", testLists)
	t.Run("no backend", func(t *testing.T) {
		source.set(snapshot, &observe.UnavailableError{Message: "no proxy answers"})
		defer source.set(snapshot, nil)
		testDown(t)
	})
	t.Run("a namespace goes while a replica is dead", func(t *testing.T) {
		first.stop()
		testDeletion(t)
	})
}

// requests are the paths that are asked for, by the name of what is expected.
func requests(caller string) map[string]string {
	return map[string]string{
		"discovery":       "/",
		"deployments":     "/namespaces/shop/deployments/",
		"default":         "/namespaces/default/deployments/",
		"pods":            "/namespaces/shop/pods",
		"pods-selected":   "/namespaces/shop/pods?labelSelector=app%3Dbaz",
		"pod":             "/namespaces/shop/pods/baz-0",
		"edges-to":        "/namespaces/shop/pods/" + caller + "/edges",
		"edges-from":      "/namespaces/shop/pods/baz-0/edges",
		"namespace":       "/namespaces/shop",
		"namespace-edges": "/namespaces/shop/edges",
		"trafficsplit":    "/namespaces/shop/trafficsplits/web",
	}
}

// golden is the file of what is expected.
func golden(name string) string { return filepath.Join("testdata", "trafficmetrics", name+".json") }

// printed is an answer as it is in the files.
func printed(answer []byte) (string, error) {
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return "", fmt.Errorf("%w: %s", err, answer)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	return podOfFoo.ReplaceAllString(string(text), "foo-POD") + "\n", err
}

// settled waits until both replicas have seen all objects: each of their watches brings some
// of them at a time of its own, and each request goes to either.
func settled(t *testing.T, caller string) {
	t.Helper()
	core := rawClient(t)
	eventually(t, "both replicas know the objects", func() error {
		for name, path := range requests(caller) {
			for range 20 {
				answer, err := core.Get().RequestURI(root + path).Do(t.Context()).Raw()
				if err != nil {
					return err
				}
				got, err := printed(answer)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(string(readFile(t, golden(name))), got); diff != "" && !*updateTraffic {
					return fmt.Errorf("%s, -want +got, write it with -update-trafficmetrics:\n%s", name, diff)
				}
			}
		}
		return nil
	})
}

func testRequests(t *testing.T, caller string) {
	t.Helper()
	for name, path := range requests(caller) {
		t.Run(name, func(t *testing.T) {
			out, problems, err := kubectl(t, plane.Kubeconfig, "get", "--raw", root+path)
			if err != nil {
				t.Fatalf("%v: %s", err, problems)
			}
			got, err := printed([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			if *updateTraffic {
				if err := os.WriteFile(golden(name), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(readFile(t, golden(name))), got); diff != "" {
				t.Errorf("-want +got, write it with -update-trafficmetrics:\n%s", diff)
			}
		})
	}
}

// testPage runs the commands of the page; what they print is in the block behind each.
func testPage(t *testing.T) {
	content := string(readFile(t, plane.Kubeconfig))
	played := 0
	for _, section := range page(t, "trafficmetrics.md") {
		for i, b := range section.blocks {
			if b.kind != "sh" {
				continue
			}
			s := &scene{T: t, namespace: market, reader: admin}
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := normal(podOfFoo.ReplaceAllString(s.sh(file, b.text), "foo-POD"))
			if i+1 < len(section.blocks) && section.blocks[i+1].kind == "text" {
				want := normal(podOfFoo.ReplaceAllString(section.blocks[i+1].text, "foo-POD"))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("line %d, -page +printed:\n%s", b.line, diff)
				}
				played++
			}
		}
	}
	if played < 5 {
		t.Errorf("%d examples of the page were played", played)
	}
}

// described waits until kubectl lists and explains the resources: the API server serves them
// before it has asked what they are, which it does at times of its own.
func described(t *testing.T) {
	t.Helper()
	for _, test := range []struct {
		args []string
		has  []string
	}{
		{[]string{"api-resources", "--api-group", "metrics.smi-spec.io"}, []string{"trafficsplits", "TrafficMetrics", "replicationcontrollers"}},
		{[]string{"explain", "deployments", "--api-version", "metrics.smi-spec.io/v1alpha1", "--recursive"}, []string{"backend", "timestamp", "window"}},
	} {
		eventually(t, "kubectl tells what there is", func() error {
			out, problems, err := kubectl(t, plane.Kubeconfig, test.args...)
			for _, text := range test.has {
				if err != nil || !strings.Contains(out, text) {
					return fmt.Errorf("kubectl %v: %w, no %q in\n%s%s", test.args, err, text, out, problems)
				}
			}
			return nil
		})
	}
}

// What kubectl get would print of a path, if it could ask for it: it finds a resource by
// its kind, and all of these have the same.
func testTables(t *testing.T) {
	for path, has := range map[string][]string{
		"/namespaces/shop/pods":             {"baz-0", "95.00%", "3.3", "5ms", "10ms"},
		"/trafficsplits":                    {"web-v1", "100.00%", "web-v2", "80.00%", "90"},
		"/namespaces/shop/pods/baz-0/edges": {"from", "client", "Pod/shop/" + caller(t)},
	} {
		body, err := rawClient(t).Get().AbsPath(root+path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
		for _, text := range has {
			if err != nil || !strings.Contains(string(body), `"`+text+`"`) {
				t.Errorf("%s: %v, no %q in\n%s", path, err, text, body)
				break
			}
		}
	}
}

// caller is the pod of foo.
func caller(t *testing.T) string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := admin.List(t.Context(), pods, client.InNamespace(market), client.MatchingLabels{"app": "foo"}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods: %v", len(pods.Items), err)
	}
	return pods.Items[0].Name
}

// grant gives a user a Role in the namespace, in the form of the specification.
func grant(t *testing.T, name string, resources ...string) string {
	t.Helper()
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"metrics.smi-spec.io"}, Resources: resources, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{Subjects: user(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
	role.Name, role.Namespace, binding.Name, binding.Namespace = name, market, name, market
	createForTest(t, role)
	createForTest(t, binding)
	return userConfig(t, name)
}

func testRights(t *testing.T, caller string) {
	t.Helper()
	view := &rbacv1.RoleBinding{Subjects: user("viewer"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
	view.Name, view.Namespace = "viewer", market
	createForTest(t, view)
	in := root + "/namespaces/" + market
	users := map[string]string{
		"all": grant(t, "all", "*"), "edges of pods": grant(t, "pod-edges", "pods/edges"), "pods": grant(t, "pods-only", "pods"),
		"view": userConfig(t, "viewer"), "none": userConfig(t, "nobody"),
	}
	for _, test := range []struct {
		path string
		may  []string
	}{
		{in + "/pods", []string{"all", "pods", "view"}},
		{in + "/pods/" + caller, []string{"all", "pods", "view"}},
		{in + "/pods/" + caller + "/edges", []string{"all", "edges of pods", "view"}},
		{in + "/deployments/foo/edges", []string{"all", "view"}},
		{in, []string{"all", "view"}},
		{in + "/edges", []string{"all", "view"}},
		{root + "/pods", nil},
		{root + "/namespaces/default/pods", nil},
	} {
		for name, kubeconfig := range users {
			eventually(t, name+" "+test.path, func() error { // rights take a moment to be known
				_, problems, err := kubectl(t, kubeconfig, "get", "--raw", test.path)
				may := false
				for _, one := range test.may {
					may = may || one == name
				}
				if may && err != nil {
					return fmt.Errorf("refused: %s", problems)
				}
				if !may && !strings.Contains(problems, "Forbidden") {
					return fmt.Errorf("not refused: %s", problems)
				}
				return nil
			})
		}
	}
}

// testForged asks a server past the API server.
func testForged(t *testing.T, r *replica) {
	t.Helper()
	for name, test := range map[string]struct {
		user string
		code int
	}{
		"without a certificate":          {code: http.StatusUnauthorized},
		"with the certificate of a user": {user: "mallory", code: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{InsecureSkipVerify: true}
			if test.user != "" {
				c, err := plane.ConfigFor(test.user)
				if err != nil {
					t.Fatal(err)
				}
				pair, err := tls.X509KeyPair(c.CertData, c.KeyData)
				if err != nil {
					t.Fatal(err)
				}
				config.Certificates = []tls.Certificate{pair}
			}
			ask := func(path string) *http.Response {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.address.String()+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("X-Remote-User", "admin")
				request.Header.Set("X-Remote-Group", "system:masters")
				response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = response.Body.Close() })
				return response
			}
			if got := ask(root + "/pods").StatusCode; got != test.code {
				t.Errorf("code %d, want %d", got, test.code)
			}
			if got := ask("/readyz").StatusCode; got != http.StatusOK {
				t.Errorf("the probe gets %d", got)
			}
		})
	}
}

func testLists(t *testing.T) {
	core := rawClient(t)
	for selector, want := range map[string]int{"": 2, "app=baz": 1, "app in (baz,foo)": 2, "app!=baz": 1, "app=b.z": 0, "nobody": 0} {
		var list metricsv1.TrafficMetricsList
		body, err := core.Get().AbsPath(root, "namespaces", market, "pods").Param("labelSelector", selector).Param("limit", "1").Do(t.Context()).Raw()
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		found := len(list.Items)
		for err == nil && list.Continue != "" {
			token := list.Continue
			list = metricsv1.TrafficMetricsList{}
			if body, err = core.Get().AbsPath(root, "namespaces", market, "pods").Param("labelSelector", selector).Param("limit", "1").Param("continue", token).Do(t.Context()).Raw(); err == nil {
				err = json.Unmarshal(body, &list)
			}
			found += len(list.Items)
		}
		if err != nil || found != want {
			t.Errorf("%q: %d items, want %d (%v)", selector, found, want, err)
		}
	}
	for _, selector := range []string{"app=b.*", "app=(a+)+$", `app={namespace="kube-system"}`} {
		if _, err := core.Get().AbsPath(root, "pods").Param("labelSelector", selector).Do(t.Context()).Raw(); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", selector, err)
		}
	}
}

func testDown(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/pods", "/namespaces/shop/pods/baz-0", "/namespaces/shop/pods/baz-0/edges"} {
		err := rawClient(t).Get().AbsPath(root + path).MaxRetries(0).Do(t.Context()).Error()
		status := apierrors.APIStatus(nil)
		if !errors.As(err, &status) || status.Status().Code != http.StatusServiceUnavailable || status.Status().Message != "no proxy answers" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// testDeletion deletes a namespace. Its controller asks for everything that a namespace
// can hold, and waits for API servers that do not answer.
func testDeletion(t *testing.T) {
	t.Helper()
	s := newScene(t)
	s.create(service("website"))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	began := time.Now()
	if err := admin.Delete(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(space), space)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("conditions %+v", space.Status.Conditions))
	})
	t.Logf("gone after %s", time.Since(began).Round(time.Millisecond))
}

// Whoever was asked last may have been the one that leaves.
func TestWithoutAReplicaTheAPISaysSo(t *testing.T) {
	installTraffic(t)
	source := &seen{}
	only := serveTraffic(t, source)
	only.join(t)
	serving(t)
	only.stop()
	_, err := rawClient(t).Get().AbsPath(root + "/pods").MaxRetries(0).Do(t.Context()).Raw()
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want 503", err)
	}
}
