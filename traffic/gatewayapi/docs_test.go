// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/traffic"
)

// refused are the rows of the page's table, each with a fixture and what the router
// says about it.
var refused = map[string]struct {
	fixture string
	says    string
	served  func(*Served)
}{
	"a route without a reference to the root Service": {
		fixture: named(`[{backendRefs: [{name: other, port: 80}]}]`), says: "none has a backendRef",
	},
	"a reference to a port that the root Service does not have": {
		fixture: named(`[{backendRefs: [{name: website, port: 8080}]}]`), says: "refers to port 8080, which Service \"website\" does not have",
	},
	"a kind of route that the cluster does not serve": {
		fixture: named(`[]`), says: "did not serve HTTPRoute", served: without(kindHTTPRoute),
	},
	"a VirtualService in `routes`": {
		fixture: parts(split(`routes: [{kind: VirtualService, name: website}]`), services), says: "VirtualService/website is not a route of the Gateway API",
	},
	"a port whose kind of route the cluster does not serve": {
		fixture: parts(split(""), services), says: "port 80 needs a HTTPRoute", served: without(kindHTTPRoute),
	},
	"a route of another user with the root Service as its parent": {
		fixture: parts(split(""), services, strings.Replace(route(kindHTTPRoute, `[{backendRefs: [{name: website, port: 80}]}]`), "{name: public}", `{group: "", kind: Service, name: website}`, 1)),
		says:    `HTTPRoute "website" already routes the traffic of Service "website"`,
	},
	"a BackendTLSPolicy for the root Service and not for a backend": {
		fixture: parts(named(plain), policy("website"), policy("website-stable")), says: `would not apply to Service "website-canary"`,
	},
	"more than 16 references in a rule": {
		fixture: named(`[{backendRefs: [{name: website, port: 80}` + strings.Repeat(", {name: other, port: 80}", 15) + `]}]`), says: "would have 17 backendRefs; the Gateway API allows 16",
	},
	"weights that need a reference above 1,000,000": {
		fixture: strings.Replace(named(plain), "weight: 90", "weight: 1000001", 1), says: "the Gateway API allows 1000000",
	},
	"more than 16 rules with those that are added": {
		fixture: limited(`{headers: {x: "1"}}`, rules(9)), says: "would have 18 rules; the Gateway API allows 16",
	},
	"more than 64 matches in a rule that is added": {
		fixture: limited(`{headers: {x: "1"}, methods: [GET, HEAD, POST]}`, `[{matches: [`+matches(22)+`], backendRefs: [{name: website, port: 80}]}]`), says: "a rule with 66 matches; the Gateway API allows 64",
	},
	"more than 128 matches in all": {
		fixture: limited(`{headers: {x: "1"}}`, strings.Repeat("", 0)+`[{matches: [`+matches(33)+`], backendRefs: [{name: website, port: 80}]}, {matches: [`+matchesFrom(33, 66)+`], backendRefs: [{name: website, port: 80}]}]`),
		says:    "would have 132 matches; the Gateway API allows 128",
	},
	"more than 16 headers in a match": {
		fixture: limited(`{headers: {x: "1"}}`, `[{matches: [{headers: [`+headers(16)+`]}], backendRefs: [{name: website, port: 80}]}]`), says: "would have 17 conditions on headers",
	},
	"`spec.matches` with a TCPRoute, TLSRoute or UDPRoute": {
		fixture: strings.ReplaceAll(limited(`{headers: {x: "1"}}`, plain), "kind: "+kindHTTPRoute+", name", "kind: "+kindTCPRoute+", name") + "\n---\n" + route(kindTCPRoute, plain), says: "a TCPRoute passes connections on unread, so its requests can't be matched",
	},
	"`mirror` with a TCPRoute, TLSRoute or UDPRoute": {
		fixture: parts(split(`routes: [{kind: TLSRoute, name: website}], mirror: {service: copies, percent: 10}`), services, service("copies"), route(kindTLSRoute, plain)), says: "a TLSRoute passes connections on unread, so its requests can't be mirrored",
	},
	"a `pathRegex` that is not made of paths and prefixes": {
		fixture: limited(`{pathRegex: "/v[0-9]+/"}`, plain), says: "can't be expressed as exact paths and prefixes",
	},
	"a `pathRegex` for a GRPCRoute": {
		fixture: strings.ReplaceAll(limited(`{pathRegex: "/a$"}`, plain), "kind: "+kindHTTPRoute+", name", "kind: "+kindGRPCRoute+", name") + "\n---\n" + route(kindGRPCRoute, plain), says: "has a pathRegex; match by headers",
	},
	"a `pathRegex` beside an expression on the path in the route": {
		fixture: limited(`{pathRegex: "/a$"}`, `[{matches: [{path: {type: RegularExpression, value: "/.*"}}], backendRefs: [{name: website, port: 80}]}]`), says: "has an expression for the path, and so has",
	},
	"a `pathRegex` beside a filter that replaces the prefix of the path": {
		fixture: limited(`{pathRegex: "/a(/|$)"}`, `[{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}], matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: website, port: 80}]}]`),
		says:    "replaces the prefix of the path",
	},
	"a header with an expression both in the route and in the split": {
		fixture: limited(`{headers: {x: "1"}}`, `[{matches: [{headers: [{type: RegularExpression, name: X, value: "a.*"}]}], backendRefs: [{name: website, port: 80}]}]`), says: "has an expression for the header x, and so has",
	},
	"the header `host`": {
		fixture: limited(`{headers: {host: "a"}}`, plain), says: "routes match hosts by their hostnames",
	},
	"a condition in a match of the route that Serin does not know": {
		fixture: limited(`{headers: {x: "1"}}`, `[{matches: [{cookies: [a]}], backendRefs: [{name: website, port: 80}]}]`), says: "matches[0].cookies: is a condition that this version of Serin does not know",
	},
	"a match that would take requests from another rule": {
		fixture: limited(`{headers: {x: "1"}}`, `[{backendRefs: [{name: website, port: 80}]}, {matches: [{method: GET}], backendRefs: [{name: other, port: 80}]}, {matches: [{headers: [{name: y, value: "1"}]}], backendRefs: [{name: other, port: 80}]}]`),
		says:    "spec.rules[0]: with the conditions of spec.matches added, would get requests that spec.rules[2] gets now",
	},
	"a path that one match of the split holds and another leaves out": {
		fixture: limited(`{pathRegex: "/a/"}, {name: other, headers: {x: "1"}}`, plain), says: "in one of the split's matches and left out of another",
	},
	"`mirror` in a rule that sends requests elsewhere too": {
		fixture: mirrored(`[{backendRefs: [{name: website, port: 80}, {name: other, port: 80}]}]`), says: `sends requests to "other" as well`,
	},
	"`mirror` for a Service that answers requests too": {
		fixture: parts(split(`routes: [{kind: HTTPRoute, name: website}], mirror: {service: website-canary, percent: 10}`), services, route(kindHTTPRoute, plain)), says: `Service "website-canary" answers requests too`,
	},
	"`mirror` below 100 % where the API can't say it": {
		fixture: mirrored(plain), says: "mirrors all requests or none", served: func(s *Served) { s.Schema.MirrorPercent = false },
	},
	"`mirror` through a gateway whose class does not say that it can": {
		fixture: parts(mirrored(plain), gateway, class("{name: HTTPRouteRequestMirror}")), says: `GatewayClass "public" of Gateway "public" does not list HTTPRouteRequestPercentageMirror`,
	},
	"`stickyCookie` where a rule can't keep clients, while versions share the requests": {
		fixture: strings.Replace(named(plain), "name: website}]", "name: website}], stickyCookie: {name: version}", 1), says: "the HTTPRoutes of this cluster had no field sessionPersistence",
		served: func(s *Served) { s.Schema.Sessions = nil },
	},
	"`stickyCookie` with a TCPRoute, TLSRoute or UDPRoute": {
		fixture: parts(split(`routes: [{kind: TLSRoute, name: website}], stickyCookie: {name: version}`), services, route(kindTLSRoute, plain)), says: "a TLSRoute passes connections on unread, so it has no cookies",
	},
	"a rule with 16 filters and `mirror`": {
		fixture: mirrored(`[{filters: [` + strings.TrimSuffix(strings.Repeat("{type: ExtensionRef}, ", 16), ", ") + `], backendRefs: [{name: website, port: 80}]}]`), says: "has no room for the mirror's filter",
	},
	"a route whose record would be larger than 128 KiB": {
		fixture: named(`[{future: "` + strings.Repeat("x", maxRecord) + `", backendRefs: [{name: website, port: 80}]}]`), says: "too many to be remembered",
	},
	"`ports.weights`": {
		fixture: parts(split(`ports: {"80/TCP": {weights: {website-canary: 1}}}`), services), says: "can't give ports weights of their own",
	},
	"`ports.protocol`": {
		fixture: parts(split(`ports: {"80/TCP": {protocol: HTTP2}}`), services), says: "takes what the Service says of its ports",
	},
	"a name of a split with more than 63 characters": {
		fixture: strings.Replace(named(plain), "name: website\n", "name: "+strings.Repeat("x", 64)+"\n", 1), says: "has more than 63 characters",
	},
}

