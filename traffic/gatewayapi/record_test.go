// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// routeWith is a route in the cluster with rules.
func routeWith(rules ...map[string]any) *unstructured.Unstructured {
	u := routes.Empty(schema.GroupVersionKind{Group: Group, Version: "v1", Kind: kindHTTPRoute}, "", "")
	u.SetNamespace("shop")
	u.SetName("website")
	if err := setRules(u, rules); err != nil {
		panic(err) // the rules are the test's
	}
	return u
}

// targetOf is a target with a resolved split.
func targetOf(split traffic.Split) traffic.Target {
	ts := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: split.Namespace, Name: split.Name}}
	ts.Spec.Service = split.Root
	if s := split.Sticky; s != nil {
		splitv1.SetRouting(ts, splitv1.Routing{StickyCookie: &splitv1.StickyCookie{Name: s.Cookie, Session: s.Session}})
	}
	for _, d := range split.Ports[0].Destinations {
		ts.Spec.Backends = append(ts.Spec.Backends, splitv1.Backend{Service: d.Service, Weight: d.Weight})
	}
	return traffic.Target{Split: ts, Resolved: split}
}

func mustChange(t *testing.T, route *unstructured.Unstructured, split traffic.Split) *unstructured.Unstructured {
	t.Helper()
	changed, err := Changed(route, targetOf(split), everything().Schema)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func mustRestore(t *testing.T, route *unstructured.Unstructured, split traffic.Split) *unstructured.Unstructured {
	t.Helper()
	restored, err := Restored(route, targetOf(split).Split)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

// drawSplit is a split with other weights, perhaps a match or a mirror, perhaps with clients that stay.
func drawSplit(r *rand.Rand) traffic.Split {
	split := splitFor()
	d := split.Ports[0].Destinations
	d[0].Weight, d[1].Weight = 1+r.Int32N(99), r.Int32N(99)
	switch r.IntN(4) {
	case 0:
		split.Limited = true
		split.Matches = []traffic.Match{drawSplitMatch(r)}
	case 1:
		d[1].Weight = 0
		split.Mirror = &traffic.Mirror{Service: "website-canary", Percent: 1 + r.Int32N(100)}
		split.Ports[0].Mirror = &traffic.Destination{Service: "website-canary", Port: 80}
	}
	if r.IntN(3) == 0 {
		split.Sticky = &traffic.Sticky{Cookie: "version", MaxAge: int64(r.IntN(2)) * 3600, Session: []string{"", "first", "second"}[r.IntN(3)]}
	}
	return split
}

// However often the split changes in between, what is restored is the very object,
// and what is wanted again is what is there already.
func TestARestoredRouteIsWhatItWas(t *testing.T) {
	t.Parallel()
	done := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 3))
		before := routeWith(drawRules(r)...)
		live := before.DeepCopy()
		for range 1 + r.IntN(3) {
			split := drawSplit(r)
			changed, err := Changed(live, targetOf(split), everything().Schema)
			if err != nil {
				continue
			}
			done++
			if again := mustChange(t, changed, split); !same(changed, again) {
				t.Fatalf("seed %d: what is as wanted is written again:\n%s", seed, cmp.Diff(changed.Object, again.Object))
			}
			live = changed
		}
		if restored := mustRestore(t, live, splitFor()); !cmp.Equal(before.Object, restored.Object) {
			t.Fatalf("seed %d (-before +restored):\n%s", seed, cmp.Diff(before.Object, restored.Object))
		}
	}
	if done < 600 {
		t.Errorf("only %d changes: the test says nothing", done)
	}
}

