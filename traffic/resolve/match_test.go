// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// web are a root Service with one HTTP port and two versions.
func web() map[string]*corev1.Service {
	http := func(number int32) corev1.ServicePort { return corev1.ServicePort{Name: "http", Port: number} }
	return map[string]*corev1.Service{
		"web":        service("web", "10.0.0.1", map[string]string{"app": "web"}, http(80)),
		"web-stable": service("web-stable", "10.0.0.2", map[string]string{"app": "web", "v": "1"}, http(80)),
		"web-canary": service("web-canary", "10.0.0.3", map[string]string{"app": "web", "v": "2"}, http(80)),
	}
}

func group(name string, matches ...specsv1.HTTPMatch) *specsv1.HTTPRouteGroup {
	return &specsv1.HTTPRouteGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: specsv1.HTTPRouteGroupSpec{Matches: matches},
	}
}

func headers(pairs ...string) specsv1.Headers {
	var h specsv1.Headers
	for i := 0; i < len(pairs); i += 2 {
		h.Items = append(h.Items, specsv1.Header{Name: pairs[i], Regex: pairs[i+1]})
	}
	return h
}

// webSplit is an A/B test among the requests of the groups a and b.
func webSplit() *splitv1.TrafficSplit {
	split := birdSplit("web", splitv1.Backend{Service: "web-stable"}, splitv1.Backend{Service: "web-canary", Weight: 100})
	split.Spec.Matches = []splitv1.Match{{Kind: "HTTPRouteGroup", Name: "a"}, {Kind: "HTTPRouteGroup", Name: "b"}}
	splitv1.SetRouting(split, splitv1.Routing{DefaultBackend: "web-stable"})
	return split
}

func webGroups() map[string]*specsv1.HTTPRouteGroup {
	return map[string]*specsv1.HTTPRouteGroup{
		"a": group("a",
			specsv1.HTTPMatch{Name: "beta", Methods: []specsv1.HTTPMethod{"POST", "GET", "GET"}, PathRegex: "/api", Headers: headers("X-Beta", "1", "cookie", ".*")},
			specsv1.HTTPMatch{Name: "any", Methods: []specsv1.HTTPMethod{"GET", "*"}}),
		"b": group("b", specsv1.HTTPMatch{Name: "beta", PathRegex: "/b"}),
	}
}

