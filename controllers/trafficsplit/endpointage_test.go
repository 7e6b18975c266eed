// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
)

func TestABackendIsFreshUntilItHadEndpointsForAMoment(t *testing.T) {
	var s endpointAges
	web, now := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1000, 0)
	const half = plan.EndpointTime / 2
	for _, step := range []struct {
		name  string
		later time.Duration
		ready map[string]int32
		want  map[string]time.Duration
	}{
		{"one has endpoints", 0, map[string]int32{"a": 1, "b": 0}, map[string]time.Duration{"a": plan.EndpointTime}},
		{"the other gets some", half, map[string]int32{"a": 2, "b": 1}, map[string]time.Duration{"a": half, "b": plan.EndpointTime}},
		{"the first is known, the other loses its own", half, map[string]int32{"a": 2, "b": 0}, map[string]time.Duration{}},
		{"and has to wait anew", half, map[string]int32{"a": 2, "b": 1}, map[string]time.Duration{"b": plan.EndpointTime}},
	} {
		now = now.Add(step.later)
		if diff := cmp.Diff(step.want, s.fresh(web, step.ready, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	s.forget(web)
	if len(s.since) != 0 {
		t.Errorf("left is %v", s.since)
	}
}
