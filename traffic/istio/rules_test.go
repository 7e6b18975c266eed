// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

// The root Service of a split can be a backend of another one, which made a rule for it.
func TestARuleThatASplitMadeIsNotMadeAgainForItsBackends(t *testing.T) {
	for name, test := range map[string]struct {
		own  bool
		want int
	}{
		"a rule of a user":        {false, 2},
		"a rule of another split": {true, 0},
	} {
		rules, unfit := makeRules([]rule{{name: "web", spec: map[string]any{"host": "web"}, own: test.own}}, shopSplit(false))
		if len(rules) != test.want || unfit != nil {
			t.Errorf("%s: got %+v, %+v, want %d rules", name, rules, unfit, test.want)
		}
	}
}

func TestEveryServiceThatGetsRequestsGetsTheRules(t *testing.T) {
	split := shopSplit(false)
	split.Ports[0].Mirror = &traffic.Destination{Service: "web-next", Port: 80}
	if diff := cmp.Diff([]string{"web-stable", "web-canary", "web-next"}, sentTo(split)); diff != "" {
		t.Errorf("with a mirror (-want +got):\n%s", diff)
	}
	split.Ports[0].Default = &traffic.Destination{Service: "web-rest", Port: 80}
	if diff := cmp.Diff([]string{"web-stable", "web-canary", "web-rest", "web-next"}, sentTo(split)); diff != "" {
		t.Errorf("with a default backend too (-want +got):\n%s", diff)
	}
}
