// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

func portOf(weights ...int32) traffic.Port {
	port := traffic.Port{Protocol: traffic.ProtocolHTTP}
	for _, weight := range weights {
		port.Destinations = append(port.Destinations, traffic.Destination{Service: "blue", Weight: weight})
	}
	return port
}

func TestTheWeightOfABackendIsTheLargestOfItsPorts(t *testing.T) {
	split := traffic.Split{Ports: []traffic.Port{portOf(30), portOf(70), portOf(50)}}
	if got := split.Weight("blue"); got != 70 {
		t.Errorf("got %d", got)
	}
}

func TestAPortWithoutWeightOrDefaultIsUnroutable(t *testing.T) {
	defaulted := portOf(1)
	defaulted.Default = &traffic.Destination{Service: "green"}
	for name, test := range map[string]struct {
		split traffic.Split
		want  int
	}{
		"a backend with weight":                     {traffic.Split{Ports: []traffic.Port{portOf(1)}}, 0},
		"no backend with weight":                    {traffic.Split{Ports: []traffic.Port{portOf(0, 0)}}, 1},
		"no backend":                                {traffic.Split{Ports: []traffic.Port{portOf()}}, 1},
		"limited, with a default":                   {traffic.Split{Limited: true, Ports: []traffic.Port{defaulted}}, 0},
		"limited, and one of two ports has nothing": {traffic.Split{Limited: true, Ports: []traffic.Port{defaulted, portOf(1)}}, 1},
	} {
		if got := len(test.split.Unroutable()); got != test.want {
			t.Errorf("%s: %d ports are unroutable, want %d", name, got, test.want)
		}
	}
}

func TestTheWeightsOfAPortMayExceedAnInt32(t *testing.T) {
	if got := portOf(math.MaxInt32, math.MaxInt32).TotalWeight(); got != 2*math.MaxInt32 {
		t.Errorf("got %d", got)
	}
}

func TestAUDPPortIsCarriedByUDP(t *testing.T) {
	for protocol, want := range map[traffic.Protocol]corev1.Protocol{
		traffic.ProtocolHTTP: corev1.ProtocolTCP, traffic.ProtocolHTTP2: corev1.ProtocolTCP,
		traffic.ProtocolTCP: corev1.ProtocolTCP, traffic.ProtocolUDP: corev1.ProtocolUDP,
	} {
		if got := (traffic.Port{Protocol: protocol}).Transport(); got != want {
			t.Errorf("%s is carried by %s", protocol, got)
		}
	}
}
