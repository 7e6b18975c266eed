// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis/refusals"
	"github.com/serin-dev/serin/analysis/shares"
)

// Verdict is what the evidence says about the canary in the present step.
type Verdict string

const (
	// Pass means that the step has all the evidence it needs and none against it.
	Pass Verdict = "Pass"
	// Fail means that the canary must be rolled back. It does not go away.
	Fail Verdict = "Fail"
	// Inconclusive means that neither is known yet. Reason says what is missing.
	Inconclusive Verdict = "Inconclusive"
)

// Reason explains a Verdict in one CamelCase word, for conditions.
type Reason string

// Reasons of a Pass.
const (
	// ReasonNotWorse means that nothing speaks against the canary and every
	// minimum is met.
	ReasonNotWorse Reason = "NotWorse"
	// ReasonNotCompared is a Pass at weight 100, where no stable traffic is left
	// to compare with: the minimum and the limits are met.
	ReasonNotCompared Reason = "NotCompared"
	// ReasonNotCalled is a Pass at weight 0, where the canary gets no requests: every
	// limit is one on a Value, and they are met.
	ReasonNotCalled Reason = "NotCalled"
	// ReasonWithinLimits is a Pass where nothing counts the requests: every limit is one on
	// a Value, and they are met.
	ReasonWithinLimits Reason = "WithinLimits"
)

// Reasons of a Fail.
const (
	// ReasonWorseThanStable means that the evidence reached what is needed.
	ReasonWorseThanStable Reason = "WorseThanStable"
	// ReasonLimitMissed means that a limit was missed too many times in a row.
	ReasonLimitMissed Reason = "LimitMissed"
	// ReasonRefusedByProxies means that Serin's proxies refuse requests by themselves, so that
	// both versions suffer from the release. It is Inconclusive first, and a Fail when it lasts
	// and the versions are not the cause.
	ReasonRefusedByProxies Reason = "RefusedByProxies"
)

// Reasons of Inconclusive, most fundamental first.
const (
	// ReasonInvalidConfig means that Config.Validate returns an error.
	ReasonInvalidConfig Reason = "InvalidConfig"
	// ReasonInvalidData means that the window cannot be true; it was not used.
	ReasonInvalidData Reason = "InvalidData"
	// ReasonOutOfOrder means that the window overlaps one already judged; it was
	// not used.
	ReasonOutOfOrder Reason = "OutOfOrder"
	// ReasonMissingData means that no window of the present step was seen yet.
	ReasonMissingData Reason = "MissingData"
	// ReasonStaleData means that the newest window is older than StaleAfter.
	ReasonStaleData Reason = "StaleData"
	// ReasonShareMismatch means that the versions' shares of the requests are not what the
	// weight says, so that nothing is known of what the next weight would do.
	ReasonShareMismatch Reason = "ShareMismatch"
	// ReasonStartingUp means that the start-up phase is not over, or that no
	// window after it was seen in this step.
	ReasonStartingUp Reason = "StartingUp"
	// ReasonNoTraffic means that the canary answered nothing in this step.
	ReasonNoTraffic Reason = "NoTraffic"
	// ReasonNoStableTraffic means that stable answered nothing in this step.
	ReasonNoStableTraffic Reason = "NoStableTraffic"
	// ReasonTooFewRequests means that a version answered fewer than MinRequests
	// in this step after the start-up phase.
	ReasonTooFewRequests Reason = "TooFewRequests"
	// ReasonSuspected means that the evidence against the canary has reached the
	// square root of what rolls back: too much to go on, too little to be sure.
	ReasonSuspected Reason = "Suspected"
	// ReasonLimitUnmeasured means that a limit lacks samples in this step.
	ReasonLimitUnmeasured Reason = "LimitUnmeasured"
	// ReasonLimitUndecided means that the bounds of the latency histogram cannot
	// tell whether a limit is met.
	ReasonLimitUndecided Reason = "LimitUndecided"
	// ReasonLimitMissing means that the number that a limit is about was due and
	// there was none, or that the newest is too old.
	ReasonLimitMissing Reason = "LimitMissing"
	// ReasonLimitAtRisk means that the last measurement missed a limit, not yet
	// often enough in a row to fail.
	ReasonLimitAtRisk Reason = "LimitAtRisk"
)

