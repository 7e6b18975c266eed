// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
	"github.com/serin-dev/serin/e2e/demo/story"
)

const examplesFolder = "../../../examples/demo"

func TestReadExamples(t *testing.T) {
	got, err := ReadExamples(examplesFolder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Examples{Replicas: 4, Steps: []int32{10, 50}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadExamplesNamesWhatIsMissing(t *testing.T) {
	if _, err := ReadExamples(t.TempDir()); err == nil || !strings.Contains(err.Error(), "website.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestVersionsDifferInNothingElse holds the manifests of the versions together:
// what is released must be the version alone.
func TestVersionsDifferInNothingElse(t *testing.T) {
	read := func(name string) *appsv1.Deployment {
		var d appsv1.Deployment
		if err := readFirst(filepath.Join(examplesFolder, name), &d); err != nil {
			t.Fatal(err)
		}
		return &d
	}
	first := read("website.yaml")
	for version, name := range map[string]string{story.Good: "website-v2.yaml", story.Bad: "website-v3.yaml"} {
		other := read(name)
		container := &other.Spec.Template.Spec.Containers[0]
		if got := versionOf(&corev1.Pod{Spec: other.Spec.Template.Spec}); got != version {
			t.Errorf("%s has version %q", name, got)
		}
		if !strings.HasSuffix(container.Image, ":"+version) {
			t.Errorf("%s has image %s", name, container.Image)
		}
		container.Image, container.Env = first.Spec.Template.Spec.Containers[0].Image, first.Spec.Template.Spec.Containers[0].Env
		if diff := cmp.Diff(first, other); diff != "" {
			t.Errorf("%s differs from website.yaml in more than its version\n%s", name, diff)
		}
	}
}

func pod(name, version string, labels map[string]string, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid-x", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "set", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "VERSION", Value: version}}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestDescribePods(t *testing.T) {
	website := map[string]string{"app": Name, appsv1.DefaultDeploymentUniqueLabelKey: "hash"}
	going := pod("going", "v1", website, corev1.ConditionTrue)
	going.DeletionTimestamp = &metav1.Time{}
	orphan := pod("orphan", "v1", website, corev1.ConditionFalse)
	orphan.OwnerReferences = nil
	base := story.Pod{UID: "uid-x", Version: "v1", Revision: "hash", Ready: true, Owner: story.OwnerCanary}
	with := func(change func(*story.Pod)) []story.Pod {
		p := base
		change(&p)
		return []story.Pod{p}
	}
	tests := []struct {
		name string
		pod  corev1.Pod
		want []story.Pod
	}{
		{name: "a pod of the website", pod: pod("a", "v1", website, corev1.ConditionTrue), want: with(func(p *story.Pod) { p.Name = "a" })},
		{name: "a pod whose readiness is unknown is not ready", pod: pod("a", "v1", website, corev1.ConditionUnknown), want: with(func(p *story.Pod) { p.Name, p.Ready = "a", false })},
		{name: "a pod that is being deleted", pod: going, want: with(func(p *story.Pod) { p.Name, p.Going = "going", true })},
		{name: "a pod without an owner", pod: orphan, want: with(func(p *story.Pod) { p.Name, p.Ready, p.Owner = "orphan", false, story.OwnerUnknown })},
		{name: "a proxy carries the website's labels and is none of its pods", pod: pod("a", "", map[string]string{"app": Name, proxyLabel: Name}, corev1.ConditionTrue)},
		{name: "a pod of something else", pod: pod("a", "v1", map[string]string{"app": "load"}, corev1.ConditionTrue)},
	}
	set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "set", OwnerReferences: []metav1.OwnerReference{{Kind: "Service", UID: "service", Controller: new(true)}}}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := describePods([]corev1.Pod{test.pod}, []appsv1.ReplicaSet{set})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReplicaSetThatWasReleasedHasNoOwner(t *testing.T) {
	if got := ownerOf(&appsv1.ReplicaSet{}); got != story.OwnerUnknown {
		t.Errorf("got %q", got)
	}
}

func TestKill(t *testing.T) {
	proxy := func(name, container string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Labels: map[string]string{proxyLabel: Name}},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ContainerID: container}}},
		}
	}
	manager := func(name, container string) *corev1.Pod {
		p := proxy(name, container)
		p.Namespace, p.Labels = SystemNamespace, map[string]string{"app.kubernetes.io/name": "serin"}
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}
		return p
	}
	lease := func(holder string, acquired int64) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: managerLease, Namespace: SystemNamespace},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &metav1.MicroTime{Time: time.Unix(acquired, 0)}},
		}
	}
	proc := fstest.MapFS{
		"1/cgroup":   {Data: []byte("0::/init.scope\n")},
		"1/status":   {Data: []byte("NSpid:\t1\n")},
		"70/cgroup":  {Data: []byte("4:memory:/k8s.io/aaa\n")},
		"70/status":  {Data: []byte("Name:\tnginx\nNSpid:\t70\t9\n")},
		"71/cgroup":  {Data: []byte("4:memory:/k8s.io/aaa\n")},
		"71/status":  {Data: []byte("Name:\tserin\nNSpid:\t71\t1\n")},
		"72/cgroup":  {Data: []byte("4:memory:/k8s.io/bbb\n")},
		"72/status":  {Data: []byte("NSpid:\t72\t1\n")},
		"self/ns":    {Data: []byte("")},
		"99/comment": {Data: []byte("a process that ended meanwhile")},
	}
	tests := []struct {
		name    string
		pods    []runtime.Object
		target  story.Target
		killed  []int
		deleted []string
		wantErr string
	}{
		{
			name:   "a proxy on this machine gets SIGKILL, its other processes end with it",
			pods:   []runtime.Object{proxy("a", "containerd://aaa")},
			target: story.TargetProxy, killed: []int{71},
		},
		{
			name:   "one proxy of two is killed",
			pods:   []runtime.Object{proxy("a", "containerd://aaa"), proxy("b", "containerd://bbb")},
			target: story.TargetProxy, killed: []int{71},
		},
		{
			name:   "the manager that leads is killed",
			pods:   []runtime.Object{manager("a", "containerd://aaa"), manager("b", "containerd://bbb"), lease("b_0f1e", 101)},
			target: story.TargetManager, killed: []int{72},
		},
		{
			name:   "no manager is killed while there is no lease",
			pods:   []runtime.Object{manager("a", "containerd://aaa")},
			target: story.TargetManager, wantErr: errNoLeader.Error(),
		},
		{
			name:   "no manager is killed while the one that leads is gone",
			pods:   []runtime.Object{manager("a", "containerd://aaa"), lease("b_0f1e", 101)},
			target: story.TargetManager, wantErr: errNoLeader.Error(),
		},
		{
			name:   "no manager is killed while the one that led has been started again",
			pods:   []runtime.Object{manager("a", "containerd://aaa"), manager("b", "containerd://bbb"), lease("b_0f1e", 99)},
			target: story.TargetManager, wantErr: errNoLeader.Error(),
		},
		{
			name:   "a pod elsewhere is deleted without grace",
			pods:   []runtime.Object{proxy("a", "containerd://elsewhere")},
			target: story.TargetProxy, deleted: []string{"a"},
		},
		{
			name:   "a pod without a container is deleted",
			pods:   []runtime.Object{proxy("a", "")},
			target: story.TargetProxy, deleted: []string{"a"},
		},
		{name: "nothing to kill is said", target: story.TargetManager, wantErr: "no pod app.kubernetes.io/name=serin in namespace serin-system"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			core := fake.NewClientset(test.pods...)
			var killed []int
			k := killer{core: core, proc: proc, kill: func(pid int) error {
				killed = append(killed, pid)
				return nil
			}}
			err := k.killTarget(t.Context(), test.target)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.killed, killed); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.deleted, deletedPods(core)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func deletedPods(core *fake.Clientset) []string {
	var names []string
	for _, action := range core.Actions() {
		if deletion, ok := action.(interface{ GetName() string }); ok && action.GetVerb() == "delete" {
			names = append(names, deletion.GetName())
		}
	}
	return names
}

func TestFetchReportGoesThroughTheAPIServer(t *testing.T) {
	want := generator.Report{Rate: 200, Sent: 3, Versions: []generator.VersionReport{{Version: "v1", Requests: 3}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/serin-demo/services/http:load:http/proxy/report" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(want)
	}))
	defer server.Close()
	core, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := fetchReport(t.Context(), core)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFetchReportRefusesWhatIsNoReport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	defer server.Close()
	core, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetchReport(t.Context(), core); err == nil {
		t.Error("no error")
	}
}

func TestConnectionNamesTheCluster(t *testing.T) {
	s := &Stage{options: Options{Kubeconfig: "file", Context: "kind-a"}}
	want := []string{"apply", "--kubeconfig", "file", "--context", "kind-a"}
	if diff := cmp.Diff(want, s.connection("--context", []string{"apply"})); diff != "" {
		t.Error(diff)
	}
}
