// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
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
		weights, protocols string
		want               map[string]share
		needs              []traffic.Ability
	}{
		"neither": {want: as(nil)},
		"no port is named": {
			weights: `{}`, protocols: ` {} `, want: as(nil),
		},
		"TCP and UDP of one number differ": {
			weights: `{"53/TCP": {"blue-birds": 1, "green-birds": 3}, "53/UDP": {"blue-birds": 0, "green-birds": 100}}`,
			want:    as(map[string]share{"tcp-dns": {1, 3, traffic.ProtocolTCP}, "dns": {0, 100, traffic.ProtocolUDP}}),
			needs:   []traffic.Ability{traffic.AbilityPortWeights},
		},
		"a backend that is not named has no weight": {
			weights: `{"9090/TCP": {"blue-birds": 7}}`,
			want:    as(map[string]share{"rest": {7, 0, traffic.ProtocolHTTP}}),
			needs:   []traffic.Ability{traffic.AbilityPortWeights},
		},
		"the largest weight, and a whole number with a fraction of 0": {
			weights: `{"9090/TCP": {"blue-birds": 2147483647, "green-birds": 1.0}}`,
			want:    as(map[string]share{"rest": {2147483647, 1, traffic.ProtocolHTTP}}),
			needs:   []traffic.Ability{traffic.AbilityPortWeights},
		},
		"protocols": {
			protocols: `{"8080/TCP": "HTTPS", "9090/TCP": "HTTP2", "53/TCP": "HTTP", "53/UDP": "UDP"}`,
			want: as(map[string]share{
				"grpc": {100, 900, traffic.ProtocolTCP}, "rest": {100, 900, traffic.ProtocolHTTP2}, "tcp-dns": {100, 900, traffic.ProtocolHTTP},
			}),
			needs: []traffic.Ability{traffic.AbilityPortProtocols},
		},
		"both": {
			weights: `{"8080/TCP": {"green-birds": 1}}`, protocols: `{"8080/TCP": "TCP"}`,
			want:  as(map[string]share{"grpc": {0, 1, traffic.ProtocolTCP}}),
			needs: []traffic.Ability{traffic.AbilityPortWeights, traffic.AbilityPortProtocols},
		},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			annotatePorts(split, test.weights, test.protocols)
			got, problems := traffic.Resolve(split, traffic.Known{Services: birdsAndDNS()})
			if diff := cmp.Diff(test.want, sharesOf(got), cmp.AllowUnexported(share{})); diff != "" || len(problems) > 0 {
				t.Errorf("%v (-want +got):\n%s", problems, diff)
			}
			if diff := cmp.Diff(test.needs, got.Needs()); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func annotatePorts(split *splitv1.TrafficSplit, weights, protocols string) {
	split.Annotations = map[string]string{}
	if weights != "" {
		split.Annotations[splitv1.AnnotationPortWeights] = weights
	}
	if protocols != "" {
		split.Annotations[splitv1.AnnotationPortProtocols] = protocols
	}
}

func TestPortWeightsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ annotation, says string }{
		"no JSON":                         {"80/TCP=blue-birds:1", "is not such a JSON object"},
		"nothing":                         {"", "is not such a JSON object"},
		"null":                            {"null", "is empty"},
		"a list":                          {`[1]`, "is not such a JSON object"},
		"JSON and more":                   {`{} {}`, "is not such a JSON object"},
		"a weight that is text":           {`{"9090/TCP": {"blue-birds": "1"}}`, "is not such a JSON object"},
		"a port twice":                    {`{"9090/TCP": {"blue-birds": 1}, "9090/TCP": {"green-birds": 1}}`, `says something twice (duplicate field "9090/TCP")`},
		"a backend twice":                 {`{"9090/TCP": {"blue-birds": 1, "blue-birds": 2}}`, "says something twice"},
		"a port that the Service has not": {`{"80/TCP": {"blue-birds": 1}}`, `Service "birds" has no port 80/TCP; name one of 8080/TCP, 9090/TCP, 53/TCP, 53/UDP`},
		"a port of the other transport":   {`{"9090/UDP": {"blue-birds": 1}}`, `has no port 9090/UDP`},
		"a port without transport":        {`{"9090": {"blue-birds": 1}}`, `port "9090": is not a port's number and transport; write it like 80/TCP`},
		"a port of SCTP":                  {`{"9090/SCTP": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"a port in another form":          {`{"09090/TCP": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"a port with a sign":              {`{"+9090/TCP": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"the port 0":                      {`{"0/TCP": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"a port beyond all":               {`{"65536/TCP": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"the name of a port":              {`{"rest": {"blue-birds": 1}}`, "is not a port's number and transport"},
		"a backend that is none":          {`{"9090/TCP": {"red-birds": 1}}`, `port "9090/TCP": "red-birds" is no backend of this split`},
		"the root Service":                {`{"9090/TCP": {"birds": 1}}`, `"birds" is no backend of this split`},
		"a negative weight":               {`{"9090/TCP": {"blue-birds": -1}}`, `the weight of "blue-birds" is not a whole number from 0 to 2147483647`},
		"a weight that is too large":      {`{"9090/TCP": {"blue-birds": 2147483648}}`, "is not a whole number from 0 to 2147483647"},
		"a weight beyond all numbers":     {`{"9090/TCP": {"blue-birds": 1e999}}`, "is not such a JSON object"},
		"half a weight":                   {`{"9090/TCP": {"blue-birds": 0.5}}`, "is not a whole number"},
		"no weight":                       {`{"9090/TCP": {"blue-birds": null}}`, "is not a whole number"},
		"only weights of 0":               {`{"9090/TCP": {"blue-birds": 0, "green-birds": 0}}`, `port "9090/TCP": at least one weight must be above 0`},
		"a port without backends":         {`{"9090/TCP": {}}`, "at least one weight must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			split.Annotations = map[string]string{splitv1.AnnotationPortWeights: test.annotation}
			refusedAs(t, split, "metadata.annotations[serin.dev/port-weights]: ", test.says)
		})
	}
}

func TestPortProtocolsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ annotation, says string }{
		"no JSON":                         {"TCP", "is not such a JSON object"},
		"null":                            {" null", "is empty"},
		"a port twice":                    {`{"53/TCP": "TCP", "53/TCP": "HTTP"}`, "says something twice"},
		"a port that the Service has not": {`{"80/TCP": "HTTP"}`, `Service "birds" has no port 80/TCP`},
		"a port in another form":          {`{"53/tcp": "TCP"}`, "is not a port's number and transport"},
		"a protocol that is none":         {`{"53/TCP": "http"}`, `"http" is no protocol; write one of HTTP, HTTP2, HTTPS, TCP, UDP`},
		"UDP on a port of TCP":            {`{"53/TCP": "UDP"}`, "UDP is not carried by TCP; write a protocol of TCP, or name the port 53/UDP"},
		"HTTP on a port of UDP":           {`{"53/UDP": "HTTP"}`, "HTTP is not carried by UDP"},
		"TCP on a port of UDP":            {`{"53/UDP": "TCP"}`, "TCP is not carried by UDP"},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			split.Annotations = map[string]string{splitv1.AnnotationPortProtocols: test.annotation}
			refusedAs(t, split, "metadata.annotations[serin.dev/port-protocols]: ", test.says)
		})
	}
}

// refusedAs expects one problem of a split, of the annotation.
func refusedAs(t *testing.T, split *splitv1.TrafficSplit, field, says string) {
	t.Helper()
	_, problems := traffic.Resolve(split, traffic.Known{Services: birdsAndDNS()})
	if len(problems) != 1 || !traffic.Refused(problems) || problems[0].Reason != splitv1.ReasonInvalid ||
		!strings.HasPrefix(problems[0].Message, field) || !strings.Contains(problems[0].Message, says) {
		t.Errorf("problems %v, want one of %s with %q", problems, field, says)
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
	split.Annotations = map[string]string{splitv1.AnnotationPortWeights: `{"9090/TCP": {"blue-birds": 1}}`}
	_, problems := traffic.Resolve(split, traffic.Known{Services: services})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `has 102 ports, and weights of their own can be given to at most 100`) {
		t.Errorf("problems: %v", problems)
	}
}

func TestAPortThatIsTakenForBytesHasNoRequestsToMirror(t *testing.T) {
	split := birdSplit("birds", blueGreen()...)
	annotatePorts(split, "", `{"9090/TCP": "HTTPS"}`)
	split.Annotations[splitv1.AnnotationMirror] = "green-birds=10"
	_, problems := traffic.Resolve(split, traffic.Known{Services: birds()})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "port 9090 (rest) of Service \"birds\" is not HTTP, so it has no requests to mirror") {
		t.Errorf("problems: %v", problems)
	}
}

func TestARouterWithOneWeightForAllPortsRefuses(t *testing.T) {
	split := traffic.Split{PortWeights: true, PortProtocols: true}
	problems := traffic.Lacking(split, "other", traffic.AbilityMatch)
	if len(problems) != 2 || !traffic.Refused(problems) ||
		!strings.Contains(problems[0].Message, "serin.dev/port-weights]: the router other can't give ports weights of their own") ||
		!strings.Contains(problems[1].Message, "serin.dev/port-protocols]: the router other takes what the Service says") {
		t.Errorf("problems: %v", problems)
	}
	if problems := traffic.Lacking(split, "nginx", traffic.AbilityPortWeights, traffic.AbilityPortProtocols); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestTheDigestTellsPortWeightsApart(t *testing.T) {
	digests := map[string]bool{}
	for _, test := range [][2]string{
		{},
		{`{"9090/TCP": {"blue-birds": 100, "green-birds": 900}}`}, // the same weights, known to the proxies of this version only
		{`{"9090/TCP": {"blue-birds": 1}}`},
		{`{"8080/TCP": {"blue-birds": 1}}`},
		{"", `{"9090/TCP": "TCP"}`},
		{"", `{"9090/TCP": "HTTP"}`},
	} {
		split := birdSplit("birds", blueGreen()...)
		annotatePorts(split, test[0], test[1])
		got, problems := traffic.Resolve(split, traffic.Known{Services: birds()})
		if len(problems) > 0 {
			t.Fatalf("%v: %v", test, problems)
		}
		digests[got.Digest()] = true
	}
	if len(digests) != 6 {
		t.Errorf("%d digests, want 6", len(digests))
	}
}

// FuzzPortRules checks that whatever the annotations hold, they are either refused, or
// every port has weights that sum to more than 0 and the protocol of its transport.
func FuzzPortRules(f *testing.F) {
	f.Add(`{"9090/TCP": {"blue-birds": 1, "green-birds": 0}}`, `{"53/UDP": "UDP"}`)
	f.Add(`{"53/UDP": {"blue-birds": 2147483647, "green-birds": 2147483647}}`, `{"9090/TCP": "HTTPS"}`)
	f.Add(`{"9090/TCP": {"blue-birds": 1e9}, "9090/TCP": {}}`, `{"\u0000": "\n"}`)
	f.Add(`{"9090/TCP": {"blue-birds": -0}}`, `{"9090/TCP": null}`)
	f.Fuzz(func(t *testing.T, weights, protocols string) {
		split := birdSplit("birds", blueGreen()...)
		split.Annotations = map[string]string{splitv1.AnnotationPortWeights: weights, splitv1.AnnotationPortProtocols: protocols}
		got, problems := traffic.Resolve(split, traffic.Known{Services: birdsAndDNS()})
		if traffic.Refused(problems) {
			if len(problems[0].Message) > 2000 {
				t.Errorf("a message of %d bytes", len(problems[0].Message))
			}
			return
		}
		if !json.Valid([]byte(weights)) || !json.Valid([]byte(protocols)) {
			t.Errorf("%q and %q are taken", weights, protocols)
		}
		for _, p := range got.Ports {
			if udp := p.Name == "dns"; p.TotalWeight() <= 0 || udp != (p.Protocol == traffic.ProtocolUDP) || len(p.Destinations) != 2 {
				t.Errorf("%q and %q give %+v", weights, protocols, p)
			}
			for _, d := range p.Destinations {
				if d.Weight < 0 {
					t.Errorf("%q gives %+v", weights, d)
				}
			}
		}
	})
}
