// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// site is a split with all that it refers to.
type site struct {
	split    *splitv1.TrafficSplit
	root     *corev1.Service
	services map[string]*corev1.Service
	group    *specsv1.HTTPRouteGroup
	// others are the other splits of the namespace.
	others []resolve.OtherSplit
	// lacking is whether the router can do nothing beside sharing by weight.
	lacking bool
}

func newSite() *site {
	s := &site{
		split: &splitv1.TrafficSplit{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{}},
			Spec:       splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "web-1", Weight: 9}, {Service: "web-2", Weight: 1}}},
		},
		services: map[string]*corev1.Service{},
		group:    &specsv1.HTTPRouteGroup{Spec: specsv1.HTTPRouteGroupSpec{Matches: []specsv1.HTTPMatch{{Name: "m", Methods: []specsv1.HTTPMethod{"GET"}}}}},
	}
	for name, version := range map[string]string{"web": "", "web-1": "1", "web-2": "2"} {
		selector := map[string]string{"app": "web"}
		if version != "" {
			selector["version"] = version
		}
		s.services[name] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.1", Selector: selector,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}}
	}
	s.root = s.services["web"]
	return s
}

// matching limits the split to the requests of its group.
func (s *site) matching() {
	s.split.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "g"}}
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "web-1" })
}

func (s *site) match(m specsv1.HTTPMatch) {
	s.matching()
	m.Name = "m"
	s.group.Spec.Matches = []specsv1.HTTPMatch{m}
}

// ports gives the split the rules of ports in a text.
func (s *site) ports(text string) {
	s.split.Annotations = map[string]string{splitv1.AnnotationRouting: "ports: " + text}
}

func (s *site) mirror() {
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-2", Percent: 10} })
}

func (s *site) sticky() {
	splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.StickyCookie = &splitv1.StickyCookie{Name: "serin"} })
}

// addPort gives every Service one more port.
func (s *site) addPort(p corev1.ServicePort) {
	for _, service := range s.services {
		service.Spec.Ports = append(service.Spec.Ports, p)
	}
}

var (
	tcp   = corev1.ServicePort{Name: "tcp-db", Port: 5432}
	udp   = corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}
	http2 = corev1.ServicePort{Name: "grpc", Port: 9000}
)

func header(name, regex string) specsv1.Headers {
	return specsv1.Headers{Items: []specsv1.Header{{Name: name, Regex: regex}}}
}

