// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

func TestASplitWhoseGroupsAreMissingIsLimitedAllTheSame(t *testing.T) {
	split := webSplit()
	got, _ := resolve.Split(split, resolve.Known{Services: web()})
	if len(split.Spec.Matches) == 0 || !got.Limited || len(got.Matches) != 0 {
		t.Errorf("limited %v with %d matches: its weights would share every request", got.Limited, len(got.Matches))
	}
}

func TestABackendNeedsThePortInTheSameProtocol(t *testing.T) {
	services := birds()
	services["birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	services["blue-birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}
	services["green-birds"].Spec.Ports = []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolTCP}}
	got, problems := resolve.Split(birdSplit("birds", blueGreen()...), resolve.Known{Services: services})
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
	got, _ := resolve.Split(birdSplit("birds", blueGreen()...), resolve.Known{Services: services})
	if p := got.Ports[0]; p.TargetNumber != 8080 || p.TargetName != "" {
		t.Errorf("target port %d %q", p.TargetNumber, p.TargetName)
	}
}

func TestALiveMirrorLeadsRequestsOn(t *testing.T) {
	other := live(aged("b", 3, "api", "blue"), "blue")
	other.Status.Mirror = &splitv1.MirrorStatus{Service: "web"}
	problems := resolve.Circle(aged("a", 2, "web", "api"), []resolve.OtherSplit{{Split: other}})
	if len(problems) != 1 || problems[0].Reason != splitv1.ReasonCircular {
		t.Errorf("problems %v", problems)
	}
}

func TestACookieLastsAtLeastASecond(t *testing.T) {
	for age, refused := range map[string]bool{"0s": true, "1s": false, "500ms": true, "1500ms": true} {
		split := birdSplit("birds", blueGreen()...)
		splitv1.SetRouting(split, splitv1.Routing{StickyCookie: &splitv1.StickyCookie{Name: "version", MaxAge: age}})
		_, problems := resolve.Split(split, resolve.Known{Services: birds()})
		if got := traffic.Refused(problems); got != refused || got && !strings.Contains(problems[0].Message, "not the age of a cookie") {
			t.Errorf("%s: %v", age, problems)
		}
	}
}
