// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

func service(name, address string, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec:       corev1.ServiceSpec{ClusterIP: address, Selector: selector, Ports: ports},
	}
}

func port(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
}

// birds are the Services of the specification's example, with a root Service, a
// blue and a green version.
func birds() map[string]*corev1.Service {
	all := map[string]string{"app": "birds"}
	color := func(c string) map[string]string { return map[string]string{"app": "birds", "color": c} }
	return map[string]*corev1.Service{
		"birds": service("birds", "10.0.0.1", all,
			port("grpc", 8080, intstr.FromInt32(8080)), port("rest", 9090, intstr.FromString("rest"))),
		"blue-birds": service("blue-birds", "10.0.0.2", color("blue"),
			port("grpc", 8080, intstr.FromInt32(8080)), port("rest", 9090, intstr.FromInt32(9090))),
		"green-birds": service("green-birds", "10.0.0.3", color("green"),
			port("grpc", 8080, intstr.FromInt32(8081)), port("rest", 9090, intstr.FromInt32(9090))),
	}
}

func birdSplit(root string, backends ...splitv1.Backend) *splitv1.TrafficSplit {
	return &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "birds", Generation: 3},
		Spec:       splitv1.TrafficSplitSpec{Service: root, Backends: backends},
	}
}

func blueGreen() []splitv1.Backend {
	return []splitv1.Backend{{Service: "blue-birds", Weight: 100}, {Service: "green-birds", Weight: 900}}
}