func TestGroupsAreMerged(t *testing.T) {
	got, problems := resolve.Split(webSplit(), resolve.Known{Services: web(), Groups: webGroups()})
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	want := []traffic.Match{
		{
			Group: "a", Name: "beta", Methods: []string{"GET", "POST"}, Path: "/api",
			Headers: []traffic.Header{{Name: "x-beta", Regex: "1"}, {Name: "cookie", Regex: ".+"}},
		},
		{Group: "a", Name: "any"},
		{Group: "b", Name: "beta", Path: "/b"},
	}
	if diff := cmp.Diff(want, got.Matches); diff != "" || !got.Limited {
		t.Errorf("limited: %t, matches (-want +got):\n%s", got.Limited, diff)
	}
	if d := got.Ports[0].Default; d == nil || d.Service != "web-stable" || d.Address != "10.0.0.2" || d.Weight != 0 {
		t.Errorf("default: %+v", d)
	}
	if n := len(got.Unroutable()); n > 0 {
		t.Errorf("%d ports are unroutable", n)
	}
	if diff := cmp.Diff([]traffic.Ability{traffic.AbilityMatch}, got.Needs()); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

func TestResolveOfMatchesAndMirrors(t *testing.T) {
	type state struct {
		split *splitv1.TrafficSplit
		known resolve.Known
		group *specsv1.HTTPRouteGroup
	}
	for name, test := range map[string]struct {
		edit func(*state)
		// condition and reason of the first problem, "" for none, and what its message says.
		condition, reason string
		says              []string
	}{
		"all is well": {edit: func(*state) {}},
		"a group that does not exist matches nothing": {
			edit:      func(s *state) { delete(s.known.Groups, "b") },
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonGroupNotFound, says: []string{`"b"`, "no request matches"},
		},
		"a group that is named twice is told once": {
			edit: func(s *state) {
				s.split.Spec.Matches = append(s.split.Spec.Matches, s.split.Spec.Matches...)
				delete(s.known.Groups, "b")
			},
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonGroupNotFound, says: []string{`"b"`},
		},
		"without a default the root Service's own pods get the others, by a Service that is not there yet": {
			edit:      func(s *state) { s.split.Annotations = nil },
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonPending, says: []string{"spec.matches", `"serin-unmatched-birds"`, "is being made"},
		},
		"by a Service that is there": {
			edit: func(s *state) {
				s.split.Annotations = nil
				s.known.Services["serin-unmatched-birds"] = service("serin-unmatched-birds", "10.0.0.9", map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
			},
		},
		"the root Service is no default": {
			edit:      func(s *state) { splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "web" }) },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{"serin.dev/routing].defaultBackend", "root Service"},
		},
		"a default that selects all pods is a circle": {
			edit: func(s *state) {
				s.known.Services["all"] = service("all", "10.0.0.9", map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "all" })
			},
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{"serin.dev/routing].defaultBackend", "selects all pods"},
		},
		"a default that is no name": {
			edit:      func(s *state) { splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "a b;" }) },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{"not the name of a Service"},
		},
		"a default that does not exist yet": {
			edit: func(s *state) {
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "web-old" })
			},
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonBackendNotFound, says: []string{"serin.dev/routing].defaultBackend", `"web-old"`},
		},
		"a default without the port": {
			edit: func(s *state) {
				s.known.Services["web-old"] = service("web-old", "10.0.0.9", nil, corev1.ServicePort{Name: "http", Port: 81})
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.DefaultBackend = "web-old" })
			},
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonPortMismatch, says: []string{"serin.dev/routing].defaultBackend", "80 (http)"},
		},
		"another kind of group": {
			edit:      func(s *state) { s.split.Spec.Matches[0].Kind = "TCPRoute" },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonUnsupported, says: []string{"TCPRoute"},
		},
		"connections can't be matched": {
			edit:      func(s *state) { s.known.Services["web"].Spec.Ports[0].Name = "redis" },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonUnsupported, says: []string{"spec.matches", "80 (redis)"},
		},
		"datagrams can't be matched": {
			edit:      func(s *state) { s.known.Services["web"].Spec.Ports[0].Protocol = corev1.ProtocolUDP },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonUnsupported, says: []string{"spec.matches", "80 (http)"},
		},
		"a match without a condition": {
			edit:      func(s *state) { s.group.Spec.Matches[0] = specsv1.HTTPMatch{Name: "beta"} },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`HTTPRouteGroup "a", match "beta"`, "no condition"},
		},
		"a method that is none": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Methods[0] = "get\n" },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`match "beta"`, `"get\n" is not a method`},
		},
		"headers that could not be read": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Headers = specsv1.Headers{Invalid: "headers: must be a map"} },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`match "beta"`, "must be a map"},
		},
		"a header's name that is none": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Headers = headers("x y", "1") },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`"x y" is not the name of a header`},
		},
		"a header that is named twice in different case": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Headers = headers("X-A", "1", "x-a", "2") },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`"x-a" is named twice`},
		},
		"an expression of a path that is refused": {
			edit:      func(s *state) { s.group.Spec.Matches[0].PathRegex = "(a+)+" },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`match "beta"`, "pathRegex", "repeats inside"},
		},
		"an expression of a header that is refused": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Headers = headers("X-A", "(?=x)") },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`match "beta"`, "headers: x-a", `read "?=x)" differently`},
		},
		"an expression of a header that an empty value meets": {
			edit:      func(s *state) { s.group.Spec.Matches[0].Headers = headers("X-A", "^a*$") },
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{`match "beta"`, "headers: x-a", "matches an empty value"},
		},
		"a mirror": {edit: func(s *state) {
			splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary", Percent: 100} })
		}},
		"a mirror without a percentage": {
			edit: func(s *state) {
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary"} })
			},
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{"serin.dev/routing].mirror", "{service: website-canary, percent: 10}"},
		},
		"a mirror that does not exist yet": {
			edit: func(s *state) {
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-next", Percent: 5} })
			},
			condition: splitv1.ConditionResolvedRefs, reason: splitv1.ReasonBackendNotFound, says: []string{"serin.dev/routing].mirror", `"web-next"`},
		},
		"a mirror that is the root Service": {
			edit: func(s *state) {
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web", Percent: 5} })
			},
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonInvalid, says: []string{"serin.dev/routing].mirror", "root Service"},
		},
		"connections can't be mirrored": {
			edit: func(s *state) {
				s.split.Spec.Matches = nil
				splitv1.EditRouting(s.split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary", Percent: 5} })
				s.known.Services["web"].Spec.Ports[0].Name = "tcp-web"
			},
			condition: splitv1.ConditionAccepted, reason: splitv1.ReasonUnsupported, says: []string{"serin.dev/routing].mirror", "80 (tcp-web)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{split: webSplit(), known: resolve.Known{Services: web(), Groups: webGroups(), Proxied: true}}
			s.group = s.known.Groups["a"]
			test.edit(&s)
			got, problems := resolve.Split(s.split, s.known)
			if test.reason == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Condition != test.condition || problems[0].Reason != test.reason {
				t.Fatalf("problems: %+v, want one of %s %s", problems, test.condition, test.reason)
			}
			for _, part := range test.says {
				if !strings.Contains(problems[0].Message, part) {
					t.Errorf("the message does not say %q: %s", part, problems[0].Message)
				}
			}
			if traffic.Refused(problems) && (len(got.Ports) > 0 || len(got.Matches) > 0) {
				t.Errorf("refused, but has %+v", got)
			}
		})
	}
}