// refused are the rows of the page's table, with sites of each kind that a row names and
// what is said about them.
var refused = map[string]map[string]func(*site){
	"`spec.matches`, `mirror` or `stickyCookie` beside a port that is TCP or UDP": {
		"spec.matches: port 5432 (tcp-db)": func(s *site) { s.addPort(tcp); s.matching() },
		"mirror: port 53 (dns)":            func(s *site) { s.addPort(udp); s.mirror() },
		"stickyCookie: port 5432":          func(s *site) { s.addPort(tcp); s.sticky() },
		"spec.matches: port 53 (dns)":      func(s *site) { s.addPort(udp); s.matching() },
		"mirror: port 5432 (tcp-db)":       func(s *site) { s.addPort(tcp); s.mirror() },
		"stickyCookie: port 53 (dns)":      func(s *site) { s.addPort(udp); s.sticky() },
	},
	"`mirror` beside a port that is HTTP/2": {
		"HTTP/2": func(s *site) { s.addPort(http2); s.mirror() },
	},
	"TCP and UDP with target ports of one name": {
		"a pod can have each port name only once": func(s *site) {
			for _, p := range []corev1.ServicePort{tcp, udp} {
				p.TargetPort = intstr.FromString("both")
				s.addPort(p)
			}
		},
	},
	"`spec.matches`, `mirror` or `stickyCookie` with a router that can't do it": {
		"spec.matches: the router": func(s *site) { s.lacking = true; s.matching() },
		"mirror: the router":       func(s *site) { s.lacking = true; s.mirror() },
		"stickyCookie: the router": func(s *site) { s.lacking = true; s.sticky() },
	},
	"`ports.weights` or `ports.protocol` with a router that can't do it": {
		"ports: the router another can't give ports": func(s *site) { s.lacking = true; s.ports(`{"80/TCP": {"weights": {"web-1": 1}}}`) },
		"ports: the router another takes what":       func(s *site) { s.lacking = true; s.ports(`{"80/TCP": {"protocol": "TCP"}}`) },
	},
	"`serin.dev/routing` that is no YAML, says something twice or names an unknown field, or names a port of the root Service or a backend that there is not": {
		"can't be read":                                 func(s *site) { s.ports("80/TCP") },
		`key "web-1" already set in map`:                func(s *site) { s.ports(`{"80/TCP": {"weights": {"web-1": 1, "web-1": 2}}}`) },
		`key "80/TCP" already set in map`:               func(s *site) { s.ports(`{"80/TCP": {"protocol": "TCP"}, "80/TCP": {"protocol": "HTTP"}}`) },
		`ports: Service "web" has no port 81/TCP; name`: func(s *site) { s.ports(`{"81/TCP": {"weights": {"web-1": 1}}}`) },
		`ports: Service "web" has no port 81/TCP`:       func(s *site) { s.ports(`{"81/TCP": {"protocol": "TCP"}}`) },
		`"web-3" is not a backend of this split`:        func(s *site) { s.ports(`{"80/TCP": {"weights": {"web-3": 1}}}`) },
	},
	"weights of a port that are negative, above 2147483647 or all 0": {
		`the weight -1 is not a whole number`:                         func(s *site) { s.ports(`{"80/TCP": {"weights": {"web-1": -1}}}`) },
		`the weight 2147483648 is not a whole number`:                 func(s *site) { s.ports(`{"80/TCP": {"weights": {"web-2": 2147483648}}}`) },
		`ports["80/TCP"]: weights: at least one weight must be above`: func(s *site) { s.ports(`{"80/TCP": {"weights": {"web-1": 0}}}`) },
	},
	"a protocol that the transport of the port does not carry": {
		"UDP is not carried by TCP": func(s *site) { s.ports(`{"80/TCP": {"protocol": "UDP"}}`) },
	},
	"ports with one target port that differ in weights or protocol": {
		"ports 80 and 81 share a target port, and proxies can't tell their traffic apart": func(s *site) {
			s.addPort(corev1.ServicePort{Name: "web", Port: 81, TargetPort: intstr.FromInt32(8080)})
			s.ports(`{"81/TCP": {"weights": {"web-1": 1, "web-2": 1}}}`)
		},
		"ports 80 and 81 share a target port but are HTTP and TCP": func(s *site) {
			s.addPort(corev1.ServicePort{Name: "web", Port: 81, TargetPort: intstr.FromInt32(8080)})
			s.ports(`{"81/TCP": {"protocol": "TCP"}}`)
		},
	},
	"a match without a condition, a method or header that can't be expressed": {
		"has no condition":            func(s *site) { s.match(specsv1.HTTPMatch{}) },
		"is not a method":             func(s *site) { s.match(specsv1.HTTPMatch{Methods: []specsv1.HTTPMethod{"FETCH"}}) },
		"is not the name of a header": func(s *site) { s.match(specsv1.HTTPMatch{Headers: header("a b", ".*")}) },
	},
	"an expression that data planes could read differently": {
		`read "?P<x>b)" differently`:         func(s *site) { s.match(specsv1.HTTPMatch{Headers: header("a", "(?P<x>b)")}) },
		`read "\\1" differently`:             func(s *site) { s.match(specsv1.HTTPMatch{PathRegex: `(a)\1`}) },
		"names a character beyond ASCII":     func(s *site) { s.match(specsv1.HTTPMatch{Headers: header("a", "é")}) },
		"is not a regular expression of RE2": func(s *site) { s.match(specsv1.HTTPMatch{PathRegex: "(a"}) },
	},
	"an expression that could take for ever, or is very large once its repetitions are written out": {
		"repeats inside a repetition": func(s *site) { s.match(specsv1.HTTPMatch{PathRegex: "(a+)+"}) },
		"too large for data planes":   func(s *site) { s.match(specsv1.HTTPMatch{PathRegex: "(ab){500}"}) },
	},
	"an expression that matches an empty value of a header, but for `.*`": {
		"matches an empty value": func(s *site) { s.match(specsv1.HTTPMatch{Headers: header("a", "^a*$")}) },
	},
	"a header's name with `_` or other characters beside letters, digits and `-`": {
		`can't tell the header "x_beta"`: func(s *site) { s.match(specsv1.HTTPMatch{Headers: header("x_beta", ".*")}) },
	},
	"more than 128 conditions in all groups of a split": {
		"have 129 conditions": func(s *site) {
			s.matching()
			s.group.Spec.Matches = slices.Repeat([]specsv1.HTTPMatch{{Name: "m", PathRegex: "/a"}}, 129)
		},
	},
	"a root Service in another namespace, headless, of type ExternalName, or without selector": {
		"is not a Service in namespace": func(s *site) { s.split.Spec.Service = "web.other" },
		"is headless":                   func(s *site) { s.root.Spec.ClusterIP = corev1.ClusterIPNone },
		"is of type ExternalName":       func(s *site) { s.root.Spec.Type = corev1.ServiceTypeExternalName },
		"has no selector":               func(s *site) { s.root.Spec.Selector = nil },
	},
	"a backend that is the root Service, or selects all of its pods": {
		"is the split's own root Service": func(s *site) { s.split.Spec.Backends[0].Service = "web" },
		"selects all pods of Service":     func(s *site) { delete(s.services["web-1"].Spec.Selector, "version") },
	},
	"splits that lead back to each other": {
		"web-1": func(s *site) {
			other := s.split.DeepCopy()
			other.Name, other.Spec = "other", splitv1.TrafficSplitSpec{Service: "web-1", Backends: []splitv1.Backend{{Service: "web", Weight: 1}}}
			s.others = []resolve.OtherSplit{{Split: other, Served: true}}
		},
	},
	"`internalTrafficPolicy: Local`, `externalTrafficPolicy: Local` on the root Service": {
		"internalTrafficPolicy Local": func(s *site) { s.root.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) },
		"externalTrafficPolicy Local": func(s *site) { s.root.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
	},
	"`sessionAffinity: ClientIP` on the root Service or a backend": {
		`Service "web" has sessionAffinity ClientIP`:   func(s *site) { s.root.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
		`Service "web-2" has sessionAffinity ClientIP`: func(s *site) { s.services["web-2"].Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
	},
	"`publishNotReadyAddresses` on the root Service": {
		"publishNotReadyAddresses": func(s *site) { s.root.Spec.PublishNotReadyAddresses = true },
	},
	"the target port 15020, or one named `serin-status`": {
		"15020":        func(s *site) { s.root.Spec.Ports[0].TargetPort = intstr.FromInt32(15020) },
		"serin-status": func(s *site) { s.root.Spec.Ports[0].TargetPort = intstr.FromString("serin-status") },
	},
}

// problems are what is said about the site.
func (s *site) problems(r *Router) []traffic.Problem {
	resolved, problems := resolve.Split(s.split, resolve.Known{
		Services: s.services, Groups: map[string]*specsv1.HTTPRouteGroup{"g": s.group}, Proxied: true,
	})
	switch {
	case s.lacking:
		return append(problems, traffic.Lacking(resolved, "another")...)
	case !traffic.Refused(problems):
		problems = append(problems, r.Check(resolved, s.services)...)
	}
	return append(problems, resolve.Circle(s.split, s.others)...)
}

// What the page says is refused is refused, for that reason, and nothing else is in the
// table.
func TestEachLimitOfThePageIsRefused(t *testing.T) {
	r := &Router{options: routerOptions(t)}
	if problems := newSite().problems(r); len(problems) > 0 {
		t.Fatalf("the site itself has problems: %v", problems)
	}
	page, err := os.ReadFile("../../docs/trafficsplit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## What is refused, and why\n\n| what | why |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for row := range strings.SplitSeq(table, "\n") {
		what := strings.TrimPrefix(strings.Split(row, " | ")[0], "| ")
		sites, found := refused[what]
		if !found {
			t.Errorf("nothing shows that this is refused: %s", what)
		}
		rows++
		for says, edit := range sites {
			t.Run(what+"/"+says, func(t *testing.T) {
				s := newSite()
				edit(s)
				if problems := s.problems(r); !traffic.Refused(problems) || !strings.Contains(traffic.Summary(problems), says) {
					t.Errorf("%v\nwant a refusal that says %q", problems, says)
				}
			})
		}
	}
	if rows != len(refused) {
		t.Errorf("the page has %d rows, and %d are shown", rows, len(refused))
	}
}
