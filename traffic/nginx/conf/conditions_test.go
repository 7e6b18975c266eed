// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func TestTheTargetPortsThatAPodCanListenOn(t *testing.T) {
	for number, want := range map[int32]bool{0: false, 1: true, AgentPort: false, 65535: true, 65536: false} {
		_, err := Listeners(traffic.Split{Ports: []traffic.Port{{Number: 80, TargetNumber: number, Protocol: traffic.ProtocolHTTP}}})
		if (err == nil) != want {
			t.Errorf("target port %d: %v", number, err)
		}
	}
}

func TestPortsWithOtherDefaultBackendsShareNoTargetPort(t *testing.T) {
	port := func(number int32, service string) traffic.Port {
		return traffic.Port{
			Number: number, TargetNumber: 8080, Protocol: traffic.ProtocolHTTP, Default: &traffic.Destination{Service: service},
			Destinations: []traffic.Destination{{Service: "canary", Weight: 1}},
		}
	}
	for service, want := range map[string]bool{"stable": true, "other": false} {
		_, err := Listeners(traffic.Split{Ports: []traffic.Port{port(80, "stable"), port(81, service)}})
		if (err == nil) != want {
			t.Errorf("with the default backends stable and %s: %v", service, err)
		}
	}
}

func TestASplitMayHaveSoManyConditionsAndNoMore(t *testing.T) {
	match := traffic.Match{Methods: []string{"GET"}}
	matches := slices.Repeat([]traffic.Match{match}, maxConditions/match.Conditions())
	if err := CheckMatches(matches); err != nil {
		t.Errorf("%d conditions: %v", maxConditions, err)
	}
	if err := CheckMatches(append(matches, match)); err == nil {
		t.Errorf("more than %d conditions are no error", maxConditions)
	}
}