func TestALimitedPortWithoutDefaultIsUnroutable(t *testing.T) {
	split := webSplit()
	splitv1.EditRouting(split, func(r *splitv1.Routing) { r.DefaultBackend = "web-old" })
	got, _ := resolve.Split(split, resolve.Known{Services: web(), Groups: webGroups()})
	if n := len(got.Unroutable()); n != 1 {
		t.Errorf("%d ports are unroutable, want 1", n)
	}
}

func TestMirrorsThatAreRefused(t *testing.T) {
	for value, want := range map[splitv1.Mirror]*traffic.Mirror{
		{Service: "web-canary", Percent: 1}:   {Service: "web-canary", Percent: 1},
		{Service: "web-canary", Percent: 100}: {Service: "web-canary", Percent: 100},
		{}:                                    nil, {Service: "web-canary"}: nil, {Percent: 5}: nil,
		{Service: "web-canary", Percent: 101}: nil, {Service: "web-canary", Percent: -1}: nil,
		{Service: "Web", Percent: 5}: nil, {Service: " web-canary", Percent: 5}: nil, {Service: "web-canary\n", Percent: 5}: nil,
	} {
		t.Run(fmt.Sprintf("%+v", value), func(t *testing.T) {
			split := webSplit()
			splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Mirror = &value })
			got, problems := resolve.Split(split, resolve.Known{Services: web(), Groups: webGroups()})
			if traffic.Refused(problems) != (want == nil) {
				t.Fatalf("problems: %v", problems)
			}
			if want == nil {
				return
			}
			if diff := cmp.Diff(want, got.Mirror); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d := got.Ports[0].Mirror; d == nil || d.Service != "web-canary" {
				t.Errorf("copies go to %+v", d)
			}
			if diff := cmp.Diff([]traffic.Ability{traffic.AbilityMatch, traffic.AbilityMirror}, got.Needs()); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARouterIsRefusedWhatItLacks(t *testing.T) {
	both := traffic.Split{Limited: true, Mirror: &traffic.Mirror{}}
	for name, test := range map[string]struct {
		split traffic.Split
		has   []traffic.Ability
		want  []string
	}{
		"a plain split needs nothing":  {split: traffic.Split{}},
		"nothing is lacking":           {split: both, has: []traffic.Ability{traffic.AbilityMirror, traffic.AbilityMatch}},
		"a router that can do neither": {split: both, want: []string{"spec.matches: the router x", "serin.dev/routing].mirror: the router x"}},
		"a router that can only match": {split: both, has: []traffic.Ability{traffic.AbilityMatch}, want: []string{"serin.dev/routing].mirror: the router x"}},
	} {
		t.Run(name, func(t *testing.T) {
			problems := traffic.Lacking(test.split, "x", test.has...)
			if len(problems) != len(test.want) || traffic.Refused(problems) != (len(test.want) > 0) {
				t.Fatalf("problems: %v", problems)
			}
			for i, p := range problems {
				if !strings.Contains(p.Message, test.want[i]) || p.Reason != splitv1.ReasonUnsupported {
					t.Errorf("problem %+v, want %q", p, test.want[i])
				}
			}
		})
	}
}

func TestTheDigestTellsWhatIsServed(t *testing.T) {
	digest := func(edit func(*splitv1.TrafficSplit, resolve.Known)) string {
		split, known := webSplit(), resolve.Known{Services: web(), Groups: webGroups()}
		edit(split, known)
		got, _ := resolve.Split(split, known)
		return got.Digest()
	}
	plain := digest(func(*splitv1.TrafficSplit, resolve.Known) {})
	if len(plain) != 16 {
		t.Errorf("digest %q", plain)
	}
	if again := digest(func(s *splitv1.TrafficSplit, _ resolve.Known) { s.Generation++ }); again != plain {
		t.Error("it depends on the generation, which is reported beside it")
	}
	seen := map[string]string{plain: "nothing"}
	for name, edit := range map[string]func(*splitv1.TrafficSplit, resolve.Known){
		"a weight":           func(s *splitv1.TrafficSplit, _ resolve.Known) { s.Spec.Backends[0].Weight = 1 },
		"an address":         func(_ *splitv1.TrafficSplit, k resolve.Known) { k.Services["web-canary"].Spec.ClusterIP = "10.0.0.8" },
		"a group":            func(_ *splitv1.TrafficSplit, k resolve.Known) { k.Groups["b"].Spec.Matches[0].PathRegex = "/c" },
		"that there is none": func(_ *splitv1.TrafficSplit, k resolve.Known) { delete(k.Groups, "b") },
		"the default": func(s *splitv1.TrafficSplit, _ resolve.Known) {
			splitv1.EditRouting(s, func(r *splitv1.Routing) { r.DefaultBackend = "web-canary" })
		},
		"a mirror": func(s *splitv1.TrafficSplit, _ resolve.Known) {
			splitv1.EditRouting(s, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary", Percent: 5} })
		},
		"another mirror": func(s *splitv1.TrafficSplit, _ resolve.Known) {
			splitv1.EditRouting(s, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-canary", Percent: 6} })
		},
	} {
		got := digest(edit)
		if other, taken := seen[got]; taken {
			t.Errorf("a change of %s has the digest of a change of %s", name, other)
		}
		seen[got] = name
	}
}

func TestNamesOfReferences(t *testing.T) {
	split := webSplit()
	splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-next", Percent: 5} })
	want := []string{"web", "web-stable", "web-canary", "web-stable", "web-next"}
	if diff := cmp.Diff(want, resolve.ServiceNames(split)); diff != "" {
		t.Errorf("Services (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, resolve.GroupNames(split)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	split.Spec.Service, split.Spec.Matches = "..", nil
	split.Annotations[splitv1.AnnotationRouting] = "x"
	if diff := cmp.Diff([]string{"web-stable", "web-canary"}, resolve.ServiceNames(split)); diff != "" {
		t.Errorf("what can't be read names nothing (-want +got):\n%s", diff)
	}
}
