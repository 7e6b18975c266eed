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
	for _, test := range []struct {
		field string
		split traffic.Split
	}{
		{"mirror", traffic.Split{Mirror: &traffic.Mirror{Service: "copies", Percent: 10}}},
		{"stickyCookie", traffic.Split{Sticky: &traffic.Sticky{Cookie: "version"}}},
		{"routes", traffic.Split{Routes: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}}}},
		{"ports", traffic.Split{PortWeights: true}},
		{"ports", traffic.Split{PortProtocols: true}},
	} {
		problems := New(0).Check(test.split, nil)
		if len(problems) != 1 || !traffic.Refused(problems) || !strings.Contains(problems[0].Message, "routing]."+test.field+": the router smi") {
			t.Errorf("%s: problems %v", test.field, problems)
		}
		if !strings.Contains(string(page), "`"+test.field+"`") {
			t.Errorf("the page does not name %s", test.field)
		}
	}
	if problems := New(0).Check(traffic.Split{Limited: true}, nil); len(problems) > 0 {
		t.Errorf("matches are a mesh's business: %v", problems)
	}
}