const (
	plain    = `[{backendRefs: [{name: website, port: 80}]}]`
	services = "apiVersion: v1\nkind: Service\nmetadata: {name: website}\nspec: {ports: [{port: 80}], selector: {app: website}}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: website-stable}\nspec: {ports: [{port: 80}]}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: website-canary}\nspec: {ports: [{port: 80}]}"
)

const gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: public}\nspec: {gatewayClassName: public}"

// class is the GatewayClass of gateway with what it says that it can.
func class(features string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: public}\nstatus: {supportedFeatures: [" + features + "]}"
}

func parts(documents ...string) string { return strings.Join(documents, "\n---\n") }

func service(name string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: 80}]}"
}

// split is one with a routing, in YAML without apostrophes.
func split(routing string) string {
	return "apiVersion: split.smi-spec.io/v1alpha4\nkind: TrafficSplit\nmetadata:\n  name: website\n  annotations: {serin.dev/routing: '{" + routing +
		"}'}\nspec:\n  service: website\n  backends: [{service: website-stable, weight: 90}, {service: website-canary, weight: 1}]"
}

func route(kind, rules string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: website}\nspec:\n  parentRefs: [{name: public}]\n  rules: " + rules
}

// named is a split that names an HTTPRoute with rules.
func named(rules string) string {
	return parts(split("routes: [{kind: HTTPRoute, name: website}]"), services, route(kindHTTPRoute, rules))
}

