// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Draft is a Decision in the making. Decide makes it, and it never leaves it.
type Draft struct {
	Snapshot

	kit.Draft

	Questions []Question
	Next      time.Time // when the release goes on; zero when it waits for something else
	Measure   bool
	// Entries are the windows that were judged, for the recording of the release Recorded.
	Entries  []recording.Entry
	Recorded recording.Release
	// Leaving is whether the traffic returns to the root Service, and no weight is
	// live any more.
	Leaving bool
}

// GoesOn says when the release goes on if nothing else happens, and has Decide
// called then.
func (d *Draft) GoesOn(t time.Time) {
	if t.IsZero() {
		return
	}
	d.Next = t
	d.Wake(t)
}

// Wake has Decide called again at t at the latest; never, if that is zero.
func (d *Draft) Wake(t time.Time) {
	if t.IsZero() {
		return
	}
	d.WakeIn(t.Sub(d.Now))
}

// Micro is now as the status stores it, rounded up: what began before it must
// not seem to have begun after.
func (s *Snapshot) Micro() metav1.MicroTime {
	t := s.Now.Truncate(time.Microsecond)
	if t.Before(s.Now) {
		t = t.Add(time.Microsecond)
	}
	return metav1.NewMicroTime(t)
}

// Request requests what the canary gets, and puts that on record.
func (d *Draft) Request(r strategy.Route) {
	if d.Status.Weight == nil {
		d.Status.Weight = &v1alpha1.WeightStatus{}
	}
	d.Status.Weight.Requested, d.Status.Weight.Matches = r.Weight, r.Matches
	if !d.ByReplicas && !d.Requests(r) {
		d.Writer.Write(d, r)
	}
}

// EnterStep moves to a step; the weight and the hold of the step before stay until
// this one's weight is live.
func (d *Draft) EnterStep(i int) {
	r := strategy.Route{Weight: strategy.FullWeight}
	if i < len(d.Steps) {
		r = d.StepAt(i).Route
	}
	d.Status.Step = &v1alpha1.StepStatus{
		Index: int32(i), Of: int32(len(d.Steps)), Summary: d.Summary(i), //nolint:gosec // at most 100 steps
		Weight: r.Weight, Matches: r.Matches, StartedAt: d.Micro(),
	}
}

// Summary says which of how many steps a step is, for users: "2/3".
func (s *Snapshot) Summary(i int) string {
	return fmt.Sprintf("%d/%d", min(i+1, len(s.Steps)), len(s.Steps))
}

// SplitWriter writes a route into the split.
type SplitWriter struct{}

func (SplitWriter) Write(d *Draft, r strategy.Route) { d.Do(ApplySplit{r}) }
