// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"
	"time"
)

func TestTheEarliestTimeToLookAgainCounts(t *testing.T) {
	for name, test := range map[string]struct {
		ask  []time.Duration
		want time.Duration
	}{
		"nothing is asked for": {nil, 0},
		"the earlier is first": {[]time.Duration{time.Second, time.Minute}, time.Second},
		"the earlier is last":  {[]time.Duration{time.Minute, time.Second}, time.Second},
		"it is over already":   {[]time.Duration{-time.Second}, time.Millisecond},
	} {
		var d Draft
		for _, after := range test.ask {
			d.WakeIn(after)
		}
		if d.After != test.want {
			t.Errorf("%s: after %s", name, d.After)
		}
	}
}

func TestAReplicaSetIsGoneWhenNoPodExistsOrWillBeMade(t *testing.T) {
	for r, want := range map[ReplicaSet]bool{{}: true, {Replicas: 1}: false, {Existing: 1}: false, {Uncounted: true}: false} {
		if got := r.Gone(); got != want {
			t.Errorf("%+v: %v", r, got)
		}
	}
}

func TestAServiceThatIsAbsentSelectsNothing(t *testing.T) {
	if b := (Backend{Revision: "v1"}); b.Selects("v1") {
		t.Error("a Service that was not read selects")
	}
	if b := (Backend{Presence: Present, Revision: "v1"}); !b.Selects("v1") || b.Selects("v2") {
		t.Error("it selects another revision")
	}
}
