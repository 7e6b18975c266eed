// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/traffic"
)

// Limits of the Gateway API.
const (
	// maxRules is the most rules of a route.
	maxRules = 16
	// maxMatches is the most matches of a rule.
	maxMatches = 64
	// maxAllMatches is the most matches of a route.
	maxAllMatches = 128
)

// Schema is what the cluster's version of the Gateway API lets a route say.
type Schema struct {
	// MirrorPercent is true when a part of the requests can be mirrored.
	MirrorPercent bool
	// Sessions has the kinds of routes whose rules can keep a client on a backend.
	Sessions map[string]bool
}

// Rule is one rule of a rendered route.
type Rule struct {
	// Fields of the rule.
	Fields map[string]any
	// Source is the index of the rule that it was made from.
	Source int
	// Generated is true for a rule that was added to its source.
	Generated bool
	// narrowed are the matches of a generated rule.
	narrowed []narrowed
}

// Render puts the backends of a split in the place of its root Service in the rules of
// a route. Its error says everything that can't be expressed, each part with the field
// and the fix; nothing is left out to make the rest fit.
//
// Rules that send nothing to the root Service are as they were. When the split is
// limited to some requests, a rule is added before each of the others for those
// requests, and the rule itself keeps what is not split.
func Render(kind string, rules []map[string]any, split traffic.Split, schema Schema) ([]Rule, error) {
	split.Ports = portsFor(kind, split.Ports)
	r := renderer{kind: kind, split: split, schema: schema}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	var out []Rule
	var problems []error
	found := false
	for i, rule := range rules {
		if !concerned(rule, split) {
			out = append(out, Rule{Fields: rule, Source: i})
			continue
		}
		found = true
		made, err := r.rule(i, rule)
		if err != nil {
			problems = append(problems, fmt.Errorf("spec.rules[%d]: %w", i, err))
			continue
		}
		out = append(out, made...)
	}
	if !found {
		return nil, fmt.Errorf("spec.rules: none has a backendRef with a weight above 0 to Service %q; add one, or name another route", split.Root)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := r.checkOrder(rules, out); err != nil {
		return nil, err
	}
	return out, r.checkSize(out)
}

// portsFor are the ports of the transport that a kind of routes has: TCP and UDP can
// share a number.
func portsFor(kind string, ports []traffic.Port) []traffic.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p traffic.Port) bool {
		return (p.Protocol == traffic.ProtocolUDP) != (kind == kindUDPRoute)
	})
}

// renderer holds what is the same for all rules.
type renderer struct {
	kind       string
	split      traffic.Split
	schema     Schema
	narrowings []narrowing
}

func (r *renderer) prepare() error {
	if err := r.checkSessions(); err != nil {
		return err
	}
	if !readsRequests(r.kind) {
		return r.checkUnread()
	}
	if err := r.checkMirror(); err != nil || !r.split.Limited {
		return err
	}
	var err error
	r.narrowings, err = narrowingsOf(r.split.Matches)
	return err
}

// checkUnread refuses what needs a look at the requests.
func (r *renderer) checkUnread() error {
	switch {
	case r.split.Limited:
		return fmt.Errorf("spec.matches: a %s passes connections on unread, so its requests can't be matched; use an HTTPRoute, or remove spec.matches", r.kind)
	case r.split.Mirror != nil:
		return fmt.Errorf("%s: a %s passes connections on unread, so its requests can't be mirrored; use an HTTPRoute, or remove the mirror", traffic.FieldMirror, r.kind)
	}
	return nil
}

// rule renders one rule that sends traffic to the root Service.
func (r *renderer) rule(index int, rule map[string]any) ([]Rule, error) {
	rule, err := r.mirrored(rule)
	if err != nil {
		return nil, err
	}
	if !r.split.Limited {
		changed, err := r.exchanged(rule, shared)
		return []Rule{{Fields: changed, Source: index}}, err
	}
	rest, err := r.exchanged(rule, defaulted)
	if err != nil {
		return nil, err
	}
	split, err := r.exchanged(rule, shared)
	if err != nil {
		return nil, err
	}
	excluded, included, err := r.narrow(rule)
	if err != nil {
		return nil, err
	}
	var out []Rule
	out = append(out, generate(index, rest, excluded)...)
	out = append(out, generate(index, split, included)...)
	return append(out, Rule{Fields: rest, Source: index}), nil
}

func (r *renderer) exchanged(rule map[string]any, to successors) (map[string]any, error) {
	if rule[fieldSessions] != nil || r.split.Sticky != nil {
		to = weighing(to)
	}
	refs, err := exchange(objectsOf(rule[fieldBackendRefs]), r.split, to)
	if err != nil {
		return nil, fmt.Errorf("backendRefs: %w", err)
	}
	return r.keeping(rule, refs), nil
}