// Nothing but rules that lead to the root Service is touched.
func TestEverythingElseInARouteStays(t *testing.T) {
	t.Parallel()
	rule := map[string]any{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}}, "future": map[string]any{"a": "b"}}
	other := map[string]any{
		"backendRefs": []any{map[string]any{"name": "website-canary", "port": int64(80)}},
		"filters":     []any{map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": map[string]any{"name": "website", "port": int64(80)}}}},
	}
	route := routeWith(other, rule)
	route.SetAnnotations(map[string]string{"mine": "yes"})
	route.Object["status"] = map[string]any{"parents": []any{}}
	changed := mustChange(t, route, splitFor())
	want := route.DeepCopy()
	want.SetAnnotations(map[string]string{"mine": "yes", traffic.AnnotationSplit: "website", AnnotationRecord: changed.GetAnnotations()[AnnotationRecord]})
	expected := runtime.DeepCopyJSON(rule)
	expected["backendRefs"] = []any{
		map[string]any{"name": "website-stable", "port": int64(80), "weight": int64(9)},
		map[string]any{"name": "website-canary", "port": int64(80), "weight": int64(1)},
	}
	if err := setRules(want, []map[string]any{other, expected}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, changed.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatAUserChangesInBetweenIsTheNewIntention(t *testing.T) {
	t.Parallel()
	ref := func(name string, weight int64) map[string]any {
		return map[string]any{"name": name, "port": int64(80), "weight": weight}
	}
	path := func(value string) []any {
		return []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": value}}}
	}
	rule := func(matches []any, refs ...any) map[string]any {
		return map[string]any{"matches": matches, "backendRefs": refs}
	}
	limited := func(s *traffic.Split) {
		s.Limited, s.Matches = true, []traffic.Match{{Headers: []traffic.Header{{Name: "x-beta", Regex: "yes"}}}}
	}
	sticky := func(s *traffic.Split) { s.Sticky = &traffic.Sticky{Cookie: "version", MaxAge: 3600} }
	website := rule(path("/"), ref("website", 1))
	for name, test := range map[string]struct {
		before []map[string]any
		split  func(*traffic.Split)
		// edit gets the rules as they were written.
		edit func(rules []map[string]any) []map[string]any
		want []map[string]any
	}{
		"Git applies its own rules again": {
			before: []map[string]any{website},
			edit:   func([]map[string]any) []map[string]any { return []map[string]any{website} },
			want:   []map[string]any{website},
		},
		"Git applies other rules": {
			before: []map[string]any{website},
			edit: func([]map[string]any) []map[string]any {
				return []map[string]any{rule(path("/new"), ref("website", 1))}
			},
			want: []map[string]any{rule(path("/new"), ref("website", 1))},
		},
		"a field is added to a rule": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["timeouts"] = map[string]any{"request": "1s"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, "timeouts": map[string]any{"request": "1s"}}},
		},
		"the matches of a rule are changed": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["matches"] = path("/other")
				return rules
			},
			want: []map[string]any{rule(path("/other"), ref("website", 1))},
		},
		"the weights are edited by hand": {
			before: []map[string]any{rule(path("/"), ref("website", 3), ref("other", 1))},
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["backendRefs"].([]any)[1].(map[string]any)["weight"] = int64(93)
				return rules // 27, 93, 10
			},
			want: []map[string]any{rule(path("/"), ref("website", 12), ref("other", 1))},
		},
		"a rule is added that names one version": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				return append(rules, rule(path("/canary"), ref("website-canary", 1)))
			},
			want: []map[string]any{website, rule(path("/canary"), ref("website-canary", 1))},
		},
		"a rule with sessions is added that names one version": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				return append(rules, map[string]any{"matches": path("/canary"), "backendRefs": []any{ref("website-canary", 1)}, fieldSessions: map[string]any{"type": "Cookie"}})
			},
			want: []map[string]any{website, {"matches": path("/canary"), "backendRefs": []any{ref("website-canary", 1)}, fieldSessions: map[string]any{"type": "Cookie"}}},
		},
		"a rule is copied": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				copied := runtime.DeepCopyJSON(rules[0])
				copied["matches"] = path("/copy")
				return append(rules, copied)
			},
			want: []map[string]any{website, rule(path("/copy"), ref("website", 1))},
		},
		"a rule that Serin added is edited": {
			before: []map[string]any{website}, split: limited,
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["timeouts"] = map[string]any{"request": "1s"}
				return rules
			},
			want: []map[string]any{website},
		},
		"a rule that Serin added is removed": {
			before: []map[string]any{website}, split: limited,
			edit: func(rules []map[string]any) []map[string]any { return rules[1:] },
			want: []map[string]any{website},
		},
		"every rule is edited": {
			before: []map[string]any{website}, split: limited,
			edit: func(rules []map[string]any) []map[string]any {
				for _, r := range rules {
					r["timeouts"] = map[string]any{"request": "1s"}
				}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, "timeouts": map[string]any{"request": "1s"}}},
		},
		"a rule that is none of the split's is edited": {
			before: []map[string]any{website, rule(path("/x"), ref("other", 1))},
			edit: func(rules []map[string]any) []map[string]any {
				rules[1]["backendRefs"] = []any{ref("website-canary", 1)}
				return rules
			},
			want: []map[string]any{website, rule(path("/x"), ref("website-canary", 1))},
		},
		"a mirrored rule is edited": {
			before: []map[string]any{website},
			split: func(s *traffic.Split) {
				s.Ports[0].Destinations[1].Weight = 0
				s.Mirror, s.Ports[0].Mirror = &traffic.Mirror{Service: "website-canary", Percent: 10}, &traffic.Destination{Service: "website-canary", Port: 80}
			},
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["timeouts"] = map[string]any{"request": "1s"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, "timeouts": map[string]any{"request": "1s"}}},
		},
		"sessions without a name are added to a rule": {
			before: []map[string]any{website},
			edit: func(rules []map[string]any) []map[string]any {
				rules[0][fieldSessions] = map[string]any{"type": "Cookie"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, fieldSessions: map[string]any{"type": "Cookie"}}},
		},
		"a rule in which clients stay is edited": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["timeouts"] = map[string]any{"request": "1s"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, "timeouts": map[string]any{"request": "1s"}}},
		},
		"the sessions that Serin wrote are edited": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				rules[0][fieldSessions].(map[string]any)["absoluteTimeout"] = "24h"
				return rules
			},
			want: []map[string]any{website},
		},
		"sessions of another name replace those that Serin wrote": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				rules[0][fieldSessions] = map[string]any{"sessionName": "mine"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, fieldSessions: map[string]any{"sessionName": "mine"}}},
		},
		"the sessions that Serin wrote are removed": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				delete(rules[0], fieldSessions)
				return rules
			},
			want: []map[string]any{website},
		},
		"a rule whose owner gave its sessions the same name is edited": {
			before: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, fieldSessions: map[string]any{"sessionName": "version"}}}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				rules[0]["timeouts"] = map[string]any{"request": "1s"}
				return rules
			},
			want: []map[string]any{{"matches": path("/"), "backendRefs": []any{ref("website", 1)}, fieldSessions: map[string]any{"sessionName": "version"}, "timeouts": map[string]any{"request": "1s"}}},
		},
		"a rule in which clients stay is copied": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				copied := runtime.DeepCopyJSON(rules[0])
				copied["matches"] = path("/copy")
				return append(rules, copied)
			},
			want: []map[string]any{website, rule(path("/copy"), ref("website", 1))},
		},
		"a rule that names one version is added where clients stay": {
			before: []map[string]any{website}, split: sticky,
			edit: func(rules []map[string]any) []map[string]any {
				return append(rules, rule(path("/canary"), ref("website-canary", 1)))
			},
			want: []map[string]any{website, rule(path("/canary"), ref("website-canary", 1))},
		},
		"the rules are put in another order": {
			before: []map[string]any{website, rule(path("/x"), ref("other", 1))}, split: limited,
			edit: func(rules []map[string]any) []map[string]any { slices.Reverse(rules); return rules },
			want: []map[string]any{rule(path("/x"), ref("other", 1)), website},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			split := splitFor()
			if test.split != nil {
				test.split(&split)
			}
			live := mustChange(t, routeWith(test.before...), split)
			rules := rulesOf(live.DeepCopy())
			if err := setRules(live, test.edit(rules)); err != nil {
				t.Fatal(err)
			}
			cached := live.DeepCopy()
			restored := mustRestore(t, live, split)
			if diff := cmp.Diff(cached.Object, live.Object); diff != "" {
				t.Errorf("the object of the cache was changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, rulesOf(restored)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			// And the split is programmed again on that.
			again := mustChange(t, live, split)
			if fresh := mustChange(t, routeWith(test.want...), split); !cmp.Equal(rulesOf(fresh), rulesOf(again)) {
				t.Errorf("written again (-fresh +again):\n%s", cmp.Diff(rulesOf(fresh), rulesOf(again)))
			}
		})
	}
}

