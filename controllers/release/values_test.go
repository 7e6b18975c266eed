// SPDX-License-Identifier: Apache-2.0

package release

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// A number of the user rolls back although nothing can measure the traffic, and none is
// judged twice.
func TestANumberRollsBackWhileTheProxiesCantBeRead(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.until("weight 10", func() bool { return w.split != nil && w.split.observed == 10 })
	o := w.observe()
	limit := judge.ValueBetween("errors", math.Inf(-1), 10)
	o.Metrics.Limits, o.Windows, o.Stored, o.ReportedAt = []judge.Limit{limit}, nil, nil, time.Time{}
	for i := range int(limit.ConsecutiveFailureLimit) - 1 {
		o.Values = append(o.Values, analysis.KnownValue{At: w.now.Add(time.Duration(i) * time.Second), Value: analysis.Value{Name: "errors", Value: new(11.0)}})
	}
	d := Decide(o)
	if d.Status.Decision != nil || !d.Status.Analysis.LastValueAt.Time.Equal(o.Values[len(o.Values)-1].At) {
		t.Fatalf("decided %+v; last value %v", d.Status.Decision, d.Status.Analysis.LastValueAt)
	}
	o.Rollout = o.Rollout.DeepCopy()
	o.Rollout.Status = d.Status
	o.Values = []analysis.KnownValue{{At: w.now.Add(time.Minute), Value: analysis.Value{Name: "errors", Value: new(12.0)}}}
	d = Decide(o)
	if d.Status.Decision == nil || d.Status.Decision.Action != v1alpha1.ActionRollBack || d.Status.Decision.Reason != string(judge.ReasonLimitMissed) {
		t.Errorf("decided %+v", d.Status.Decision)
	}
}
