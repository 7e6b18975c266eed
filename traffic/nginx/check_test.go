// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func TestCheckNamesTheGroupAndMatch(t *testing.T) {
	r := &Router{}
	problems := r.Check(traffic.Split{Limited: true, Matches: []traffic.Match{
		{Group: "ab-test", Name: "firefox-users", Headers: []traffic.Header{{Name: "user_agent", Regex: ".*Firefox.*"}}},
		{Group: "ab-test", Name: "api", Path: "/é"},
	}}, nil)
	if len(problems) != 1 || !traffic.Refused(problems) {
		t.Fatalf("problems: %v", problems)
	}
	for _, part := range []string{`HTTPRouteGroup "ab-test", match "firefox-users"`, `HTTPRouteGroup "ab-test", match "api"`, "; "} {
		if !strings.Contains(problems[0].Message, part) {
			t.Errorf("the message does not say %q: %s", part, problems[0].Message)
		}
	}
	canary := traffic.Destination{Service: "web-canary", Address: "10.0.0.2", Port: 80}
	mirrored := traffic.Split{Mirror: &traffic.Mirror{Service: "web-canary", Percent: 10}, Ports: []traffic.Port{{
		Number: 80, TargetNumber: 8080, Protocol: traffic.ProtocolHTTP, Mirror: &canary,
		Destinations: []traffic.Destination{{Service: "web-stable", Address: "10.0.0.1", Port: 80, Weight: 100}, canary},
	}}}
	if problems := r.Check(mirrored, nil); len(problems) > 0 {
		t.Errorf("problems of a mirrored split: %v", problems)
	}
}
