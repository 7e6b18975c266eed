// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestASplitWhoseGroupsAreMissingIsLimitedAllTheSame(t *testing.T) {
	split := webSplit()
	got, _ := traffic.Resolve(split, traffic.Known{Services: web()})
	if len(split.Spec.Matches) == 0 || !got.Limited || len(got.Matches) != 0 {
		t.Errorf("limited %v with %d matches: its weights would share every request", got.Limited, len(got.Matches))
	}
}

func TestABackendNeedsThePortInTheSameProtocol(t *testing.T) {
	services := birds()
	services["birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	services["blue-birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	services["green-birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolTCP}}
	got, problems := traffic.Resolve(birdSplit("birds", blueGreen()...), traffic.Known{Services: services})
	if d := got.Ports[0].Destinations; len(d) != 1 || d[0].Service != "blue-birds" {
		t.Errorf("destinations %+v", d)
	}
	if len(problems) != 1 || problems[0].Reason != splitv1.ReasonPortMismatch {
		t.Errorf("problems %v", problems)
	}
	if got.Ports[0].Transport() != corev1.ProtocolUDP {
		t.Errorf("the port is carried by %s", got.Ports[0].Transport())
	}
}

func TestAPortWithoutATargetPortIsItsOwnTarget(t *testing.T) {
	services := birds()
	services["birds"].Spec.Ports = []corev1.ServicePort{port("grpc", 8080, intstr.IntOrString{})}
	got, _ := traffic.Resolve(birdSplit("birds", blueGreen()...), traffic.Known{Services: services})
	if p := got.Ports[0]; p.TargetNumber != 8080 || p.TargetName != "" {
		t.Errorf("target port %d %q", p.TargetNumber, p.TargetName)
	}
}

func TestTheWeightOfABackendIsTheLargestOfItsPorts(t *testing.T) {
	destination := func(weight int32) []traffic.Destination {
		return []traffic.Destination{{Service: "blue", Weight: weight}}
	}
	split := traffic.Split{Ports: []traffic.Port{{Destinations: destination(30)}, {Destinations: destination(70)}, {Destinations: destination(50)}}}
	if got := split.Weight("blue"); got != 70 {
		t.Errorf("got %d", got)
	}
}

func TestTheSplitWhoseProxiesAreSelectedHoldsAServiceThatAnotherOnePinned(t *testing.T) {
	root := selecting("app", "web")
	if err := traffic.SetPin(root, traffic.Pin{Split: "pins", Keys: map[string]string{"version": "1"}}); err != nil {
		t.Fatal(err)
	}
	if got := traffic.Holder(root); got != "pins" {
		t.Errorf("pinned, it is held by %q", got)
	}
	root.Spec.Selector[traffic.LabelProxy] = "leads"
	if got := traffic.Holder(root); got != "leads" {
		t.Errorf("behind proxies, it is held by %q", got)
	}
}

func TestALiveMirrorLeadsRequestsOn(t *testing.T) {
	other := live(aged("b", 3, "api", "blue"), "blue")
	other.Status.Mirror = &splitv1.MirrorStatus{Service: "web"}
	problems := traffic.Circle(aged("a", 2, "web", "api"), []traffic.OtherSplit{{Split: other}})
	if len(problems) != 1 || problems[0].Reason != splitv1.ReasonCircular {
		t.Errorf("problems %v", problems)
	}
}

func TestACookieLastsAtLeastASecond(t *testing.T) {
	for age, refused := range map[string]bool{"0s": true, "1s": false, "500ms": true, "1500ms": true} {
		split := birdSplit("birds", blueGreen()...)
		splitv1.SetRouting(split, splitv1.Routing{StickyCookie: &splitv1.StickyCookie{Name: "version", MaxAge: age}})
		_, problems := traffic.Resolve(split, traffic.Known{Services: birds()})
		if got := traffic.Refused(problems); got != refused || got && !strings.Contains(problems[0].Message, "not the age of a cookie") {
			t.Errorf("%s: %v", age, problems)
		}
	}
}