// limited is one with matches.
func limited(match, rules string) string {
	group := "apiVersion: specs.smi-spec.io/v1alpha4\nkind: HTTPRouteGroup\nmetadata: {name: g}\nspec:\n  matches: [" + strings.Replace(match, "{", "{name: m, ", 1) + "]"
	return parts(named(rules), group) + "\n---\n" + strings.Replace(split("routes: [{kind: HTTPRoute, name: website}]"), "service: website\n", "service: website\n  matches: [{kind: HTTPRouteGroup, name: g}]\n", 1)
}

func mirrored(rules string) string {
	return parts(split("routes: [{kind: HTTPRoute, name: website}], mirror: {service: copies, percent: 10}"), services, service("copies"), route(kindHTTPRoute, rules))
}

func policy(service string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: " + service + "}\nspec: {targetRefs: [{group: \"\", kind: Service, name: " + service + "}]}"
}

func rules(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{matches: [{path: {type: Exact, value: /%d}}], backendRefs: [{name: website, port: 80}]}", i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func matches(n int) string { return matchesFrom(0, n) }

func matchesFrom(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("{path: {type: Exact, value: /%d}}", i))
	}
	return strings.Join(all, ", ")
}

func headers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: h%d, value: v}", i))
	}
	return strings.Join(all, ", ")
}

func without(kind string) func(*Served) { return func(s *Served) { delete(s.Kinds, kind) } }

// What the page says is refused is refused, for that reason, and nothing else is in the
// table.
func TestEachLimitOfThePageIsRefused(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/gatewayapi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## What is refused, and why\n\n| what | why |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, " | ")
		what := strings.TrimPrefix(cells[0], "| ")
		test, found := refused[what]
		if !found {
			t.Errorf("nothing shows that this is refused: %s", what)
			continue
		}
		rows++
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			served := everything()
			if test.served != nil {
				test.served(&served)
			}
			s := newFixture(t, test.fixture, served, interceptor.Funcs{})
			state, problems := s.enact()
			if !traffic.Refused(problems) || !strings.Contains(traffic.Summary(problems), test.says) {
				t.Errorf("%v\nwant a refusal that says %q", problems, test.says)
			}
			for _, o := range state.Objects {
				if o.Changed {
					t.Errorf("%s %s was changed all the same", o.Kind, o.Name)
				}
			}
		})
	}
	if rows != len(refused) {
		t.Errorf("%d rows of the page for %d refusals", rows, len(refused))
	}
}