// narrow combines the matches of a rule with those of the split.
func (r *renderer) narrow(rule map[string]any) (excluded, included []narrowed, err error) {
	matches, err := matchesOf(r.kind, rule)
	if err != nil {
		return nil, nil, err
	}
	for i, m := range matches {
		for _, n := range r.narrowings {
			some, err := n.and(m)
			if err != nil {
				return nil, nil, fmt.Errorf("matches[%d]: %w", i, err)
			}
			for _, s := range some {
				if rewritesPrefix(rule) && s.path != m.path {
					return nil, nil, fmt.Errorf("matches[%d]: has a filter that replaces the prefix of the path, which a pathRegex of spec.matches would make another prefix; remove one of the two", i)
				}
				s.from = i
				if s.excluded {
					excluded = append(excluded, s)
				} else {
					included = append(included, s)
				}
			}
		}
	}
	return excluded, included, nil
}

// generate makes the rules that are added to a rule. One that replaces the prefix
// of the path can have a single match.
func generate(source int, rule map[string]any, matches []narrowed) []Rule {
	var rules []Rule
	for len(matches) > 0 {
		n := len(matches)
		if rewritesPrefix(rule) {
			n = 1
		}
		fields := maps.Clone(rule)
		delete(fields, fieldName) // which is unique in a route
		written := make([]map[string]any, 0, n)
		for _, m := range matches[:n] {
			if w := m.write(); !slices.ContainsFunc(written, func(o map[string]any) bool { return reflect.DeepEqual(o, w) }) {
				written = append(written, w)
			}
		}
		fields[fieldMatches] = listOf(written)
		rules = append(rules, Rule{Fields: fields, Source: source, Generated: true, narrowed: matches[:n]})
		matches = matches[n:]
	}
	return rules
}

// rewritesPrefix is true for a rule with a filter that replaces the prefix which its
// one match has.
func rewritesPrefix(rule map[string]any) bool {
	lists := [][]map[string]any{objectsOf(rule[fieldFilters])}
	for _, ref := range objectsOf(rule[fieldBackendRefs]) {
		lists = append(lists, objectsOf(ref[fieldFilters]))
	}
	for _, filter := range slices.Concat(lists...) {
		for _, field := range []string{"urlRewrite", "requestRedirect"} {
			if _, found, err := unstructured.NestedString(filter, field, fieldPath, "replacePrefixMatch"); found && err == nil {
				return true
			}
		}
	}
	return false
}

// checkOrder checks that the rules which were added get no request of another rule.
func (r *renderer) checkOrder(rules []map[string]any, out []Rule) error {
	if !r.split.Limited {
		return nil
	}
	var originals []position
	start := make([]int, len(rules)) // of each rule's matches among the originals
	for place, rule := range out {
		if rule.Generated {
			continue
		}
		matches, err := matchesOf(r.kind, rules[rule.Source])
		if err != nil {
			return fmt.Errorf("spec.rules[%d]: %w", rule.Source, err)
		}
		start[rule.Source] = len(originals)
		for _, m := range matches {
			originals = append(originals, position{match: m, place: place, rule: rule.Source})
		}
	}
	var copies []placed
	for place, rule := range out {
		for _, n := range rule.narrowed {
			copies = append(copies, placed{
				position: position{match: n.match, place: place, rule: rule.Source},
				source:   start[rule.Source] + n.from, set: n.set, excluded: n.excluded,
			})
		}
	}
	return checkPrecedence(originals, copies)
}

// checkSize checks that the API server takes the rules.
func (r *renderer) checkSize(out []Rule) error {
	const shorten = "name fewer matches in spec.matches, or split the route in two"
	if len(out) > maxRules && r.split.Limited {
		return fmt.Errorf("spec.rules: would have %d rules; the Gateway API allows %d; %s", len(out), maxRules, shorten)
	}
	all := 0
	for _, rule := range out {
		n := len(objectsOf(rule.Fields[fieldMatches]))
		if all += n; n > maxMatches && rule.Generated {
			return fmt.Errorf("spec.rules[%d]: would need a rule with %d matches; the Gateway API allows %d; %s", rule.Source, n, maxMatches, shorten)
		}
	}
	if all > maxAllMatches && r.split.Limited {
		return fmt.Errorf("spec.rules: would have %d matches; the Gateway API allows %d; %s", all, maxAllMatches, shorten)
	}
	return nil
}
