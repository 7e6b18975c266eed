// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

func numbered(port, target int32) traffic.Port {
	return traffic.Port{Number: port, TargetNumber: target, Protocol: traffic.ProtocolHTTP}
}

func named(port int32, target string) traffic.Port {
	return traffic.Port{Number: port, TargetName: target, Protocol: traffic.ProtocolHTTP}
}

// numbers of the listeners by name, or by target number.
func numbers(t *testing.T, ports ...traffic.Port) map[string]int32 {
	t.Helper()
	listeners, err := Listeners(testSplit(ports...))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]int32{}
	for _, l := range listeners {
		m[l.Name] = l.Number
	}
	return m
}

func TestANumberedTargetPortKeepsItsNumber(t *testing.T) {
	if diff := cmp.Diff(map[string]int32{"": 8080}, numbers(t, numbered(80, 8080))); diff != "" {
		t.Error(diff)
	}
}

func TestANamedTargetPortKeepsItsNumberWhenOthersComeAndGo(t *testing.T) {
	alone := numbers(t, named(80, "http"))["http"]
	if alone < firstNamedPort || alone >= firstNamedPort+namedPorts {
		t.Errorf("http is at %d, outside of the range of named ports", alone)
	}
	for _, others := range [][]traffic.Port{
		{named(80, "http"), named(81, "admin")},
		{named(81, "admin"), named(80, "http"), numbered(82, 9000)},
	} {
		if got := numbers(t, others...)["http"]; got != alone {
			t.Errorf("with %d others http is at %d, alone at %d", len(others)-1, got, alone)
		}
	}
}

func TestANamedTargetPortMovesAsideForANumberedOne(t *testing.T) {
	alone := numbers(t, named(80, "http"))["http"]
	got := numbers(t, named(80, "http"), numbered(81, alone))
	if got["http"] != alone+1 || got[""] != alone {
		t.Errorf("got %v, want the numbered port at %d and http next to it", got, alone)
	}
}

func TestPortsWithOneTargetShareAListener(t *testing.T) {
	for _, ports := range [][]traffic.Port{
		{named(80, "http"), named(81, "http")},
		{numbered(80, 8080), numbered(81, 8080)},
	} {
		if got := numbers(t, ports...); len(got) != 1 {
			t.Errorf("got listeners %v, want one", got)
		}
	}
}

func TestTCPAndUDPShareANumberAndNoListener(t *testing.T) {
	stable := testDestination("web-stable", 1)
	tcp, udp := testPort(53, traffic.ProtocolTCP, stable), testPort(53, traffic.ProtocolUDP, stable, testDestination("web-canary", 1))
	listeners, err := Listeners(testSplit(tcp, udp))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Listener{{Number: 53, Port: tcp}, {Number: 53, Port: udp}}, listeners); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := listeners[0].Transport(), listeners[1].Transport(); a != "TCP" || b != "UDP" {
		t.Errorf("transports %s and %s", a, b)
	}
}

func TestListenersRefused(t *testing.T) {
	stable, canary := testDestination("web-stable", 1), testDestination("web-canary", 1)
	for name, test := range map[string]struct {
		ports []traffic.Port
		want  string
	}{
		"no port":                     {nil, "has no port to serve"},
		"the agent's own port":        {[]traffic.Port{numbered(80, AgentPort)}, "target port 15020 of port 80 is the port of the proxy's own status"},
		"a target port of 0":          {[]traffic.Port{numbered(80, 0)}, "port 80 has the target port 0"},
		"one target, two protocols":   {[]traffic.Port{numbered(80, 8080), {Number: 81, TargetNumber: 8080, Protocol: traffic.ProtocolTCP}}, "are HTTP and TCP"},
		"one name for TCP and UDP":    {[]traffic.Port{named(53, "dns"), {Number: 53, TargetName: "dns", Protocol: traffic.ProtocolUDP}}, "such as dns-udp"},
		"one target, another backend": {[]traffic.Port{testPort(8080, traffic.ProtocolHTTP, stable), testPort(8080, traffic.ProtocolHTTP, canary)}, "not the same backends"},
		"one target, fewer backends":  {[]traffic.Port{testPort(8080, traffic.ProtocolHTTP, stable, canary), testPort(8080, traffic.ProtocolHTTP, canary)}, "not the same backends"},
		"one target, other weights": {[]traffic.Port{
			testPort(8080, traffic.ProtocolHTTP, stable, canary), testPort(8080, traffic.ProtocolHTTP, stable, testDestination("web-canary", 2)),
		}, "metadata.annotations[serin.dev/routing].ports: ports 80 and 80 share a target port"},
		"more ports than can be named": {manyPorts(), "more than a proxy can listen on"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Listeners(testSplit(test.ports...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func manyPorts() []traffic.Port {
	var ports []traffic.Port
	for i := range namedPorts {
		ports = append(ports, named(i+1, strings.Repeat("x", int(i)+1)))
	}
	return ports
}
