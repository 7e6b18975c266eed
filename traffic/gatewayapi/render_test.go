// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
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
