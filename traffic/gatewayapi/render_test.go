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
