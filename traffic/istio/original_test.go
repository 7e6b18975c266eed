// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/traffic"
)

func specOf(tb testing.TB, text string) map[string]any {
	tb.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	var spec map[string]any
	if err := utiljson.Unmarshal(content, &spec); err != nil {
		tb.Fatal(err)
	}
	return spec
}

// shopSplit has the weights 9 and 1. Limited, it has a default backend.
func shopSplit(limited bool) traffic.Split {
	split := traffic.Split{Root: "web"}
	split.Namespace, split.Name = "shop", "web"
	port := traffic.Port{Name: "http", Number: 80, Protocol: traffic.ProtocolHTTP, Destinations: []traffic.Destination{
		{Service: "web-stable", Port: 80, Weight: 9}, {Service: "web-canary", Port: 80, Weight: 1},
	}}
	if limited {
		split.Limited = true
		split.Matches = []traffic.Match{{Group: "testers", Name: "get", Methods: []string{"GET"}}}
		port.Default = &traffic.Destination{Service: "web-stable", Port: 80}
	}
	split.Ports = []traffic.Port{port}
	return split
}

func mustRender(tb testing.TB, spec map[string]any, split traffic.Split) (map[string]any, Record) {
	tb.Helper()
	out, record, err := Render(spec, split, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return out, record
}

const website = `
hosts: [shop.example.com]
http:
  - name: beta
    match: [{headers: {x-beta: {}}}]
    route: [{destination: {host: web-canary}}]
  - name: website
    route: [{destination: {host: web}}]
`

func TestEditsInBetweenAreKept(t *testing.T) {
	const written = `
hosts: [shop.example.com]
http:
  - name: beta
    match: [{headers: {x-beta: {}}}]
    route: [{destination: {host: web-canary}}]
  - name: website
    route: [{destination: {host: web-stable}, weight: 9}, {destination: {host: web-canary}, weight: 1}]
`
	for name, test := range map[string]struct{ live, want string }{
		"nothing":                            {written, website},
		"a Git tool writes its routes again": {website, website},
		"a time-out of the route of the split": {
			strings.Replace(written, "  - name: website\n", "  - name: website\n    timeout: 5s\n", 1),
			strings.Replace(website, "  - name: website\n", "  - name: website\n    timeout: 5s\n", 1),
		},
		"a host beside the routes": {
			strings.Replace(written, "[shop.example.com]", "[a.example.com]", 1), strings.Replace(website, "[shop.example.com]", "[a.example.com]", 1),
		},
		"other weights, which the split has to say": {
			strings.Replace(written, "weight: 9", "weight: 50", 1), website,
		},
		"another route in front, which leads to a backend": {
			strings.Replace(written, "http:\n", "http:\n  - match: [{uri: {exact: /x}}]\n    route: [{destination: {host: web-stable}}]\n", 1),
			strings.Replace(website, "http:\n", "http:\n  - match: [{uri: {exact: /x}}]\n    route: [{destination: {host: web-stable}}]\n", 1),
		},
		"one more destination": {
			strings.Replace(written, "weight: 1}]", "weight: 1}, {destination: {host: archive}, weight: 10}]", 1),
			strings.Replace(website, "{destination: {host: web}}", "{destination: {host: web}, weight: 10}, {destination: {host: archive}, weight: 10}", 1),
		},
		"the route leads to one version only": {
			"http:\n  - name: website\n    route: [{destination: {host: web-stable}}]", "http:\n  - name: website\n    route: [{destination: {host: web-stable}}]",
		},
		"all routes are gone":              {"hosts: [a]", "hosts: [a]"},
		"all routes are gone but the list": {"hosts: [a]\nhttp: []", "hosts: [a]\nhttp: []"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, record := mustRender(t, specOf(t, website), shopSplit(false))
			if diff := cmp.Diff(specOf(t, written), rendered); diff != "" {
				t.Fatalf("it is not rendered as this test believes:\n%s", diff)
			}
			if diff := cmp.Diff(specOf(t, test.want), Original(specOf(t, test.live), "shop", record)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALimitedRouteThatIsEditedIsTakenOutAllTheSame(t *testing.T) {
	rendered, record := mustRender(t, specOf(t, website), shopSplit(true))
	routes, _ := rendered["http"].([]any)
	added, _ := routes[1].(map[string]any)
	if !strings.HasPrefix(text(added["name"]), markerPrefix) {
		t.Fatalf("the added route is %v", added)
	}
	added["timeout"] = "5s"
	if diff := cmp.Diff(specOf(t, website), Original(rendered, "shop", record)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRoutesThatAreWrittenAlikeAreRestoredEachAsItWas(t *testing.T) {
	const alike = `
http:
  - route: [{destination: {host: web}}]
  - route: [{destination: {host: web}, weight: 5}]
`
	rendered, record := mustRender(t, specOf(t, alike), shopSplit(false))
	if routes, _ := rendered["http"].([]any); !cmp.Equal(routes[0], routes[1]) {
		t.Fatalf("they are not written alike: %v", routes)
	}
	if diff := cmp.Diff(specOf(t, alike), Original(rendered, "shop", record)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOnlyARouteWithTheWholeNameOfTheSplitWasAddedByIt(t *testing.T) {
	for name, added := range map[string]bool{
		markerPrefix + "web": true, markerPrefix + "web/website": true,
		markerPrefix + "website": false, markerPrefix + "website/web": false, "web": false, "": false,
	} {
		spec := specOf(t, "{http: [{route: [{destination: {host: web-canary}}]}]}")
		routes, _ := spec["http"].([]any)
		routes[0].(map[string]any)["name"] = name
		left, _ := Original(spec, "shop", Record{Split: "web", Root: "web"})["http"].([]any)
		if (len(left) == 0) != added {
			t.Errorf("route %q: %v is left, want it removed: %t", name, left, added)
		}
	}
}

func TestRecordsThatCanNotBeReadAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                      `{`,
		"a route without original":     `{"split":"a","root":"r","routes":[{"section":"http","digest":"x"}]}`,
		"a list that there is not":     `{"split":"a","root":"r","routes":[{"section":"grpc","digest":"x","added":true}]}`,
		"a route that is no object":    `{"split":"a","root":"r","routes":[{"section":"http","digest":"x","original":7}]}`,
		"something entirely different": `[1]`,
		"no root Service":              `{"split":"a","routes":[{"section":"http","digest":"x","added":true}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := ParseRecord(text); err == nil || !strings.Contains(err.Error(), annotationOriginal) {
				t.Errorf("read as %+v, error %v", r, err)
			}
		})
	}
}

func TestARecordThatHasNoRoomIsRefused(t *testing.T) {
	spec := specOf(t, website)
	routes, _ := spec["http"].([]any)
	large, _ := routes[1].(map[string]any)
	large["name"] = strings.Repeat("x", maxRecord)
	_, record := mustRender(t, spec, shopSplit(false))
	if _, err := record.Encode(); err == nil || !strings.Contains(err.Error(), "to record") {
		t.Errorf("error %v", err)
	}
}

// Whatever a VirtualService holds, it is restored as it was, and rendering it again
// gives the same.
func FuzzRenderAndRestore(f *testing.F) {
	f.Add([]byte(`{"http":[{"route":[{"destination":{"host":"web"}}]}]}`), false)
	f.Add([]byte(`{"http":[{"match":[{}],"route":[{"destination":{"host":"web","port":{"number":80}},"weight":1},{"weight":2}]}],"tcp":[{"route":[{"destination":{"host":"web.shop"}}]}]}`), true)
	f.Add([]byte(`{"http":[7,{"route":[null]},{"route":{"a":1}},{"name":5,"route":[{"destination":{"host":"web"},"weight":-1}]}],"tls":null}`), false)
	f.Fuzz(func(t *testing.T, text []byte, limited bool) {
		var spec map[string]any
		if utiljson.Unmarshal(text, &spec) != nil || spec == nil {
			return
		}
		split := shopSplit(limited)
		rendered, record, err := Render(spec, split, nil)
		if err != nil {
			return
		}
		encoded, err := record.Encode()
		if err != nil {
			return
		}
		read, err := ParseRecord(encoded)
		if err != nil {
			t.Fatal(err)
		}
		restored := Original(rendered, split.Namespace, read)
		if diff := cmp.Diff(spec, restored); diff != "" {
			t.Fatalf("(-original +restored)\n%s", diff)
		}
		again, _, err := Render(restored, split, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(rendered)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("rendered again:\n%s\n%s", a, b)
		}
	})
}
