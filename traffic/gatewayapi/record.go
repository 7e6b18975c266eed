// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// AnnotationRecord on a user's route records, as JSON, the rules as its owner wrote
// them and what was made of them. It goes when the route is restored.
const AnnotationRecord = "serin.dev/original-rules"

// maxRecord is the most bytes of a record. All annotations of an object together can
// have 256 KiB.
const maxRecord = 128 << 10

// record is what Serin remembers of a route that it changed.
type record struct {
	// Root is the Service whose place the backends took.
	Root string `json:"root"`
	// Split that they belong to.
	Split string `json:"split"`
	// Backends that took it.
	Backends []string `json:"backends"`
	// Mirrors are digests of the filters that copy requests.
	Mirrors []string `json:"mirrors,omitempty"`
	// Sessions is the name of those that have clients come back.
	Sessions string `json:"sessions,omitempty"`
	// Rules as the owner of the route has them.
	Rules []map[string]any `json:"rules"`
	// Written are the rules that were made of them.
	Written []trace `json:"written"`
}

// trace distinguishes a rule that was written from one that a user changed afterwards, and
// shows what was changed in it: digests of the whole rule, of its matches, of its references.
type trace struct {
	Rule      string `json:"rule"`
	Matches   string `json:"matches"`
	Refs      string `json:"refs"`
	Source    int    `json:"source"`
	Generated bool   `json:"generated,omitempty"`
}

// newRecord remembers what is about to be written.
func newRecord(split traffic.Split, rules []map[string]any, written []Rule) record {
	r := record{Root: split.Root, Split: split.Name, Rules: rules, Backends: backendsOf(split)}
	for _, port := range split.Ports {
		if split.Mirror != nil && port.Mirror != nil {
			r.Mirrors = append(r.Mirrors, routes.Digest(mirrorFilter(*port.Mirror, split.Mirror.Percent)))
		}
	}
	if split.Sticky != nil {
		r.Sessions = sessionName(split.Sticky.Cookie, split.Sticky.Session)
	}
	for _, rule := range written {
		t := traceOf(rule.Fields)
		t.Source, t.Generated = rule.Source, rule.Generated
		r.Written = append(r.Written, t)
	}
	return r
}

