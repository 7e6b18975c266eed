// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
	"github.com/serin-dev/serin/traffic/resolve"
)

// shopTarget is a split with a named, a numbered and a privileged port.
func shopTarget() traffic.Target {
	port := func(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: target}
	}
	root := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.1", Selector: map[string]string{"app": "web", "tier": "front"},
			Ports: []corev1.ServicePort{
				port("http", 80, intstr.FromString("http")),
				port("admin", 8081, intstr.FromInt32(8081)),
				port("tls", 443, intstr.FromInt32(443)),
			},
		},
	}
	stable := root.DeepCopy()
	stable.Name, stable.Spec.ClusterIP, stable.Spec.Selector = "web-stable", "10.0.0.2", map[string]string{"version": "1"}
	split := &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "7c1d", Generation: 2},
		Spec:       splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "web-stable", Weight: 1}}},
	}
	resolved, _ := resolve.Split(split, resolve.Known{Services: map[string]*corev1.Service{"web": root, "web-stable": stable}})
	return traffic.Target{Split: split, Root: root, Resolved: resolved}
}

func routerOptions(t *testing.T) Options {
	t.Helper()
	o := Options{Image: "docker.io/serin-dev/serin:1.2.3", Reports: said{}}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjectsOfAProxy(t *testing.T) {
	var text strings.Builder
	options := routerOptions(t)
	options.Autoscaling, options.MaxReplicas = &Autoscaling{CPUUtilization: 70}, 5
	for _, p := range pieces() {
		wanted, err := p.wanted(shopTarget(), settings{Options: options, account: "2f6a"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := yaml.Marshal(wanted.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(out))
	}
	golden.Check(t, filepath.Join("testdata", "objects.yaml"), text.String())
}

func TestAPortAbove1024NeedsNoSysctl(t *testing.T) {
	target := shopTarget()
	target.Resolved.Ports = target.Resolved.Ports[:2]
	d, err := MakeDeployment(target, routerOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Spec.Template.Spec.SecurityContext.Sysctls; len(s) != 0 {
		t.Errorf("sysctls: %+v", s)
	}
}

func TestCheck(t *testing.T) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	type world struct {
		target   traffic.Target
		services map[string]*corev1.Service
	}
	for name, test := range map[string]struct {
		edit func(*world)
		want string
	}{
		"an ordinary Service can be split": {edit: func(*world) {}},
		"a name that is no label": {
			edit: func(w *world) { w.target.Resolved.Name = strings.Repeat("a", 64) }, want: "metadata.name",
		},
		"session affinity of the root Service": {
			edit: func(w *world) { w.target.Root.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, want: `"web" has sessionAffinity`,
		},
		"session affinity of a backend": {
			edit: func(w *world) {
				s := w.services["web-stable"]
				s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			}, want: `"web-stable" has sessionAffinity`,
		},
		"internalTrafficPolicy Local": {
			edit: func(w *world) { w.target.Root.Spec.InternalTrafficPolicy = &local }, want: "internalTrafficPolicy",
		},
		"externalTrafficPolicy Local": {
			edit: func(w *world) { w.target.Root.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
			want: "externalTrafficPolicy",
		},
		"addresses that are not ready": {
			edit: func(w *world) { w.target.Root.Spec.PublishNotReadyAddresses = true }, want: "publishNotReadyAddresses",
		},
		"the agent's port": {
			edit: func(w *world) { w.target.Resolved.Ports[1].TargetNumber = conf.AgentPort }, want: "15020",
		},
		"the agent's port name": {
			edit: func(w *world) { w.target.Resolved.Ports[0].TargetName = conf.AgentPortName }, want: conf.AgentPortName,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{target: shopTarget()}
			stable := w.target.Root.DeepCopy()
			stable.Name, stable.Spec.Selector = "web-stable", map[string]string{"version": "1"}
			w.services = map[string]*corev1.Service{"web": w.target.Root, "web-stable": stable}
			test.edit(w)
			problems := (&Router{options: routerOptions(t)}).Check(w.target.Resolved, w.services)
			if test.want == "" && len(problems) == 0 {
				return
			}
			if test.want == "" || len(problems) != 1 || !strings.Contains(problems[0].Message, test.want) {
				t.Fatalf("problems: %v, want one with %q", problems, test.want)
			}
			if problems[0].Condition != splitv1.ConditionAccepted || problems[0].Reason != splitv1.ReasonUnsupported {
				t.Errorf("%+v is no refusal", problems[0])
			}
		})
	}
}

func TestWhyAProxyDoesNotStart(t *testing.T) {
	waiting := func(reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}}}
	}
	unscheduled := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available",
	}}}}
	for want, pod := range map[string]*corev1.Pod{
		"container proxy: ErrImagePull":          waiting("ErrImagePull"),
		"not scheduled: 0/1 nodes are available": unscheduled,
		"":                                       waiting("ContainerCreating"),
	} {
		if got := waitingReason(pod); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhyAProxyIsNotMade(t *testing.T) {
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "too few"},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: pods"},
	}}}
	if got := refusal(d); got != "exceeded quota: pods" {
		t.Errorf("got %q", got)
	}
	d.Status.Conditions[1].Status = corev1.ConditionFalse
	if got := refusal(d); got != "" {
		t.Errorf("got %q of a failure that is over", got)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil || !strings.Contains(err.Error(), "--proxy-image") {
		t.Errorf("error %v", err)
	}
}

func TestKindsAreThoseThatAreMadeAndPods(t *testing.T) {
	kinds := (&Router{}).Kinds()
	for _, p := range pieces() {
		if !slices.Contains(kinds, p.gvk) {
			t.Errorf("%s is made but not watched", p.gvk)
		}
	}
	if len(kinds) != len(pieces())+1 {
		t.Errorf("kinds: %v", kinds)
	}
}
