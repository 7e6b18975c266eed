// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

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
	ReasonInvalidData:     "the last window holds counts that cannot be true; it was not used",
	ReasonOutOfOrder:      "the last window overlaps one already judged; it was not used",
	ReasonMissingData:     "no traffic has been measured in this step yet",
	ReasonStaleData:       "the newest measurement is too old to go on",
	ReasonStartingUp:      "the canary is still in its start-up phase",
	ReasonNoTraffic:       "the canary has answered no request in this step",
	ReasonNotCalled:       "no traffic goes to the canary, and its metrics are within their limits",
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
