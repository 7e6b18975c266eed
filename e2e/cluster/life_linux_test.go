// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// probeImage is a server that also asks another server when it is told to.
var probeImage = images.Image{
	Reference: "docker.io/serin-dev/cluster-probe:dev",
	Package:   "e2e/cluster/testdata/probe", Base: images.Scratch,
}

// requirePossible ends the test where a local cluster can't run.
func requirePossible(t *testing.T, err error) {
	t.Helper()
	var impossible *cluster.NotPossibleError
	if os.Geteuid() != 0 && errors.As(err, &impossible) { // with root, several clusters must be possible
		testenv.Missing(t, impossible.Reason, impossible.Remedy)
	}
}

// TestTheLifeOfACluster is one story, since every part needs what came before.
func TestTheLifeOfACluster(t *testing.T) {
	options := cluster.Options{Dir: shortDir(t), Out: testWriter{t}}
	before := takeTrace(t, options.Dir)
	t.Cleanup(func() { removeQuietly(t, options) })
	c := requireUp(t, options)
	client := newClient(t, c)

	t.Log("a pod from an imported image answers at its Service's address, and finds it by name")
	loadProbe(t, c)
	address := createProbe(t, client)
	requireAnswer(t, "http://"+address)
	requireAnswer(t, "http://"+address+"/?ask=http://greeting.default.svc.cluster.local")
	requireAnswer(t, "http://"+address+"/?ask=http://greeting")

	t.Log("a pod reaches a server on this machine")
	requireAnswer(t, "http://"+address+"/?ask="+serveHello(t, c.MachineAddress))

	t.Log("kubectl reads logs and runs commands in a container")
	requireOutput(t, c, "listening", "logs", "probe")
	requireOutput(t, c, "from the command", "exec", "probe", "--", "/probe", "from the command")

	t.Log("a cluster that runs is left alone")
	running := processes(t, options)
	requireUp(t, options)
	if diff := cmp.Diff(running, processes(t, options)); diff != "" {
		t.Errorf("the processes changed (-before +after):\n%s", diff)
	}

	t.Log("killed programs are started again, and containers outlive them")
	kill(t, options, "kubelet", "containerd")
	requireUp(t, options)
	requireAnswer(t, "http://"+address)
	requireRestarts(t, client, 0)

	t.Log("everything killed, the control plane included, comes back with its objects")
	kill(t, options)
	killMarked(t, options)
	requireUp(t, options)
	requireAnswer(t, "http://"+address)

	t.Log("after a boot of the machine, which leaves nothing but files, it comes back with its networks")
	pretendBoot(t, options)
	requireUp(t, options)
	requireAnswer(t, "http://"+address)

	t.Log("removing it leaves the machine as it was, also when some of it was killed before")
	kill(t, options, "containerd")
	if err := cluster.Down(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	requireTrace(t, before, options.Dir)
	if err := cluster.Down(t.Context(), options); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

// TestAnInterruptedStartIsRepairedAndRemoved stops a start at several moments.
func TestAnInterruptedStartIsRepairedAndRemoved(t *testing.T) {
	options := cluster.Options{Dir: shortDir(t), Out: testWriter{t}}
	before := takeTrace(t, options.Dir)
	t.Cleanup(func() { removeQuietly(t, options) })
	for _, after := range []string{"starting etcd", "starting containerd", "starting kubelet"} {
		t.Run(after, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			interrupted := options
			interrupted.Out = writerFunc(func(text []byte) (int, error) {
				if strings.Contains(string(text), after) {
					interrupt()
				}
				return len(text), nil
			})
			_, err := cluster.Up(ctx, interrupted)
			requirePossible(t, err)
			if err == nil {
				t.Fatal("the start was not interrupted")
			}
		})
	}
	requireUp(t, options)
	if err := os.Remove(filepath.Join(options.Dir, "cluster.json")); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Down(t.Context(), options); err != nil {
		t.Fatalf("remove a cluster whose record is lost: %v", err)
	}
	requireTrace(t, before, options.Dir)
}

// requireUp starts the cluster, or what is missing of it.
func requireUp(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Up(t.Context(), options)
	requirePossible(t, err)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveHello starts a server at an address of this machine and returns its URL.
func serveHello(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// removeQuietly removes what a test that failed half way has left.
func removeQuietly(t *testing.T, options cluster.Options) {
	t.Helper()
	options.Out = io.Discard // the test has ended
	err := cluster.Down(context.Background(), options)
	if err != nil && !errors.Is(err, cluster.ErrNotPossible) {
		t.Error(err)
	}
}

// shortDir is a folder whose sockets have short enough names.
func shortDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "serin-cluster-") //nolint:usetesting // the test's own folder has too long a name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	return filepath.Join(parent, "c")
}

func newClient(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

func loadProbe(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Load(t.Context(), images.NewBuilder(checkout, testWriter{t}), c, probeImage); err != nil {
		t.Fatal(err)
	}
}

// createProbe runs the probe as the strictest of the pod security standards wants
// it and returns the address of its Service.
func createProbe(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	labels := map[string]string{"app": "probe"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "probe", Image: probeImage.Reference, ImagePullPolicy: corev1.PullNever,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}, PeriodSeconds: 1},
			}},
		},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "greeting"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// requireAnswer asks until the answer is the probe's: a Service takes a moment.
func requireAnswer(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		response, err := client.Get(url)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		last = fmt.Sprintf("%s: %s", response.Status, content)
		return response.StatusCode == http.StatusOK && strings.TrimSpace(string(content)) == "hello", nil
	})
	if err != nil {
		t.Fatalf("ask %s: %v; last answer: %s", url, err, last)
	}
}

func requireOutput(t *testing.T, c *cluster.Cluster, want string, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), c.Kubectl, append([]string{"--kubeconfig=" + c.Kubeconfig}, args...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(output), want) {
		t.Errorf("kubectl %s: %v, printed %q, want %q in it", strings.Join(args, " "), err, output, want)
	}
}

func requireRestarts(t *testing.T, client kubernetes.Interface, want int32) {
	t.Helper()
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "probe", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err != nil {
		t.Fatal(err)
	}
	if got := pod.Status.ContainerStatuses[0].RestartCount; got != want {
		t.Errorf("the container was restarted %d times, want %d", got, want)
	}
}

func processes(t *testing.T, options cluster.Options) map[string]int {
	t.Helper()
	statuses, err := cluster.Status(options)
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, status := range statuses {
		if status.Running {
			pids[status.Name] = status.PID
		}
	}
	return pids
}
