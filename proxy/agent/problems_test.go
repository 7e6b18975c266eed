// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestWhatHasNoBackendIsReportedUntilItHas(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	missing := wanted(1, 100)
	missing.Problems = []traffic.Problem{{Condition: splitv1.ConditionResolvedRefs, Message: `spec.backends: Service "web-canary" does not exist yet`}}
	s.wants <- missing
	want := served(missing)
	if want.Message != missing.Problems[0].Message {
		t.Fatalf("the message is %q", want.Message)
	}
	if diff := cmp.Diff(want, s.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	s.wants <- wanted(1, 100, 0)
	if diff := cmp.Diff(served(wanted(1, 100, 0)), s.report(t)); diff != "" {
		t.Errorf("report when it exists (-want +got):\n%s", diff)
	}
}
