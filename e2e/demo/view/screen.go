// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"
	"strconv"
	"time"

	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/demo/story"
)

// screen is everything that is shown. It shares nothing with the frame that it
// was made from.
type screen struct {
	elapsed time.Duration
	scenes  []story.SceneState
	// reason and message are the Rollout's explanation of its state.
	reason, message string
	// step is such as "1/2", "" when no release is in progress.
	step string
	// inPath tells whether the traffic goes through Serin's proxies.
	inPath bool
	// requested and observed are the canary's weight in percent; nil when there is none.
	requested, observed *int32
	versions            []versionRow
	// unanswered counts requests that no version answered.
	unanswered int64
	loaded     bool
	evidence   evidence
	problem    string
}

// versionRow is what is shown of one version.
type versionRow struct {
	version, role    string
	ready            int
	requests, failed int64
	p50, p99         float64
}

// evidence against the canary.
type evidence struct {
	known         bool
	value, needed float64
	requests      int64
	failures      int64
	verdict       string
}

// describe takes what is shown out of a frame.
func describe(frame story.Frame) screen {
	a := frame.Account
	s := screen{elapsed: a.Now.Sub(a.StartedAt), scenes: frame.Scenes, problem: a.Last.Problem, inPath: a.Last.InPath()}
	ready := a.Last.Ready()
	s.reason, s.message = ready.Reason, ready.Message
	if a.Last.Load != nil {
		s.loaded, s.unanswered = true, a.Last.Load.Unanswered
	}
	for _, r := range a.Releases {
		s.versions = append(s.versions, describeVersion(a.Last, r))
	}
	if a.Last.Rollout != nil {
		s.describeRelease(a.Last.Rollout.Status)
	}
	return s
}

func (s *screen) describeRelease(status serinv1alpha1.RolloutStatus) {
	if status.Step != nil {
		s.step = status.Step.Summary
	}
	if status.Weight != nil {
		requested := status.Weight.Requested
		s.requested = &requested
		if status.Weight.Observed != nil {
			observed := *status.Weight.Observed
			s.observed = &observed
		}
	}
	if status.Analysis != nil && status.Step != nil {
		s.evidence = describeEvidence(status.Analysis)
	}
}

func describeVersion(last story.Snapshot, r *story.Release) versionRow {
	row := versionRow{version: r.Version, role: roleOf(last, r)}
	for _, pod := range last.Pods {
		if pod.Version == r.Version && pod.Ready && !pod.Going {
			row.ready++
		}
	}
	if last.Load != nil {
		counted := last.Load.Version(r.Version)
		row.requests, row.failed = counted.Requests, counted.Failed
		row.p50, row.p99 = counted.Latency.P50, counted.Latency.P99
	}
	return row
}

// roleOf is what the version is to the Rollout, "" for a version of the past.
func roleOf(last story.Snapshot, r *story.Release) string {
	is := func(v *serinv1alpha1.VersionStatus) bool { return v != nil && v.Revision == r.Revision }
	switch {
	case last.Rollout == nil || r.Revision == "":
		return ""
	case r.Outcome != nil && r.Outcome.Outcome == serinv1alpha1.OutcomeRolledBack:
		return "rolled back"
	case is(last.Rollout.Status.Canary):
		return serinv1alpha1.RoleCanary
	case is(last.Rollout.Status.Stable):
		return serinv1alpha1.RoleStable
	default:
		return ""
	}
}

// describeEvidence reads the decimal numbers of the status. What is no number is
// not shown.
func describeEvidence(a *serinv1alpha1.AnalysisStatus) evidence {
	value, err1 := strconv.ParseFloat(a.Evidence, 64)
	needed, err2 := strconv.ParseFloat(a.Threshold, 64)
	return evidence{
		known: err1 == nil && err2 == nil && needed > 1,
		value: value, needed: needed,
		requests: a.CanaryRequests, failures: a.CanaryFailures, verdict: a.Verdict,
	}
}

// share is how far the evidence is on the way to a rollback, 0 to 1. Evidence
// multiplies from window to window, so the way is measured in logarithms.
func (e evidence) share() float64 {
	if !e.known || !(e.value > 1) {
		return 0
	}
	return min(math.Log(e.value)/math.Log(e.needed), 1)
}