func TestResolveGivesEveryPortOfTheRootServiceItsDestinations(t *testing.T) {
	for _, root := range []string{"birds", "birds.shop", "birds.shop.svc", "birds.shop.svc.cluster.local", "birds.shop.svc.example.org"} {
		t.Run(root, func(t *testing.T) {
			got, problems := resolve.Split(birdSplit(root, blueGreen()...), resolve.Known{Services: birds()})
			want := traffic.Split{
				NamespacedName: types.NamespacedName{Namespace: "shop", Name: "birds"}, Generation: 3, Root: "birds",
				Ports: []traffic.Port{
					{Name: "grpc", Number: 8080, TargetNumber: 8080, Protocol: traffic.ProtocolHTTP2, Destinations: []traffic.Destination{
						{Service: "blue-birds", Address: "10.0.0.2", Port: 8080, Weight: 100},
						{Service: "green-birds", Address: "10.0.0.3", Port: 8080, Weight: 900},
					}},
					{Name: "rest", Number: 9090, TargetName: "rest", Protocol: traffic.ProtocolHTTP, Destinations: []traffic.Destination{
						{Service: "blue-birds", Address: "10.0.0.2", Port: 9090, Weight: 100},
						{Service: "green-birds", Address: "10.0.0.3", Port: 9090, Weight: 900},
					}},
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("split (-want +got):\n%s", diff)
			}
			if len(problems) != 0 || len(got.Unroutable()) != 0 {
				t.Errorf("problems: %v, unroutable: %v", problems, got.Unroutable())
			}
		})
	}
}

// A problem is told by its condition, reason and a part of its message.
type problem struct{ condition, reason, part string }

func TestResolveRefusesOrLeavesOut(t *testing.T) {
	type edit func(*splitv1.TrafficSplit, map[string]*corev1.Service)
	refused := func(reason, part string) []problem { return []problem{{splitv1.ConditionAccepted, reason, part}} }
	left := func(reason, part string) problem { return problem{splitv1.ConditionResolvedRefs, reason, part} }
	for name, test := range map[string]struct {
		edit edit
		want []problem
		// takers are the backends that each port is left with.
		takers string
	}{
		"a root Service of another namespace is refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) {
				s.Spec.Service = "birds.zoo.svc.cluster.local"
			},
			want: refused(splitv1.ReasonInvalid, `not a Service in namespace "shop"`),
		},
		"a domain that is no Service's is refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) { s.Spec.Service = "birds.shop.example.org" },
			want: refused(splitv1.ReasonInvalid, "birds.shop.svc"),
		},
		"an empty root is refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) { s.Spec.Service = "" },
			want: refused(splitv1.ReasonInvalid, "names no Service"),
		},
		"a split to its own root is refused, however the root is written": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) {
				s.Spec.Service, s.Spec.Backends[0].Service = "birds.shop.svc", "birds"
			},
			want: refused(splitv1.ReasonInvalid, "own root Service"),
		},
		"a backend that selects what the root selects is refused, for it would be a loop": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				delete(s["blue-birds"].Spec.Selector, "color")
			},
			want: refused(splitv1.ReasonInvalid, "selects all pods"),
		},
		"a root of one version alone may have a backend that selects the same": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Selector = map[string]string{"app": "birds", "color": "blue"}
			},
			takers: "blue-birds green-birds; blue-birds green-birds",
		},
		"but not while another backend does not exist, which may select among its pods": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Selector = map[string]string{"app": "birds", "color": "blue"}
				delete(s, "green-birds")
			},
			want: refused(splitv1.ReasonInvalid, "selects all pods"),
		},
		"nor one that selects the pods of other apps too": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Selector = map[string]string{"app": "birds", "color": "blue"}
				s["blue-birds"].Spec.Selector = map[string]string{"color": "blue"}
			},
			want: refused(splitv1.ReasonInvalid, "selects all pods"),
		},
		"the loop is seen while traffic goes through the proxies too": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Selector[traffic.LabelProxy] = "birds"
				s["blue-birds"].Spec.Selector = map[string]string{traffic.LabelProxy: "birds"}
			},
			want: refused(splitv1.ReasonInvalid, "selects all pods"),
		},
		"a negative weight is refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) { s.Spec.Backends[0].Weight = -1 },
			want: refused(splitv1.ReasonInvalid, "negative"),
		},
		"only weights of 0 are refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) {
				s.Spec.Backends[0].Weight, s.Spec.Backends[1].Weight = 0, 0
			},
			want: refused(splitv1.ReasonInvalid, "above 0"),
		},
		"a backend named twice is refused": {
			edit: func(s *splitv1.TrafficSplit, _ map[string]*corev1.Service) { s.Spec.Backends[1].Service = "blue-birds" },
			want: refused(splitv1.ReasonInvalid, "named twice"),
		},
		"a headless root is refused": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { s["birds"].Spec.ClusterIP = "None" },
			want: refused(splitv1.ReasonUnsupported, "headless"),
		},
		"an ExternalName root is refused": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
			},
			want: refused(splitv1.ReasonUnsupported, "ExternalName"),
		},
		"a root without selector is refused": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { s["birds"].Spec.Selector = nil },
			want: refused(splitv1.ReasonUnsupported, "has no selector"),
		},
		"a SCTP port of the root is refused": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Ports[1].Protocol = corev1.ProtocolSCTP
			},
			want: refused(splitv1.ReasonUnsupported, "9090 (rest) of Service \"birds\" is SCTP"),
		},
		"a root that does not exist yet is no refusal": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { delete(s, "birds") },
			want: []problem{left(splitv1.ReasonServiceNotFound, `"birds" does not exist`)},
		},
		"a backend that does not exist yet gets nothing": {
			edit:   func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { delete(s, "green-birds") },
			want:   []problem{left(splitv1.ReasonBackendNotFound, `"green-birds" does not exist yet`)},
			takers: "blue-birds; blue-birds",
		},
		"a backend without cluster IP gets nothing": {
			edit:   func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { s["green-birds"].Spec.ClusterIP = "None" },
			want:   []problem{left(splitv1.ReasonBackendUnsupported, `"green-birds" is headless`)},
			takers: "blue-birds; blue-birds",
		},
		"a backend of another domain gets nothing": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["green-birds"].Spec.Type = corev1.ServiceTypeExternalName
			},
			want:   []problem{left(splitv1.ReasonBackendUnsupported, `"green-birds" is of type ExternalName`)},
			takers: "blue-birds; blue-birds",
		},
		"a backend that was just made gets nothing until it has its address": {
			edit:   func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { s["green-birds"].Spec.ClusterIP = "" },
			want:   []problem{left(splitv1.ReasonBackendNotFound, "not given its cluster IP")},
			takers: "blue-birds; blue-birds",
		},
		"a backend that lacks a port gets none of that port's traffic": {
			edit:   func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) { s["blue-birds"].Spec.Ports[0].Port = 1024 },
			want:   []problem{left(splitv1.ReasonPortMismatch, `"blue-birds" has no port 8080 (grpc)`)},
			takers: "green-birds; blue-birds green-birds",
		},
		"a port of the same number fits, whatever its name": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["blue-birds"].Spec.Ports[0].Name = "web"
			},
			takers: "blue-birds green-birds; blue-birds green-birds",
		},
		"a port of the same number and another transport does not fit": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["blue-birds"].Spec.Ports[0].Protocol = corev1.ProtocolUDP
			},
			want:   []problem{left(splitv1.ReasonPortMismatch, `"blue-birds" has no port 8080 (grpc)`)},
			takers: "green-birds; blue-birds green-birds",
		},
		"a single port without name matches by number": {
			edit: func(_ *splitv1.TrafficSplit, s map[string]*corev1.Service) {
				s["birds"].Spec.Ports = s["birds"].Spec.Ports[:1]
				s["blue-birds"].Spec.Ports = []corev1.ServicePort{{Port: 8080}}
			},
			takers: "blue-birds green-birds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			split, services := birdSplit("birds", blueGreen()...), birds()
			test.edit(split, services)
			got, problems := resolve.Split(split, resolve.Known{Services: services})
			if len(problems) != len(test.want) {
				t.Fatalf("problems: %v, want %v", problems, test.want)
			}
			for i, want := range test.want {
				p := problems[i]
				if p.Condition != want.condition || p.Reason != want.reason || !strings.Contains(p.Message, want.part) {
					t.Errorf("problem %+v, want %+v", p, want)
				}
				if !strings.HasPrefix(p.Message, "spec.") {
					t.Errorf("the message names no field: %s", p.Message)
				}
			}
			if takers := takersOf(got); takers != test.takers {
				t.Errorf("traffic goes to %q, want %q", takers, test.takers)
			}
		})
	}
}