// A record that a user removed or broke does not leave a route with backends that
// are about to go.
func TestALostRecordIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{"removed": "", "broken": "{", "of another form": `{"written":[{"source":7}]}`} {
		live := mustChange(t, routeWith(map[string]any{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}}}), splitFor())
		annotations := live.GetAnnotations()
		annotations[AnnotationRecord] = record
		if record == "" {
			delete(annotations, AnnotationRecord)
		}
		live.SetAnnotations(annotations)
		want := []map[string]any{{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80), "weight": int64(1)}}}}
		restored := mustRestore(t, live, splitFor())
		if diff := cmp.Diff(want, rulesOf(restored)); diff != "" || len(restored.GetAnnotations()) > 0 {
			t.Errorf("%s: annotations %v, rules (-want +got):\n%s", name, restored.GetAnnotations(), diff)
		}
	}
}

// A rule with sessions does not name a backend of weight 0, so it is known by the other one.
func TestALostRecordOfARuleWithSessionsIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, weights := range map[string][2]int32{"before the first step": {100, 0}, "while both get requests": {90, 10}, "at the promotion": {0, 100}} {
		split := splitFor()
		split.Ports[0].Destinations[0].Weight, split.Ports[0].Destinations[1].Weight = weights[0], weights[1]
		sessions := map[string]any{"type": "Cookie"}
		rule := map[string]any{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}}, fieldSessions: sessions}
		other := map[string]any{"backendRefs": []any{map[string]any{"name": "other", "port": int64(80)}}, fieldSessions: sessions}
		live := mustChange(t, routeWith(rule, other), split)
		annotations := live.GetAnnotations()
		delete(annotations, AnnotationRecord)
		live.SetAnnotations(annotations)
		rule["backendRefs"] = []any{map[string]any{"name": "website", "port": int64(80), "weight": int64(1)}}
		if diff := cmp.Diff([]map[string]any{rule, other}, rulesOf(mustRestore(t, live, split))); diff != "" {
			t.Errorf("%s, rules (-want +got):\n%s", name, diff)
		}
	}
}

