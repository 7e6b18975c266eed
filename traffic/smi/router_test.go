// SPDX-License-Identifier: Apache-2.0

package smi

import (
	"os"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

// What the page says a mesh does not follow is refused, each by its own name.
func TestAnnotationsThatNoMeshFollowsAreRefused(t *testing.T) {
	page, err := os.ReadFile("../../docs/smi.md")
	if err != nil {
		t.Fatal(err)
	}
	for annotation, split := range map[string]traffic.Split{
		"serin.dev/mirror":         {Mirror: &traffic.Mirror{Service: "copies", Percent: 10}},
		"serin.dev/sticky-cookie":  {Sticky: &traffic.Sticky{Cookie: "version"}},
		"serin.dev/routes":         {Routes: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}}},
		"serin.dev/port-weights":   {PortWeights: true},
		"serin.dev/port-protocols": {PortProtocols: true},
	} {
		problems := New(0).Check(split, nil)
		if len(problems) != 1 || !traffic.Refused(problems) || !strings.Contains(problems[0].Message, annotation+"]: the router smi") {
			t.Errorf("%s: problems %v", annotation, problems)
		}
		if !strings.Contains(string(page), "`"+annotation+"`") {
			t.Errorf("the page does not name %s", annotation)
		}
	}
	if problems := New(0).Check(traffic.Split{Limited: true}, nil); len(problems) > 0 {
		t.Errorf("matches are a mesh's business: %v", problems)
	}
}