// Names of the metrics that are compared without being named by the user.
const (
	// MetricFailures is the share of requests that failed.
	MetricFailures = "failures"
	// MetricLatency is the share of requests that were slower than stable's are.
	MetricLatency = "latency"
)

// Result is a verdict and what it rests on.
type Result struct {
	Verdict Verdict
	Reason  Reason
	// Evidence is the evidence against the canary over the whole rollout, and
	// Threshold how much of it rolls back.
	Evidence, Threshold float64
	// DecidingMetric is the metric that contributes most to Evidence: MetricFailures,
	// MetricLatency or the name of one of the user's metrics.
	DecidingMetric string
	// DecidingBound is the bound of the histogram beyond which DecidingMetric differs most
	// between the versions, 0 for counts. DecidingCanary and DecidingStable are the
	// shares of their events that were beyond it, or bad, within the last minute or
	// so. Not set for MetricFailures.
	DecidingBound, DecidingCanary, DecidingStable float64
	// PromotionEvidence is the evidence of the present step that the canary is not worse
	// by Tolerance or more, in that metric in which there is least; 1 means none.
	// PromotionThreshold is how much of it promotes early, 0 if none does.
	PromotionEvidence, PromotionThreshold float64
	// MayPromote means that the canary may be promoted before the end of the
	// step: Verdict is Pass, PromotionEvidence has reached PromotionThreshold and the step
	// was measured for MinEvidence. It speaks for the weight of the present step
	// only: act on it in the last step before promotion. Keep a part of the
	// traffic on stable until the planned end and go on judging, since a defect
	// that begins late is found only by comparison.
	MayPromote bool
	// MinDetectableEffect is how much more often than stable the canary would have to
	// fail to be found with the requests so far, as a fraction: about half of
	// the canaries that bad would have been rolled back by now. 1 means that
	// nothing would have been found yet.
	MinDetectableEffect float64
	// ReleaseRequests and ReleaseFailures count the canary since its first request.
	ReleaseRequests, ReleaseFailures int64
	// CanaryRequests and the others count the present step, from the end of the
	// start-up phase on once a window after it was seen.
	CanaryRequests, CanaryFailures int64
	StableRequests, StableFailures int64
	// MinRequests is how many of them each version needs.
	MinRequests int64
	// Shares is how the requests of the step were shared. Only with Config.Shares.
	Shares shares.Result
	// Refusals are what Serin's proxies refused by themselves.
	Refusals refusals.State
	// Limit is the limit that Reason is about, if it is about one.
	Limit Limit
	// LimitSamples is how many requests have come together for its next
	// measurement, and LimitMissed how many measurements in a row missed it.
	LimitSamples int64
	LimitMissed  int32
}

// Explain says in one sentence, for users, why the verdict is what it is.
func (r Result) Explain() string {
	switch r.Reason {
	case ReasonWorseThanStable, ReasonSuspected:
		return fmt.Sprintf("%s; %s; %d failed requests so far", r.comparison(), r.evidence(), r.ReleaseFailures)
	case ReasonNotWorse:
		return fmt.Sprintf("%s over %d canary and %d stable requests; %s", r.difference(), r.CanaryRequests, r.StableRequests, r.evidence()) + r.detected() + r.promoted()
	case ReasonNotCompared:
		return fmt.Sprintf("all traffic is on the canary, so there is nothing to compare with; %d of its %d requests failed", r.CanaryFailures, r.CanaryRequests)
	case ReasonTooFewRequests:
		return r.waiting()
	case ReasonShareMismatch:
		return r.Shares.Explain()
	case ReasonRefusedByProxies:
		return r.Refusals.Explain()
	case ReasonLimitMissed, ReasonLimitUnmeasured, ReasonLimitUndecided, ReasonLimitAtRisk, ReasonLimitMissing:
		return r.limit()
	default:
		if text, ok := explanations[r.Reason]; ok {
			return text
		}
		return string(r.Reason)
	}
}

