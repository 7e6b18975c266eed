// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

func TestARouteServesThePortsOfItsTransport(t *testing.T) {
	t.Parallel()
	ports := []traffic.Port{
		{Number: 53, Protocol: traffic.ProtocolUDP}, {Number: 53, Protocol: traffic.ProtocolTCP}, {Number: 80, Protocol: traffic.ProtocolHTTP},
	}
	for kind, want := range map[string][]traffic.Port{kindUDPRoute: ports[:1], kindTCPRoute: ports[1:], kindHTTPRoute: ports[1:]} {
		if diff := cmp.Diff(want, portsFor(kind, ports)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// Names of rules are unique in a route: the rule that was there keeps its own.
func TestAnAddedRuleHasNoName(t *testing.T) {
	t.Parallel()
	rule := map[string]any{fieldName: "shop", fieldBackendRefs: []any{map[string]any{"name": "website", "port": int64(80)}}}
	split := splitFor()
	split.Limited, split.Matches = true, []traffic.Match{{Group: "g", Name: "m", Methods: []string{"GET"}}}
	rules, err := Render(kindHTTPRoute, []map[string]any{rule}, split, Schema{})
	if err != nil {
		t.Fatal(err)
	}
	var names []any
	for _, r := range rules {
		names = append(names, r.Fields[fieldName])
	}
	if diff := cmp.Diff([]any{nil, "shop"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// A session stays with a backend of weight 0, and ends with one that the rule does not name.
func TestABackendOfWeight0IsLeftOutOfARuleWithSessions(t *testing.T) {
	t.Parallel()
	sessions := map[string]any{"type": "Cookie", "sessionName": "shop"}
	for name, test := range map[string]struct {
		persistence    any
		stable, canary int32
		want           map[string]int64
	}{
		"before the first step":            {sessions, 100, 0, map[string]int64{"website-stable": 1}},
		"while both get requests":          {sessions, 80, 20, map[string]int64{"website-stable": 4, "website-canary": 1}},
		"at the promotion":                 {sessions, 0, 100, map[string]int64{"website-canary": 1}},
		"of a rule that has no sessions":   {nil, 100, 0, map[string]int64{"website-stable": 1, "website-canary": 0}},
		"what the owner of the rule named": {sessions, 100, 0, map[string]int64{"website-stable": 1, "other": 0}},
	} {
		split := splitFor()
		split.Ports[0].Destinations[0].Weight, split.Ports[0].Destinations[1].Weight = test.stable, test.canary
		refs := []any{map[string]any{"name": "website", "port": int64(80)}}
		if _, other := test.want["other"]; other {
			refs = append(refs, map[string]any{"name": "other", "port": int64(80), "weight": int64(0)})
		}
		rule := map[string]any{fieldBackendRefs: refs}
		if test.persistence != nil {
			rule[fieldSessions] = test.persistence
		}
		for _, kind := range []string{kindHTTPRoute, kindGRPCRoute} {
			rules, err := Render(kind, []map[string]any{rule}, split, Schema{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := map[string]int64{}
			for _, ref := range objectsOf(rules[0].Fields[fieldBackendRefs]) {
				got[text(ref, fieldName)] = number(ref, fieldWeight, -1)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", kind, name, diff)
			}
		}
	}
}

// While versions share the requests of a rule, the rule keeps clients. One version alone needs no sessions,
// and a version that is out of the rule keeps no client.
func TestARuleKeepsClientsWhileVersionsShareIt(t *testing.T) {
	t.Parallel()
	session := map[string]any{"type": "Cookie", "sessionName": "version"}
	lasting := map[string]any{"type": "Cookie", "sessionName": "version", "absoluteTimeout": "1h30m0s", "cookieConfig": map[string]any{"lifetimeType": "Permanent"}}
	own := map[string]any{"type": "Header", "sessionName": "mine"}
	for name, test := range map[string]struct {
		sticky         *traffic.Sticky
		own            any
		stable, canary int32
		want           any
		refs           map[string]int64
	}{
		"for the client's session":         {sticky: &traffic.Sticky{Cookie: "version"}, stable: 80, canary: 20, want: session, refs: map[string]int64{"website-stable": 4, "website-canary": 1}},
		"for a time":                       {sticky: &traffic.Sticky{Cookie: "version", MaxAge: 5400}, stable: 80, canary: 20, want: lasting, refs: map[string]int64{"website-stable": 4, "website-canary": 1}},
		"before the first step":            {sticky: &traffic.Sticky{Cookie: "version"}, stable: 100, canary: 0, refs: map[string]int64{"website-stable": 1}},
		"at the promotion":                 {sticky: &traffic.Sticky{Cookie: "version"}, stable: 0, canary: 100, refs: map[string]int64{"website-canary": 1}},
		"in a rule with sessions":          {sticky: &traffic.Sticky{Cookie: "version"}, own: own, stable: 80, canary: 20, want: own, refs: map[string]int64{"website-stable": 4, "website-canary": 1}},
		"in a rule with sessions, drained": {sticky: &traffic.Sticky{Cookie: "version"}, own: own, stable: 100, canary: 0, want: own, refs: map[string]int64{"website-stable": 1}},
		"where none stays":                 {stable: 80, canary: 20, refs: map[string]int64{"website-stable": 4, "website-canary": 1}},
	} {
		for _, kind := range []string{kindHTTPRoute, kindGRPCRoute} {
			split := splitFor()
			split.Sticky = test.sticky
			split.Ports[0].Destinations[0].Weight, split.Ports[0].Destinations[1].Weight = test.stable, test.canary
			rule := map[string]any{fieldBackendRefs: []any{map[string]any{"name": "website", "port": int64(80)}}}
			if test.own != nil {
				rule[fieldSessions] = test.own
			}
			other := map[string]any{fieldBackendRefs: []any{map[string]any{"name": "other", "port": int64(80)}}}
			rules, err := Render(kind, []map[string]any{rule, other}, split, everything().Schema)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(test.want, rules[0].Fields[fieldSessions]); diff != "" {
				t.Errorf("%s, %s, sessions (-want +got):\n%s", kind, name, diff)
			}
			got := map[string]int64{}
			for _, ref := range objectsOf(rules[0].Fields[fieldBackendRefs]) {
				got[text(ref, fieldName)] = number(ref, fieldWeight, -1)
			}
			if diff := cmp.Diff(test.refs, got); diff != "" {
				t.Errorf("%s, %s, references (-want +got):\n%s", kind, name, diff)
			}
			if diff := cmp.Diff(other, rules[1].Fields); diff != "" {
				t.Errorf("%s, %s, a rule that leads elsewhere (-want +got):\n%s", kind, name, diff)
			}
		}
	}
}

// A client of one release is drawn anew in the next, though the Services of the versions have the
// same names. In one release the name stays, and all versions of the field's name fit.
func TestEachReleaseHasSessionsOfItsOwn(t *testing.T) {
	t.Parallel()
	cookie := strings.Repeat("a", 64)
	names := map[string]bool{}
	for _, session := range []string{"", "v2-1", "v2-2", "v3-1", "v2-1"} {
		name := sessionName(cookie, session)
		if !strings.HasPrefix(name, cookie) || len(name) > 128 || (session == "") != (name == cookie) {
			t.Errorf("the name %q for the session %q", name, session)
		}
		names[name] = true
	}
	if len(names) != 4 {
		t.Errorf("%d names, want 4: %v", len(names), names)
	}
}

// What can't keep clients is refused while versions share the requests. A rollback and a promotion
// go on: a split that is refused is not programmed.
func TestWhereNoRuleKeepsClientsARollbackIsProgrammed(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		kindHTTPRoute: "stickyCookie (spec.sessionAffinity of a Rollout): the HTTPRoutes of this cluster had no field sessionPersistence when the operator started; " +
			"install the experimental channel of the Gateway API and restart the operator, choose the router nginx, or remove it",
		kindGRPCRoute: "the GRPCRoutes of this cluster had no field sessionPersistence",
		kindTLSRoute:  "stickyCookie (spec.sessionAffinity of a Rollout): a TLSRoute passes connections on unread, so it has no cookies; use an HTTPRoute, or remove it",
	} {
		for weights, refused := range map[[2]int32]bool{{90, 10}: true, {1, 99}: true, {100, 0}: false, {0, 100}: false} {
			split := splitFor()
			split.Sticky = &traffic.Sticky{Cookie: "version"}
			split.Ports[0].Destinations[0].Weight, split.Ports[0].Destinations[1].Weight = weights[0], weights[1]
			rule := map[string]any{fieldBackendRefs: []any{map[string]any{"name": "website", "port": int64(80)}}}
			rules, err := Render(kind, []map[string]any{rule}, split, Schema{})
			if refused != (err != nil) || refused && !strings.Contains(err.Error(), says) {
				t.Errorf("%s, %v: %v", kind, weights, err)
			}
			if !refused && (len(objectsOf(rules[0].Fields[fieldBackendRefs])) != 1 || rules[0].Fields[fieldSessions] != nil) {
				t.Errorf("%s, %v: %v", kind, weights, rules[0].Fields)
			}
		}
	}
}

func TestARouteMayBeAsLargeAsTheAPIAllows(t *testing.T) {
	t.Parallel()
	rules := func(n, matches int) []Rule {
		var all []Rule
		for range n {
			all = append(all, Rule{Fields: map[string]any{fieldMatches: listOf(make([]map[string]any, matches))}, Generated: true})
		}
		return all
	}
	for name, test := range map[string]struct {
		rules   []Rule
		allowed bool
	}{
		"16 rules":             {rules(maxRules, 1), true},
		"17 rules":             {rules(maxRules+1, 1), false},
		"64 matches in a rule": {rules(1, maxMatches), true},
		"65 matches in a rule": {rules(1, maxMatches+1), false},
		"128 matches":          {rules(2, maxAllMatches/2), true},
		"129 matches":          {append(rules(2, maxAllMatches/2), rules(1, 1)...), false},
	} {
		r := renderer{split: traffic.Split{Limited: true}}
		if err := r.checkSize(test.rules); (err == nil) != test.allowed {
			t.Errorf("%s: error %v, want it allowed: %t", name, err, test.allowed)
		}
	}
	// What its owner wrote is for the API server to judge.
	if err := (&renderer{}).checkSize(rules(maxRules+1, 1)); err != nil {
		t.Errorf("a split that adds no rules: %v", err)
	}
}
