// SPDX-License-Identifier: Apache-2.0

package rolloutinit_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutinit"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/config/golden"
)

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name, d.Namespace, d.Spec.Replicas = "website", "shop", ptr.To[int32](6)
	d.Spec.Template.Labels = map[string]string{"app": "website", "tier": "front"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	return d
}

func service(name, label, value string) corev1.Service {
	s := corev1.Service{}
	s.Name, s.Spec.Selector = name, map[string]string{label: value}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}
	return s
}

func TestServiceOf(t *testing.T) {
	website, other, public := service("website", "app", "website"), service("blog", "app", "blog"), service("public", "tier", "front")
	noSelector, unnamed, noPorts := service("external", "", ""), service("website", "app", "website"), service("website", "app", "website")
	noSelector.Spec.Selector = nil
	unnamed.Spec.Ports[0].TargetPort = intstr.FromString("web")
	noPorts.Spec.Ports = nil
	long := service(strings.Repeat("w", 57), "app", "website")
	tests := []struct {
		name, chosen string
		services     []corev1.Service
		want, says   string
	}{
		{name: "the only one", services: []corev1.Service{other, website, noSelector}, want: "website"},
		{name: "none", services: []corev1.Service{other, noSelector}, says: "no Service in the namespace shop selects the pods of the Deployment website, which have the labels app=website,tier=front: create one"},
		{name: "two", services: []corev1.Service{website, public}, says: "2 Services select the pods of the Deployment website: public, website; say which one clients call, with --service"},
		{name: "one of two", chosen: "public", services: []corev1.Service{website, public}, want: "public"},
		{name: "one that selects other pods", chosen: "blog", services: []corev1.Service{website, other}, says: "--service: the Service blog does not select the pods"},
		{name: "one that is not there", chosen: "nosuch", services: []corev1.Service{website}, says: "--service: there is no Service nosuch in the namespace shop"},
		{name: "a port that no container names", services: []corev1.Service{unnamed}, says: `sends port 80 to the container port "web", and no container of the Deployment website has a port of that name: name it in spec.template`},
		{name: "no ports", services: []corev1.Service{noPorts}, says: "has no ports"},
		{name: "a long name", services: []corev1.Service{long}, says: "at most 56 are possible"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := rolloutinit.ServiceOf(deployment(), test.services, test.chosen)
			switch {
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("got %v, want %q", err, test.says)
			case test.says == "" && (err != nil || got.Name != test.want):
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	website := service("website", "app", "website")
	unnamed := service("website", "app", "website")
	unnamed.Spec.Ports[0].Name = ""
	long := deployment()
	long.Name, long.Spec.Replicas = strings.Repeat("w", 51)+"--site", nil
	steps := []rolloutview.ProposedStep{
		{Weight: 20, Hold: time.Hour}, {Weight: 50, Hold: 45 * time.Minute, MinDetectableEffect: "0.47pp", Detects: true},
	}
	for name, d := range map[string]rolloutinit.Draft{
		"measured": {
			Deployment: deployment(), Service: &website, Traffic: rolloutview.Traffic{PerSecond: 41.96, FailureRate: 0.00123},
			Proposal: rolloutview.Proposal{Steps: steps, Tolerance: "0.5pp"}, Wanted: "0.5pp",
		},
		"assumed": {
			Deployment: long, Service: &unnamed, Traffic: rolloutinit.AssumedTraffic(), Unmeasured: "this cluster does not serve TrafficMetrics",
			Proposal: rolloutview.Proposal{Steps: steps, Tolerance: "2pp", Raised: true}, Wanted: "0.5pp",
		},
		"given": {
			Deployment: deployment(), Service: &website, Traffic: rolloutview.Traffic{PerSecond: 5}, Given: true,
			Proposal: rolloutview.Proposal{Steps: steps[:1], Tolerance: "0.5pp"}, Wanted: "0.5pp",
		},
	} {
		got, err := rolloutinit.Write(d)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".yaml"), got)
	}
}
