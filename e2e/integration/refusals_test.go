// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// refuse has the proxies refuse requests by themselves.
func (m *measurements) refuse(requests int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = requests
}

// Both versions suffer alike since the proxies carry the traffic: the step is held first, and then
// the Service gets its own pods again.
func TestAReleaseWhoseProxiesRefuseRequestsIsHeldAndThenRolledBack(t *testing.T) {
	t.Parallel()
	p := begin(t)
	before := p.pods()[imageV1]
	p.release()
	p.time.refuse(400)
	p.pass(30 * time.Second)
	p.eventually("the step is held for what proxies refuse", func(context.Context) bool {
		c := meta.FindStatusCondition(p.rollout().Status.Conditions, v1alpha1.ConditionAnalysisPassed)
		return c != nil && c.Reason == string(judge.ReasonRefusedByProxies)
	})
	if st := p.rollout().Status; st.Decision != nil || st.Step == nil || st.Step.Index != 0 {
		t.Errorf("it is not held: step %+v, decision %+v", st.Step, st.Decision)
	}
	p.pass(3 * time.Minute)
	p.checkRolledBack(string(judge.ReasonRefusedByProxies), before)
}