// backendsOf are the Services that can take the place of the root Service.
func backendsOf(split traffic.Split) []string {
	var names []string
	for _, port := range split.Ports {
		for _, d := range port.Destinations {
			names = append(names, d.Service)
		}
		if split.Limited && port.Default != nil {
			names = append(names, port.Default.Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func traceOf(rule map[string]any) trace {
	return trace{Rule: routes.Digest(rule), Matches: routes.Digest(rule[fieldMatches]), Refs: routes.Digest(rule[fieldBackendRefs])}
}

// encode writes the record. It fails for a route that is too large to be restored.
func (r record) encode() (string, error) {
	encoded, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("record the rules: %w", err)
	}
	if len(encoded) > maxRecord {
		return "", fmt.Errorf("spec.rules: have %d bytes with their record, too many to be remembered in the annotation %s (at most %d); split the route in two",
			len(encoded), AnnotationRecord, maxRecord)
	}
	return string(encoded), nil
}

// readRecord is the record of a route. One that cannot be read counts as none.
func readRecord(annotations map[string]string) (record, bool) {
	var r record
	encoded, found := annotations[AnnotationRecord]
	if !found || kjson.Unmarshal([]byte(encoded), &r) != nil {
		return record{}, false
	}
	for _, t := range r.Written {
		if t.Source < 0 || t.Source >= len(r.Rules) {
			return record{}, false
		}
	}
	return r, true
}

// original is what the owner of a route means its rules to be by now, apart from the
// split. A rule that is as it was written stands for the one it was made of. In a rule
// that a user changed since, only the backends are replaced by the root Service again;
// all else is the new intention, and a rule that a user added is left alone.
func (r record) original(live []map[string]any) []map[string]any {
	out := []map[string]any{}
	taken := r.recognise(live)
	for i, rule := range live {
		at := taken[i]
		switch {
		case at < 0:
			out = append(out, r.foldStranger(rule))
		case r.Written[at].Generated:
		case r.Written[at].Rule == routes.Digest(rule):
			out = append(out, r.Rules[r.Written[at].Source])
		default:
			out = append(out, r.fold(rule, r.Written[at]))
		}
	}
	return out
}

// recognise finds for each live rule which of the written ones it is, or -1: the one
// that is the same as a whole, else the one with the same matches.
func (r record) recognise(live []map[string]any) []int {
	at := slices.Repeat([]int{-1}, len(live))
	used := make([]bool, len(r.Written))
	for _, same := range []func(trace, trace) bool{
		func(a, b trace) bool { return a.Rule == b.Rule },
		func(a, b trace) bool { return a.Matches == b.Matches && a.Refs == b.Refs },
		func(a, b trace) bool { return a.Matches == b.Matches },
	} {
		for i, rule := range live {
			if at[i] >= 0 {
				continue
			}
			t := traceOf(rule)
			for j, w := range r.Written {
				if !used[j] && same(w, t) {
					at[i], used[j] = j, true
					break
				}
			}
		}
	}
	return at
}

// fold restores the references of a rule that a user changed in another way.
func (r record) fold(rule map[string]any, written trace) map[string]any {
	source := r.Rules[written.Source]
	named := map[string]bool{}
	for _, ref := range objectsOf(source[fieldBackendRefs]) {
		named[text(ref, fieldName)] = true
	}
	if !named[r.Root] {
		return rule // Serin changed nothing in it
	}
	if source[fieldSessions] == nil {
		rule = r.withoutSessions(rule)
	}
	if routes.Digest(rule[fieldBackendRefs]) == written.Refs {
		changed := maps.Clone(rule)
		changed[fieldBackendRefs] = source[fieldBackendRefs]
		return r.withoutMirror(changed)
	}
	return r.withoutMirror(r.foldRefs(rule, func(ref map[string]any) bool { return r.backend(ref) && !named[text(ref, fieldName)] }))
}

// foldStranger restores the references of a rule that was not recognised, if it names
// all backends of the split: such a list was copied from one that Serin wrote. A rule
// that names only some of them is a user's own, but for one whose record was lost and in
// which clients stay: it does not name a backend of weight 0.
func (r record) foldStranger(rule map[string]any) map[string]any {
	missing := func(name string) bool {
		return !slices.ContainsFunc(objectsOf(rule[fieldBackendRefs]), func(ref map[string]any) bool { return text(ref, fieldName) == name && r.backend(ref) })
	}
	lost := (rule[fieldSessions] != nil || r.Sessions != "") && len(r.Written) == 0
	if len(r.Backends) < 2 || !lost && slices.ContainsFunc(r.Backends, missing) {
		return rule
	}
	return r.withoutSessions(r.withoutMirror(r.foldRefs(rule, r.backend)))
}

// backend is true for a reference to a Service that took the place of the root.
func (r record) backend(ref map[string]any) bool {
	return text(ref, "group") == "" && slices.Contains([]string{"", kindService}, text(ref, fieldKind)) && slices.Contains(r.Backends, text(ref, fieldName))
}

// foldRefs replaces the references that are ours by one to the root Service, with the
// sum of their weights.
func (r record) foldRefs(rule map[string]any, ours func(map[string]any) bool) map[string]any {
	refs := objectsOf(rule[fieldBackendRefs])
	at, total := -1, int64(0)
	var folded []map[string]any
	for _, ref := range refs {
		switch {
		case !ours(ref):
			folded = append(folded, ref)
			continue
		case at < 0:
			at = len(folded)
			root := copyOf(ref)
			root[fieldName] = r.Root
			folded = append(folded, root)
		}
		total += number(ref, fieldWeight, 1)
	}
	if at < 0 {
		return rule
	}
	folded[at][fieldWeight] = total
	return with(rule, reduced(folded))
}

// reduced gives references the smallest weights with the same shares.
func reduced(refs []map[string]any) []map[string]any {
	shares := make([]routes.Share, len(refs))
	for i, ref := range refs {
		shares[i].Weight = number(ref, fieldWeight, 1)
	}
	out := make([]map[string]any, len(refs))
	for i, weights := range routes.Weights(shares) {
		out[i] = weighed(refs[i], weights[0].Int64())
	}
	return out
}

// withoutMirror removes the filter of the split's mirror from a rule that a user
// changed: the last one that is as it was written.
func (r record) withoutMirror(rule map[string]any) map[string]any {
	filters := objectsOf(rule[fieldFilters])
	for i, filter := range slices.Backward(filters) {
		if slices.Contains(r.Mirrors, routes.Digest(filter)) {
			changed := maps.Clone(rule)
			changed[fieldFilters] = listOf(slices.Delete(filters, i, i+1))
			if len(filters) == 1 {
				delete(changed, fieldFilters)
			}
			return changed
		}
	}
	return rule
}
