// SPDX-License-Identifier: Apache-2.0

package tags_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
)

func split() *splitv1.TrafficSplit {
	s := &splitv1.TrafficSplit{Spec: splitv1.TrafficSplitSpec{Service: "website.shop.svc.cluster.local"}}
	s.Namespace, s.Name, s.UID = "shop", "website", "uid-of-the-split"
	return s
}

func service(name string, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: ports},
	}
}

func port(name string, number int32, target string) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromString(target), Protocol: corev1.ProtocolTCP}
}

var (
	root   = service("website", map[string]string{"app": "website"}, port("http", 80, "proxy"), port("admin", 81, "proxy-admin"))
	second = service("website-v2", map[string]string{"app": "website", "version": "2"}, port("web", 80, "http"))
)

func TestTheServiceOfATagReachesTheBackendOnThePortsOfTheRoot(t *testing.T) {
	got, err := tags.Make("candidate", split(), root, second)
	if err != nil {
		t.Fatal(err)
	}
	controls := true
	want := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "candidate-website", Labels: map[string]string{tags.Label: "candidate"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "split.smi-spec.io/v1alpha4", Kind: "TrafficSplit", Name: "website", UID: "uid-of-the-split", Controller: &controls,
			}},
		},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: map[string]string{"app": "website", "version": "2"},
			Ports:    []corev1.ServicePort{port("http", 80, "http")},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPortsOfOneNumberAreToldApartByTheirProtocols(t *testing.T) {
	dns := func(protocol corev1.Protocol, name, target string) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: 53, TargetPort: intstr.FromString(target)}
	}
	resolver := service("dns", map[string]string{"app": "dns"}, dns(corev1.ProtocolUDP, "dns", "proxy"), dns("", "dns-tcp", "proxy-tcp"))
	backend := service("dns-v2", map[string]string{"version": "2"}, dns(corev1.ProtocolTCP, "tcp", "stream"), dns(corev1.ProtocolUDP, "udp", "datagrams"))
	got, err := tags.Make("candidate", split(), resolver, backend)
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.ServicePort{dns(corev1.ProtocolUDP, "dns", "datagrams"), dns(corev1.ProtocolTCP, "dns-tcp", "stream")}
	if diff := cmp.Diff(want, got.Spec.Ports); diff != "" {
		t.Error(diff)
	}
}

func TestAServiceOfTheSplitWithoutATagIsNotOneOfATag(t *testing.T) {
	made, err := tags.Make("candidate", split(), root, second)
	if err != nil {
		t.Fatal(err)
	}
	if !tags.Made(made, split()) {
		t.Error("the Service that was made for the tag is not recognised")
	}
	delete(made.Labels, tags.Label)
	if tags.Made(made, split()) {
		t.Error("a Service without the label of tags counts as one that was made for a tag")
	}
}

func TestTheOwnerIsNamedInTheVersionThatTheClusterServes(t *testing.T) {
	served := split()
	served.SetGroupVersionKind(schema.GroupVersionKind{Group: "split.smi-spec.io", Version: "v1alpha2", Kind: "TrafficSplit"})
	made, err := tags.Make("candidate", served, root, second)
	if err != nil {
		t.Fatal(err)
	}
	if got := made.OwnerReferences[0].APIVersion; got != "split.smi-spec.io/v1alpha2" {
		t.Errorf("the owner is of %s", got)
	}
}

func TestATagIsRefusedWhereItsServiceCouldNotAnswer(t *testing.T) {
	external := service("website-v2", map[string]string{"app": "website"}, port("http", 80, "http"))
	external.Spec.Type = corev1.ServiceTypeExternalName
	tests := []struct {
		name, tag string
		backend   *corev1.Service
		want      string
	}{
		{"a name that is too long", strings.Repeat("a", 60), second, "take another tag"},
		{"a backend without a selector", "new", service("website-v2", nil, port("http", 80, "http")), "selects no pods"},
		{"a backend outside of the cluster", "new", external, "selects no pods"},
		{"a backend with other ports", "new", service("website-v2", map[string]string{"app": "website"}, port("http", 8080, "http")), "none of the ports of website"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := tags.Make(test.tag, split(), root, test.backend); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAServiceOfAnotherOwnerIsNeverTaken(t *testing.T) {
	want, err := tags.Make("candidate", split(), root, second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tags.Adopt(service("candidate-website", nil), want, split()); !errors.Is(err, tags.ErrForeign) {
		t.Errorf("got %v", err)
	}
	namesake := split()
	namesake.UID = "another"
	if _, err := tags.Adopt(want, want, namesake); !errors.Is(err, tags.ErrForeign) {
		t.Errorf("one of a split of the same name: got %v", err)
	}
}

func TestAServiceThatIsThereKeepsItsAddress(t *testing.T) {
	have, err := tags.Make("candidate", split(), root, service("website-v1", map[string]string{"version": "1"}, port("http", 80, "old")))
	if err != nil {
		t.Fatal(err)
	}
	have.Spec.ClusterIP, have.ResourceVersion = "10.0.0.7", "12"
	want, err := tags.Make("candidate", split(), root, second)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tags.Adopt(have, want, split())
	if err != nil {
		t.Fatal(err)
	}
	want.Spec.ClusterIP, want.ResourceVersion = "10.0.0.7", "12"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheAnnotationHasTheTags(t *testing.T) {
	annotations := map[string]string{"other": "stays"}
	written := tags.Write(annotations, map[string]string{"stable": "website-v1", "candidate": "website-v2"})
	want := map[string]string{"other": "stays", tags.Annotation: `{"candidate":"website-v2","stable":"website-v1"}`}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Error(diff)
	}
	read, err := tags.Read(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"stable": "website-v1", "candidate": "website-v2"}, read); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(annotations, tags.Write(written, nil)); diff != "" {
		t.Errorf("without tags: %s", diff)
	}
	if got := tags.Of(map[string]string{"b": "x", "a": "x", "c": "y"}, "x"); got != "a,b" {
		t.Errorf("got %q", got)
	}
}

func TestAnAnnotationThatCanNotBeReadIsToldOf(t *testing.T) {
	for _, text := range []string{"candidate", `["a"]`, `{"a":1}`, `{"a":""}`, `{"":"a"}`} {
		if got, err := tags.Read(map[string]string{tags.Annotation: text}); err == nil || !strings.Contains(err.Error(), "fix or remove it") {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}