// takersOf are the backends of each port.
func takersOf(s traffic.Split) string {
	var ports []string
	for _, p := range s.Ports {
		var names []string
		for _, d := range p.Destinations {
			names = append(names, d.Service)
		}
		ports = append(ports, strings.Join(names, " "))
	}
	return strings.Join(ports, "; ")
}

func TestAPortWhoseBackendsHaveNoWeightIsUnroutable(t *testing.T) {
	services := birds()
	delete(services, "green-birds")
	split := birdSplit("birds", splitv1.Backend{Service: "blue-birds", Weight: 0}, splitv1.Backend{Service: "green-birds", Weight: 1})
	got, _ := resolve.Split(split, resolve.Known{Services: services})
	if n := len(got.Unroutable()); n != 2 {
		t.Errorf("%d ports are unroutable, want 2", n)
	}
}

func TestProtocolOf(t *testing.T) {
	for name, test := range map[string]struct {
		app, port string
		transport corev1.Protocol
		want      traffic.Protocol
	}{
		"nothing is said":                       {want: traffic.ProtocolHTTP},
		"any name":                              {port: "main", want: traffic.ProtocolHTTP},
		"http":                                  {port: "http", want: traffic.ProtocolHTTP},
		"http with a suffix":                    {port: "http-admin", want: traffic.ProtocolHTTP},
		"https":                                 {port: "https", want: traffic.ProtocolTCP},
		"gRPC with a suffix":                    {port: "grpc-api", want: traffic.ProtocolHTTP2},
		"HTTP/2 by name":                        {port: "http2", want: traffic.ProtocolHTTP2},
		"HTTP/2 in TLS":                         {port: "h2-api", want: traffic.ProtocolTCP},
		"gRPC-Web, in either version of HTTP":   {port: "grpc-web-api", want: traffic.ProtocolTCP},
		"gRPC of a service called webmail":      {port: "grpc-webmail", want: traffic.ProtocolHTTP2},
		"gRPC":                                  {app: "grpc", port: "http", want: traffic.ProtocolHTTP2},
		"a name that only begins like another":  {port: "tcpdump", want: traffic.ProtocolHTTP},
		"a database":                            {port: "mysql", want: traffic.ProtocolTCP},
		"appProtocol is stronger than the name": {app: "http", port: "tcp-web", want: traffic.ProtocolHTTP},
		"web sockets":                           {app: "kubernetes.io/ws", want: traffic.ProtocolHTTP},
		"HTTP/2 with prior knowledge":           {app: "kubernetes.io/h2c", port: "http", want: traffic.ProtocolHTTP2},
		"an appProtocol that is not known":      {app: "example.org/new", port: "http", want: traffic.ProtocolTCP},
		"appProtocol is compared without case":  {app: "HTTP", want: traffic.ProtocolHTTP},
		"UDP":                                   {transport: corev1.ProtocolUDP, port: "http", want: traffic.ProtocolUDP},
		"SCTP":                                  {transport: corev1.ProtocolSCTP, want: traffic.ProtocolUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			p := corev1.ServicePort{Name: test.port, Protocol: test.transport}
			if test.app != "" {
				p.AppProtocol = &test.app
			}
			if got := resolve.ProtocolOf(p); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSummaryFitsIntoAStatus(t *testing.T) {
	if s := traffic.Summary(nil); s != "" {
		t.Errorf("no problems: %q", s)
	}
	long := traffic.Summary([]traffic.Problem{{Message: strings.Repeat("é", 600)}})
	if len(long) > 1024 || !strings.HasPrefix(long, "é") || strings.ContainsRune(long, '\uFFFD') {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

// Whatever a split holds, resolving it neither panics nor leaves a refused split
// with ports, or one that is served without the ports of its root.
func FuzzResolve(f *testing.F) {
	f.Add("birds", "blue-birds", int32(1), "green-birds", int32(9), "None", "grpc", int32(8080))
	f.Add("birds.shop.svc", "birds", int32(-1), "", int32(0), "", "", int32(0))
	f.Add("...", "a", int32(2147483647), "b", int32(2147483647), "10.0.0.9", "udp", int32(70000))
	f.Fuzz(func(t *testing.T, root, b1 string, w1 int32, b2 string, w2 int32, address, name string, number int32) {
		services := birds()
		services["blue-birds"].Spec.ClusterIP = address
		services["green-birds"].Spec.Ports[0] = port(name, number, intstr.FromString(name))
		split := birdSplit(root, splitv1.Backend{Service: b1, Weight: w1}, splitv1.Backend{Service: b2, Weight: w2})
		got, problems := resolve.Split(split, resolve.Known{Services: services})
		if traffic.Refused(problems) && len(got.Ports) > 0 {
			t.Errorf("refused, but has ports: %+v", got)
		}
		if !traffic.Refused(problems) && got.Root == "birds" && len(got.Ports) != 2 {
			t.Errorf("served, but lacks ports: %+v", got)
		}
		for _, p := range got.Ports {
			for _, d := range p.Destinations {
				if d.Weight < 0 || d.Service == got.Root || d.Address == "" || d.Address == "None" {
					t.Errorf("a destination that can't be: %+v", d)
				}
			}
		}
	})
}