// Where clients stay, a rule names no backend of weight 0, with the field of sessions or without it.
func TestALostRecordOfARuleInWhichClientsStayIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, weights := range map[string][2]int32{"before the first step": {100, 0}, "while both get requests": {90, 10}, "at the promotion": {0, 100}} {
		for _, session := range []string{"", "v2-1"} {
			split := splitFor()
			split.Sticky = &traffic.Sticky{Cookie: "version", MaxAge: 60, Session: session}
			split.Ports[0].Destinations[0].Weight, split.Ports[0].Destinations[1].Weight = weights[0], weights[1]
			rule := map[string]any{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}}}
			other := map[string]any{"backendRefs": []any{map[string]any{"name": "other", "port": int64(80)}}, fieldSessions: map[string]any{"sessionName": "mine"}}
			live := mustChange(t, routeWith(rule, other), split)
			annotations := live.GetAnnotations()
			delete(annotations, AnnotationRecord)
			live.SetAnnotations(annotations)
			rule["backendRefs"] = []any{map[string]any{"name": "website", "port": int64(80), "weight": int64(1)}}
			if diff := cmp.Diff([]map[string]any{rule, other}, rulesOf(mustRestore(t, live, split))); diff != "" {
				t.Errorf("%s, session %q, rules (-want +got):\n%s", name, session, diff)
			}
		}
	}
}

func TestARouteTooLargeToRememberIsRefused(t *testing.T) {
	t.Parallel()
	rule := map[string]any{
		"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}},
		"future":      strings.Repeat("x", maxRecord),
	}
	_, err := Changed(routeWith(rule), targetOf(splitFor()), Schema{})
	if err == nil || !strings.Contains(err.Error(), "too many to be remembered") {
		t.Errorf("got %v", err)
	}
}

// Whatever annotations hold, nothing panics, and a rule without our doing stays.
func FuzzRecords(f *testing.F) {
	live := routeWith(map[string]any{"backendRefs": []any{map[string]any{"name": "website", "port": int64(80)}}})
	changed, err := Changed(live, targetOf(splitFor()), Schema{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(changed.GetAnnotations()[AnnotationRecord])
	f.Add(`{"rules":[null],"written":[{"source":0}]}`)
	f.Add(`{"rules":[{"backendRefs":[1]}],"written":[{"source":-1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		route := changed.DeepCopy()
		annotations := route.GetAnnotations()
		annotations[AnnotationRecord] = text
		route.SetAnnotations(annotations)
		holderOf(route)
		splitOf(route)
		if _, err := Restored(route, targetOf(splitFor()).Split); err != nil {
			t.Error(err)
		}
	})
}
