// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// portion is the exact share of a reference.
func portion(refs []map[string]any, name string) *big.Rat {
	total, own := int64(0), int64(0)
	for _, ref := range refs {
		w := number(ref, "weight", 1)
		if total += w; text(ref, "name") == name {
			own += w
		}
	}
	if total == 0 {
		return new(big.Rat)
	}
	return big.NewRat(own, total)
}

func TestSharesAreExact(t *testing.T) {
	t.Parallel()
	done := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		split := splitFor()
		d := split.Ports[0].Destinations
		d[0].Weight, d[1].Weight = r.Int32N(120), draw(r, 0, 1, r.Int32N(120), r.Int32())
		refs := []map[string]any{
			{"name": "website", "port": int64(80), "weight": 1 + r.Int64N(40)},
			{"name": "other", "port": int64(80), "weight": r.Int64N(40)},
		}
		after, err := exchange(refs, split, shared)
		if d[0].Weight+d[1].Weight == 0 {
			if err != nil || portion(after, "website").Cmp(portion(refs, "website")) != 0 {
				t.Fatalf("seed %d: without a backend that can answer the root keeps its share, got %v, %v", seed, after, err)
			}
			continue
		}
		if err != nil {
			continue
		}
		done++
		if got, want := portion(after, "other"), portion(refs, "other"); got.Cmp(want) != 0 {
			t.Fatalf("seed %d: other had %v, has %v", seed, want, got)
		}
		for _, x := range d {
			want := big.NewRat(int64(x.Weight), int64(d[0].Weight)+int64(d[1].Weight))
			want.Mul(want, portion(refs, "website"))
			if got := portion(after, x.Service); got.Cmp(want) != 0 {
				t.Fatalf("seed %d: %s has %v of the requests, want %v", seed, x.Service, got, want)
			}
		}
	}
	if done < 1000 {
		t.Errorf("only %d lists could be rendered: the test says nothing", done)
	}
}

func TestReferencesKeepWhatTheyHave(t *testing.T) {
	t.Parallel()
	filters := []any{map[string]any{"type": "RequestHeaderModifier"}}
	refs := []map[string]any{{"group": "", "kind": "Service", "name": "website", "port": int64(80), "weight": int64(7), "filters": filters, "new": "field"}}
	after, err := exchange(refs, splitFor(), shared)
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"group": "", "kind": "Service", "name": "website-stable", "port": int64(80), "weight": int64(9), "filters": filters, "new": "field"},
		{"group": "", "kind": "Service", "name": "website-canary", "port": int64(80), "weight": int64(1), "filters": filters, "new": "field"},
	}
	if routes.Digest(listOf(after)) != routes.Digest(listOf(want)) {
		t.Errorf("got %v, want %v", after, want)
	}
}

func TestOnlyReferencesToTheRootServiceAreExchanged(t *testing.T) {
	t.Parallel()
	for name, ref := range map[string]map[string]any{
		"another Service":                    {"name": "other", "port": int64(80)},
		"another kind of that name":          {"kind": "ServiceImport", "group": "multicluster.x-k8s.io", "name": "website", "port": int64(80)},
		"a Service of another group":         {"kind": "Service", "group": "serving.example.com", "name": "website", "port": int64(80)},
		"that name in another namespace":     {"name": "website", "namespace": "elsewhere", "port": int64(80)},
		"the root Service with the weight 0": {"name": "website", "port": int64(80), "weight": int64(0)},
	} {
		if leadsToRoot(ref, splitFor()) {
			t.Errorf("%s counts as the root Service: %v", name, ref)
		}
	}
	if !leadsToRoot(map[string]any{"name": "website", "namespace": "shop", "port": int64(80)}, splitFor()) {
		t.Error("the root Service with its own namespace does not count")
	}
}

// Two ports of one Service can be behind one rule, each with destinations of its own.
func TestSeveralPortsInOneRule(t *testing.T) {
	t.Parallel()
	split := splitFor()
	split.Ports = append(split.Ports, traffic.Port{Number: 81, Destinations: []traffic.Destination{
		{Service: "website-stable", Port: 81, Weight: 2}, {Service: "website-canary", Port: 81, Weight: 1},
	}})
	after, err := exchange([]map[string]any{
		{"name": "website", "port": int64(80), "weight": int64(1)}, {"name": "website", "port": int64(81), "weight": int64(1)},
	}, split, shared)
	if err != nil {
		t.Fatal(err)
	}
	var weights []int64
	for _, ref := range after {
		weights = append(weights, number(ref, "weight", 0))
	}
	if routes.Digest(weights) != routes.Digest([]int64{27, 3, 20, 10}) {
		t.Errorf("weights %v, want 27, 3, 20, 10", weights)
	}
}

func TestARuleMayHaveAsManyReferencesAndAsMuchWeightAsTheAPIAllows(t *testing.T) {
	t.Parallel()
	root := map[string]any{"name": "website", "port": int64(80)} // becomes two references
	others := func(n int, weight int64) []map[string]any {
		refs := []map[string]any{root}
		for range n {
			refs = append(refs, map[string]any{"name": "other", "port": int64(80), "weight": weight})
		}
		return refs
	}
	for name, test := range map[string]struct {
		refs    []map[string]any
		allowed bool
	}{
		"16 references": {others(maxRefs-2, 1), true},
		"17 references": {others(maxRefs-1, 1), false},
		// The root's weight of 1 is shared 9 to 1, so all other weights become ten times as large.
		"the weight 1,000,000": {others(1, maxWeight/10), true},
		"the weight 1,000,010": {others(1, maxWeight/10+1), false},
	} {
		if _, err := exchange(test.refs, splitFor(), shared); (err == nil) != test.allowed {
			t.Errorf("%s: error %v, want it allowed: %t", name, err, test.allowed)
		}
	}
}

func TestAReferenceNamesAPortOfTheRootServiceByItsNumber(t *testing.T) {
	t.Parallel()
	split := splitFor()
	split.Ports = append([]traffic.Port{{Number: 8080}}, split.Ports...)
	for number, found := range map[int64]bool{80: true, 8080: true, 79: false, 81: false, 8081: false} {
		port, err := portOf(map[string]any{"port": number}, split)
		if (err == nil) != found || found && int64(port.Number) != number {
			t.Errorf("port %d: got %d, %v, want it found: %t", number, port.Number, err, found)
		}
	}
}

func TestOfSeveralUnknownConditionsTheSameOneIsReported(t *testing.T) {
	rule := map[string]any{fieldMatches: []any{map[string]any{"cookies": 1, "body": 1, "weekday": 1}}}
	for range 200 {
		if _, err := matchesOf(kindHTTPRoute, rule); err == nil || !strings.HasPrefix(err.Error(), "matches[0].body: ") {
			t.Fatal(err)
		}
	}
}
