// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

func TestPortsOfASplitHaveWeightsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s, _ := birds(t)
	for _, name := range []string{"birds", "birds-blue", "birds-green"} {
		svc := s.get(t.Context(), name, &corev1.Service{}).(*corev1.Service)
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)})
		if err := admin.Update(t.Context(), svc); err != nil {
			t.Fatal(err)
		}
	}
	weigh := func(value string) {
		t.Helper()
		ts := s.birdSplit()
		base := ts.DeepCopy()
		metav1.SetMetaDataAnnotation(&ts.ObjectMeta, splitv1.AnnotationRouting, "ports: "+value)
		if err := admin.Patch(t.Context(), ts, client.MergeFrom(base)); err != nil {
			t.Fatal(err)
		}
	}
	inEffect := func(what string, blue, green []splitv1.PortStatus) {
		t.Helper()
		s.eventually(what, func(context.Context) bool {
			ts := s.birdSplit()
			b := ts.Status.Backends
			return meta.IsStatusConditionTrue(ts.Status.Conditions, splitv1.ConditionProgrammed) &&
				meta.IsStatusConditionTrue(ts.Status.Conditions, splitv1.ConditionAccepted) &&
				len(b) == 2 && cmp.Equal(b[0].Ports, blue) && cmp.Equal(b[1].Ports, green)
		})
	}
	ports := func(http, dns int32) []splitv1.PortStatus {
		return []splitv1.PortStatus{{Port: 80, Protocol: "TCP", Weight: http}, {Port: 53, Protocol: "UDP", Weight: dns}}
	}

	weigh(`{"53/UDP": {"weights": {"birds-blue": 0, "birds-green": 100}}}`)
	inEffect("the weights of one port", ports(9, 0), ports(1, 100))
	generation := s.birdSplit().Generation

	for value, says := range map[string]string{
		`{"54/UDP": {"weights": {"birds-blue": 1}}}`: `Service "birds" has no port 54/UDP; name one of 80/TCP, 53/UDP, or remove it`,
		`{"53/UDP": {"weights": {"birds-red": 1}}}`:  `"birds-red" is not a backend of this split; name one of spec.backends`,
	} {
		weigh(value)
		s.eventually("refused: "+says, func(context.Context) bool {
			c := meta.FindStatusCondition(s.birdSplit().Status.Conditions, splitv1.ConditionAccepted)
			return c.Status == metav1.ConditionFalse && c.Reason == splitv1.ReasonInvalid &&
				strings.HasPrefix(c.Message, "metadata.annotations[serin.dev/routing].ports") && strings.Contains(c.Message, says)
		})
		if b := s.birdSplit().Status.Backends; !cmp.Equal(b[1].Ports, ports(1, 100)) {
			t.Errorf("what was in effect does not stay: %+v", b)
		}
	}

	weigh(`{"53/UDP": {"weights": {"birds-blue": 3, "birds-green": 1}}, "80/TCP": {"weights": {"birds-blue": 1}}}`)
	inEffect("the weights of both ports", ports(1, 3), ports(0, 1))
	if got := s.birdSplit().Generation; got != generation {
		t.Errorf("generation %d, want %d: the status would be about another one", got, generation)
	}
}
