// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// refusals has a case for each row of the table in the documentation, by its first
// cell. Each returns what the split is told.
var refusals = map[string]func(t *testing.T) string{
	"a condition on the path for a route that has one too, unless yours is exact or begins what `pathRegex` matches": fixtureOf("refused-two-conditions-on-the-path-regex"),
	"a condition on a header for a route that has one on the same header, unless yours is exact":                     fixtureOf("refused-two-conditions-on-a-header"),
	"a condition on a header called `uri`, `scheme`, `method` or `authority`":                                        fixtureOf("refused-a-header-that-istio-ignores"),
	"a mirror for a route that has `mirror`":                                                                         fixtureOf("refused-a-mirror-beside-a-mirror"),
	"a mirror whose Service has a weight above 0":                                                                    fixtureOf("refused-a-mirror-with-a-weight"),
	"a mirror for a route that has other destinations":                                                               fixtureOf("refused-a-mirror-beside-another-destination"),
	"a mirror for a route with destinations of several ports": func(t *testing.T) string {
		t.Helper()
		target := shopTarget("VirtualService/website")
		port := target.Resolved.Ports[0]
		port.Destinations = []traffic.Destination{{Service: "web-stable", Port: 80, Weight: 1}}
		port.Mirror = &traffic.Destination{Service: "web-canary", Port: 80}
		other := port
		other.Number = 81
		target.Resolved.Ports, target.Resolved.Mirror = []traffic.Port{port, other}, &traffic.Mirror{Service: "web-canary", Percent: 10}
		return messagesOf(t, target, object(t, kindVirtualService, "website",
			"http: [{route: [{destination: {host: web, port: {number: 80}}, weight: 1}, {destination: {host: web, port: {number: 81}}, weight: 1}]}]"))
	},
	"matches or a mirror for a `tls` or `tcp` route":                             fixtureOf("refused-matches-of-a-tls-route"),
	"a VirtualService without a destination that is the root Service":            fixtureOf("refused-nothing-leads-to-the-root"),
	"the name of an HTTP route that there is not":                                fixtureOf("refused-no-route-of-that-name"),
	"a destination without `port.number` when the ports have different backends": fixtureOf("refused-ports-with-different-backends"),
	"weights that need more than 32 bits together with those of the route":       fixtureOf("refused-weights-beyond-what-istio-takes"),
	"a VirtualService whose changed routes take more than 96 KiB": func(t *testing.T) string {
		t.Helper()
		large := strings.Replace(website, "  - name: website\n", "  - name: "+strings.Repeat("x", 96<<10)+"\n", 1)
		return messagesOf(t, shopTarget("VirtualService/website"), object(t, kindVirtualService, "website", large))
	},
	"a DestinationRule of a backend without a subset that the root Service's has": fixtureOf("refused-a-rule-without-the-subset"),
	"a split without routes beside a VirtualService with the same host within the mesh": func(t *testing.T) string {
		t.Helper()
		return messagesOf(t, shopTarget(""), object(t, kindVirtualService, "theirs", "hosts: [web]"))
	},
	"a split without routes for a TLS port": fixtureOf("refused-mesh-tls"),
	"a split without routes for a UDP port": fixtureOf("refused-mesh-udp"),
	"a route of another kind": checked(func(split *traffic.Split) {
		split.Routes = []traffic.Route{{Kind: "HTTPRoute", Name: "website"}}
	}),
	"`ports.weights`":  checked(func(split *traffic.Split) { split.PortWeights = true }),
	"`ports.protocol`": checked(func(split *traffic.Split) { split.PortProtocols = true }),
	"a split with a name of more than 63 characters": checked(func(split *traffic.Split) { split.Name = strings.Repeat("a", 64) }),
	"a cluster without Istio": func(t *testing.T) string {
		t.Helper()
		r, err := New(t.Context(), Options{Cache: fakeCache{}, Mapper: mapperOf()})
		if err != nil {
			t.Fatal(err)
		}
		return messages(r.Check(shopSplit(false), nil))
	},
}

// messagesOf is what the router says of a split in view of the objects that there are.
func messagesOf(t *testing.T, target traffic.Target, objects ...client.Object) string {
	t.Helper()
	r, _ := testRouter(t, interceptor.Funcs{}, objects...)
	state, err := r.Observe(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	services := map[string]*corev1.Service{target.Resolved.Root: target.Root}
	return messages(append(r.Check(target.Resolved, services), state.Problems...))
}

func messages(problems []traffic.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Message)
	}
	return strings.Join(out, "\n")
}

// fixtureOf is a fixture of the golden files, as the router is given it.
func fixtureOf(name string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		s := readFixture(t, "testdata/"+name+"/in.yaml")
		target := traffic.Target{Split: s.split, Root: s.known.Services["web"], Resolved: s.resolve(t)}
		var objects []client.Object
		for _, u := range s.routes {
			named := splitv1.RouteReference{Kind: kindVirtualService, Name: u.GetName()}
			for _, section := range only(u) {
				named.Section = section
			}
			splitv1.SetRouting(target.Split, splitv1.Routing{Routes: []splitv1.RouteReference{named}})
			u.SetAnnotations(nil)
			objects = append(objects, u)
		}
		target.Resolved.Routes = traffic.RouteNames(target.Split)
		for _, r := range s.rules {
			u := object(t, kindRule, r.name, "{}")
			u.Object["spec"] = r.spec
			objects = append(objects, u)
		}
		return messagesOf(t, target, objects...)
	}
}

// checked is what Check says of a split that is changed.
func checked(change func(*traffic.Split)) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		r, _ := testRouter(t, interceptor.Funcs{})
		split := shopSplit(false)
		change(&split)
		return messages(r.Check(split, nil))
	}
}

// row is a row of the table: what is refused, and what the message says.
var row = regexp.MustCompile("(?m)^\\| (.+?) \\| `(.+?)` \\|$")

func TestWhatTheDocumentationSaysIsRefusedIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/istio.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## What is refused\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := row.FindAllStringSubmatch(table, -1)
	if !found || len(rows) != len(refusals) || strings.Count(table, "\n|") != len(rows)+2 {
		t.Errorf("the page has %d rows that can be read of %d, and the test %d cases", len(rows), strings.Count(table, "\n|")-2, len(refusals))
	}
	for _, r := range rows {
		t.Run(r[1], func(t *testing.T) {
			refusal := refusals[r[1]]
			if refusal == nil {
				t.Fatal("no case shows that it is refused")
			}
			if got := refusal(t); !strings.Contains(got, r[2]) {
				t.Errorf("the split is told %q, which does not say %q", got, r[2])
			}
		})
	}
	for what := range refusals {
		if !strings.Contains(table, "| "+what+" |") {
			t.Errorf("the page does not say that this is refused: %s", what)
		}
	}
}
