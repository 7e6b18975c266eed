// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// birdsAndDNS are birds with two more ports: 53 by TCP and by UDP.
func birdsAndDNS() map[string]*corev1.Service {
	services := birds()
	for _, s := range services {
		tcp, udp := port("tcp-dns", 53, intstr.FromInt32(53)), port("dns", 53, intstr.FromInt32(53))
		udp.Protocol = corev1.ProtocolUDP
		s.Spec.Ports = append(s.Spec.Ports, tcp, udp)
	}
	return services
}

// share is the weights of blue and green on one port, and what it is taken for.
type share struct {
	blue, green int32
	protocol    traffic.Protocol
}

func sharesOf(split traffic.Split) map[string]share {
	shares := map[string]share{}
	for _, p := range split.Ports {
		s := share{protocol: p.Protocol}
		for _, d := range p.Destinations {
			if d.Service == "blue-birds" {
				s.blue = d.Weight
			} else {
				s.green = d.Weight
			}
		}
		shares[p.Name] = s
	}
	return shares
}

func TestPortsHaveWeightsAndProtocolsOfTheirOwn(t *testing.T) {
	as := func(changes map[string]share) map[string]share {
		all := map[string]share{
			"grpc": {100, 900, traffic.ProtocolHTTP2}, "rest": {100, 900, traffic.ProtocolHTTP},
			"tcp-dns": {100, 900, traffic.ProtocolTCP}, "dns": {100, 900, traffic.ProtocolUDP},
		}
		maps.Copy(all, changes)
		return all
	}
	for name, test := range map[string]struct {
		ports string
		want  map[string]share
		needs []traffic.Ability
	}{
		"neither": {want: as(nil)},
		"TCP and UDP of one number differ": {
			ports: `{"53/TCP": {"weights": {"blue-birds": 1, "green-birds": 3}}, "53/UDP": {"weights": {"blue-birds": 0, "green-birds": 100}}}`,
			want:  as(map[string]share{"tcp-dns": {1, 3, traffic.ProtocolTCP}, "dns": {0, 100, traffic.ProtocolUDP}}),
			needs: []traffic.Ability{traffic.AbilityPortWeights},
		},
		"a backend that is not named has no weight": {
			ports: `{"9090/TCP": {"weights": {"blue-birds": 7}}}`,
			want:  as(map[string]share{"rest": {7, 0, traffic.ProtocolHTTP}}),
			needs: []traffic.Ability{traffic.AbilityPortWeights},
		},
		"the largest weight, and a whole number with a fraction of 0": {
			ports: `{"9090/TCP": {"weights": {"blue-birds": 2147483647, "green-birds": 1.0}}}`,
			want:  as(map[string]share{"rest": {2147483647, 1, traffic.ProtocolHTTP}}),
			needs: []traffic.Ability{traffic.AbilityPortWeights},
		},
		"protocols": {
			ports: `{"8080/TCP": {"protocol": "HTTPS"}, "9090/TCP": {"protocol": "HTTP2"}, "53/TCP": {"protocol": "HTTP"}, "53/UDP": {"protocol": "UDP"}}`,
			want: as(map[string]share{
				"grpc": {100, 900, traffic.ProtocolTCP}, "rest": {100, 900, traffic.ProtocolHTTP2}, "tcp-dns": {100, 900, traffic.ProtocolHTTP},
			}),
			needs: []traffic.Ability{traffic.AbilityPortProtocols},
		},
		"both": {
			ports: `{"8080/TCP": {"weights": {"green-birds": 1}, "protocol": "TCP"}}`,
			want:  as(map[string]share{"grpc": {0, 1, traffic.ProtocolTCP}}),
			needs: []traffic.Ability{traffic.AbilityPortWeights, traffic.AbilityPortProtocols},
		},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			routePorts(split, test.ports)
			got, problems := resolve.Split(split, resolve.Known{Services: birdsAndDNS()})
			if diff := cmp.Diff(test.want, sharesOf(got), cmp.AllowUnexported(share{})); diff != "" || len(problems) > 0 {
				t.Errorf("%v (-want +got):\n%s", problems, diff)
			}
			if diff := cmp.Diff(test.needs, got.Needs()); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

// routePorts gives a split the rules of ports in a text; "" for none.
func routePorts(split *splitv1.TrafficSplit, ports string) {
	if ports != "" {
		split.Annotations = map[string]string{splitv1.AnnotationRouting: "ports: " + ports}
	}
}

func TestPortWeightsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ ports, says string }{
		"no JSON":                         {"80/TCP=blue-birds:1", "can't be read"},
		"a list":                          {`[1]`, "can't be read"},
		"JSON and more":                   {`{} {}`, "can't be read"},
		"a weight that is text":           {`{"9090/TCP": {"weights": {"blue-birds": "1"}}}`, "can't be read"},
		"a port twice":                    {`{"9090/TCP": {"weights": {"blue-birds": 1}}, "9090/TCP": {"weights": {"green-birds": 1}}}`, `key "9090/TCP" already set in map`},
		"a backend twice":                 {`{"9090/TCP": {"weights": {"blue-birds": 1, "blue-birds": 2}}}`, `key "blue-birds" already set in map`},
		"a port that the Service has not": {`{"80/TCP": {"weights": {"blue-birds": 1}}}`, `Service "birds" has no port 80/TCP; name one of 8080/TCP, 9090/TCP, 53/TCP, 53/UDP`},
		"a port of the other transport":   {`{"9090/UDP": {"weights": {"blue-birds": 1}}}`, `has no port 9090/UDP`},
		"a port without transport":        {`{"9090": {"weights": {"blue-birds": 1}}}`, `ports["9090"]: is not a port's number and transport; write it like 80/TCP`},
		"a port of SCTP":                  {`{"9090/SCTP": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"a port in another form":          {`{"09090/TCP": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"a port with a sign":              {`{"+9090/TCP": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"the port 0":                      {`{"0/TCP": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"a port beyond all":               {`{"65536/TCP": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"the name of a port":              {`{"rest": {"weights": {"blue-birds": 1}}}`, "is not a port's number and transport"},
		"a backend that is none":          {`{"9090/TCP": {"weights": {"red-birds": 1}}}`, `ports["9090/TCP"]: weights: "red-birds" is not a backend of this split`},
		"the root Service":                {`{"9090/TCP": {"weights": {"birds": 1}}}`, `"birds" is not a backend of this split`},
		"a negative weight":               {`{"9090/TCP": {"weights": {"blue-birds": -1}}}`, `the weight -1 is not a whole number from 0 to 2147483647`},
		"a weight that is too large":      {`{"9090/TCP": {"weights": {"blue-birds": 2147483648}}}`, "is not a whole number from 0 to 2147483647"},
		"a weight beyond all numbers":     {`{"9090/TCP": {"weights": {"blue-birds": 1e999}}}`, "can't be read"},
		"half a weight":                   {`{"9090/TCP": {"weights": {"blue-birds": 0.5}}}`, "is not a whole number"},
		"no weight":                       {`{"9090/TCP": {"weights": {"blue-birds": null}}}`, "is not a whole number"},
		"only weights of 0":               {`{"9090/TCP": {"weights": {"blue-birds": 0, "green-birds": 0}}}`, `ports["9090/TCP"]: weights: at least one weight must be above 0`},
		"a port without backends":         {`{"9090/TCP": {"weights": {}}}`, "at least one weight must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			routePorts(split, test.ports)
			refusedAs(t, split, test.says)
		})
	}
}

func TestPortProtocolsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ ports, says string }{
		"no JSON":                         {"TCP", "can't be read"},
		"no rule":                         {`{"53/TCP": {}}`, "is empty; give it a protocol or weights"},
		"a port twice":                    {`{"53/TCP": {"protocol": "TCP"}, "53/TCP": {"protocol": "HTTP"}}`, `key "53/TCP" already set in map`},
		"a port that the Service has not": {`{"80/TCP": {"protocol": "HTTP"}}`, `Service "birds" has no port 80/TCP`},
		"a port in another form":          {`{"53/tcp": {"protocol": "TCP"}}`, "is not a port's number and transport"},
		"a protocol that is none":         {`{"53/TCP": {"protocol": "http"}}`, `"http" is not a protocol; write one of HTTP, HTTP2, HTTPS, TCP, UDP`},
		"UDP on a port of TCP":            {`{"53/TCP": {"protocol": "UDP"}}`, "UDP is not carried by TCP; write a protocol of TCP, or name the port 53/UDP"},
		"HTTP on a port of UDP":           {`{"53/UDP": {"protocol": "HTTP"}}`, "HTTP is not carried by UDP"},
		"TCP on a port of UDP":            {`{"53/UDP": {"protocol": "TCP"}}`, "TCP is not carried by UDP"},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			routePorts(split, test.ports)
			refusedAs(t, split, test.says)
		})
	}
}

// refusedAs expects one problem of a split, of its routing.
func refusedAs(t *testing.T, split *splitv1.TrafficSplit, says string) {
	t.Helper()
	_, problems := resolve.Split(split, resolve.Known{Services: birdsAndDNS()})
	if len(problems) != 1 || !traffic.Refused(problems) || problems[0].Reason != splitv1.ReasonInvalid ||
		!strings.HasPrefix(problems[0].Message, "metadata.annotations[serin.dev/routing]") || !strings.Contains(problems[0].Message, says) {
		t.Errorf("problems %v, want one with %q", problems, says)
	}
}

func TestWeightsOfPortsFitAStatus(t *testing.T) {
	services := birds()
	for number := range int32(100) {
		for _, s := range services {
			s.Spec.Ports = append(s.Spec.Ports, port("", 20000+number, intstr.IntOrString{}))
		}
	}
	split := birdSplit("birds", blueGreen()...)
	routePorts(split, `{"9090/TCP": {"weights": {"blue-birds": 1}}}`)
	_, problems := resolve.Split(split, resolve.Known{Services: services})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `has 102 ports, and weights of their own can be given to at most 100`) {
		t.Errorf("problems: %v", problems)
	}
}

func TestAPortThatIsTakenForBytesHasNoRequestsToMirror(t *testing.T) {
	split := birdSplit("birds", blueGreen()...)
	routePorts(split, `{"9090/TCP": {"protocol": "HTTPS"}}`)
	splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "green-birds", Percent: 10} })
	_, problems := resolve.Split(split, resolve.Known{Services: birds()})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "port 9090 (rest) of Service \"birds\" is not HTTP, so it has no requests to mirror") {
		t.Errorf("problems: %v", problems)
	}
}

func TestARouterWithOneWeightForAllPortsRefuses(t *testing.T) {
	split := traffic.Split{PortWeights: true, PortProtocols: true}
	problems := traffic.Lacking(split, "other", traffic.AbilityMatch)
	if len(problems) != 2 || !traffic.Refused(problems) ||
		!strings.Contains(problems[0].Message, "serin.dev/routing].ports: the router other can't give ports weights of their own") ||
		!strings.Contains(problems[1].Message, "serin.dev/routing].ports: the router other takes what the Service says") {
		t.Errorf("problems: %v", problems)
	}
	if problems := traffic.Lacking(split, "nginx", traffic.AbilityPortWeights, traffic.AbilityPortProtocols); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestTheDigestTellsPortWeightsApart(t *testing.T) {
	digests := map[string]bool{}
	for _, ports := range []string{
		"",
		`{"9090/TCP": {weights: {"blue-birds": 100, "green-birds": 900}}}`, // the same weights, known to the proxies of this version only
		`{"9090/TCP": {weights: {"blue-birds": 1}}}`,
		`{"8080/TCP": {weights: {"blue-birds": 1}}}`,
		`{"9090/TCP": {protocol: TCP}}`,
		`{"9090/TCP": {protocol: HTTP}}`,
	} {
		split := birdSplit("birds", blueGreen()...)
		routePorts(split, ports)
		got, problems := resolve.Split(split, resolve.Known{Services: birds()})
		if len(problems) > 0 {
			t.Fatalf("%s: %v", ports, problems)
		}
		digests[got.Digest()] = true
	}
	if len(digests) != 6 {
		t.Errorf("%d digests, want 6", len(digests))
	}
}

// FuzzRouting checks that whatever the annotation holds, it is either refused, or every
// port has weights that sum to more than 0 and the protocol of its transport.
func FuzzRouting(f *testing.F) {
	f.Add(`ports: {"9090/TCP": {weights: {"blue-birds": 1, "green-birds": 0}}, "53/UDP": {protocol: UDP}}`)
	f.Add(`{"ports": {"53/UDP": {"weights": {"blue-birds": 2147483647, "green-birds": 2147483647}}, "9090/TCP": {"protocol": "HTTPS"}}}`)
	f.Add(`{"ports": {"9090/TCP": {"weights": {"blue-birds": 1e9}}, "9090/TCP": {}, "\u0000": {"protocol": "\n"}}}`)
	f.Add("ports:\n  9090/TCP:\n    weights: {blue-birds: -0}\n    protocol:\nmirror: {service: green-birds, percent: 101}\nstickyCookie: {name: a, maxAge: 1s}")
	f.Fuzz(func(t *testing.T, text string) {
		split := birdSplit("birds", blueGreen()...)
		split.Annotations = map[string]string{splitv1.AnnotationRouting: text}
		got, problems := resolve.Split(split, resolve.Known{Services: birdsAndDNS()})
		if traffic.Refused(problems) {
			if len(problems[0].Message) > 2000 {
				t.Errorf("a message of %d bytes", len(problems[0].Message))
			}
			return
		}
		for _, p := range got.Ports {
			if udp := p.Name == "dns"; p.TotalWeight() <= 0 || udp != (p.Protocol == traffic.ProtocolUDP) || len(p.Destinations) != 2 {
				t.Errorf("%q gives %+v", text, p)
			}
			for _, d := range p.Destinations {
				if d.Weight < 0 {
					t.Errorf("%q gives %+v", text, d)
				}
			}
		}
		if m := got.Mirror; m != nil && (m.Percent < 1 || m.Percent > 100) {
			t.Errorf("%q gives %+v", text, m)
		}
	})
}