// explanations are those that need no figures.
var explanations = map[Reason]string{
	ReasonInvalidConfig:   "the analysis settings are invalid",
	ReasonInvalidData:     "the last window holds impossible counts; it was not used",
	ReasonOutOfOrder:      "the last window overlaps one already judged; it was not used",
	ReasonMissingData:     "no traffic has been measured in this step yet",
	ReasonStaleData:       "the newest measurement is too old to go on",
	ReasonStartingUp:      "the canary is still in its start-up phase",
	ReasonNoTraffic:       "the canary has answered no request in this step",
	ReasonNotCalled:       "no traffic goes to the canary, and its metrics are within their limits",
	ReasonWithinLimits:    "its metrics are within their limits; nothing counts its requests",
	ReasonNoStableTraffic: "stable has answered no request in this step, so there is nothing to compare with",
}

// comparison says what the metric that contributes most shows.
func (r Result) comparison() string {
	switch {
	case r.DecidingMetric == MetricFailures:
		return r.difference()
	case r.DecidingMetric == MetricLatency:
		bound := time.Duration(r.DecidingBound * float64(time.Second)).Round(time.Microsecond)
		return fmt.Sprintf("canary is slower than stable: lately %s of its requests took longer than %v, and %s of stable's",
			share(r.DecidingCanary), bound, share(r.DecidingStable))
	case r.DecidingBound != 0:
		return fmt.Sprintf("canary is worse than stable in %s: lately %s of its events were beyond %v, and %s of stable's",
			r.DecidingMetric, share(r.DecidingCanary), r.DecidingBound, share(r.DecidingStable))
	}
	return fmt.Sprintf("canary is worse than stable in %s: lately %s of its events were bad, and %s of stable's",
		r.DecidingMetric, share(r.DecidingCanary), share(r.DecidingStable))
}

// detected says how small a difference could be that was not found.
func (r Result) detected() string {
	if r.MinDetectableEffect >= 1 {
		return ""
	}
	return "; a difference of " + points(r.MinDetectableEffect) + " pp would show by now"
}

func (r Result) promoted() string {
	if !r.MayPromote {
		return ""
	}
	return "; that suffices to promote early"
}

func (r Result) evidence() string {
	return fmt.Sprintf("evidence %s of %s needed to roll back", figure(r.Evidence), figure(r.Threshold))
}

// difference compares the failure rates in the present step, in percentage points.
func (r Result) difference() string {
	if r.CanaryRequests == 0 || r.StableRequests == 0 {
		return "canary fails more often than stable did at the same time"
	}
	d := float64(r.CanaryFailures)/float64(r.CanaryRequests) - float64(r.StableFailures)/float64(r.StableRequests)
	switch pp := points(math.Abs(d)); {
	case pp == "0.0":
		return "canary fails as often as stable"
	case d > 0:
		return "canary fails " + pp + " pp more often than stable"
	default:
		return "canary fails " + pp + " pp less often than stable"
	}
}

func (r Result) waiting() string {
	if r.CanaryRequests < r.MinRequests {
		return fmt.Sprintf("waiting for requests: the canary has answered %d of %d in this step", r.CanaryRequests, r.MinRequests)
	}
	return fmt.Sprintf("waiting for requests: stable has answered %d of %d in this step", r.StableRequests, r.MinRequests)
}

func (r Result) limit() string {
	switch r.Reason {
	case ReasonLimitMissed, ReasonLimitAtRisk:
		return fmt.Sprintf("canary missed the limit %v %d of %d times in a row", r.Limit, r.LimitMissed, r.Limit.ConsecutiveFailureLimit)
	case ReasonLimitMissing:
		return fmt.Sprintf("the limit %v has no number: the measurement gave none, or the newest is too old", r.Limit)
	case ReasonLimitUndecided:
		return fmt.Sprintf("the limit %v lies between two bounds of the latency histogram, which cannot tell; set it to a bound", r.Limit)
	default:
		return fmt.Sprintf("the limit %v has %d of %d samples for its next measurement", r.Limit, r.LimitSamples, r.Limit.MinSamples)
	}
}

// figure writes evidence with as many digits as mean something to users.
func figure(x float64) string {
	switch {
	case x >= 1e6:
		return "over a million"
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
}

// points are percentage points.
func points(fraction float64) string { return strconv.FormatFloat(100*fraction, 'f', 1, 64) }

// share is a fraction that was measured, in percent.
func share(fraction float64) string { return points(fraction) + " %" }

// percent is a fraction that was set, in percent.
func percent(fraction float64) string {
	return strconv.FormatFloat(100*fraction, 'g', 6, 64) + " %"
}
