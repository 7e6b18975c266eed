// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"fmt"
	"math"
	"strconv"
)

// MaxFalseAlarm bounds the probability that a release ever has a mismatch although every
// share is within its tolerance.
const MaxFalseAlarm = 0.01

// Count is what both versions answered while one weight was live.
type Count struct {
	// Canary and Stable are numbers of requests.
	Canary, Stable int64
}

func (c Count) total() int64 { return c.Canary + c.Stable }

// Result says how far counts are from their weight.
type Result struct {
	Count
	// Weight that the canary has, in percent.
	Weight int32
	// Share that the canary got, from 0 to 1; 0 without requests.
	Share float64
	// Low and High are the least and the greatest share that count as the weight.
	Low, High float64
	// Evidence against a share between Low and High: an e-value, whose mean is at most 1 for
	// every such share. Threshold is the evidence from which on it is a mismatch.
	Evidence, Threshold float64
}

// Mismatch reports whether the counts contradict the weight.
func (r Result) Mismatch() bool { return r.Evidence >= r.Threshold }

// within reports whether the share that was counted counts as the weight.
func (r Result) within() bool { return r.Low <= r.Share && r.Share <= r.High }

// assess tests counts at a weight for the canary in percent; earlier is how many such tests
// the release had before. A weight of 0 or 100 promises a version nothing at all, which is no
// share, and is not tested.
//
// The evidence is the likelihood of the counts under a mixture of all shares, over the
// greatest likelihood under a share that counts as the weight: the mixture over any single
// share is a martingale, so that by Ville's inequality it ever reaches 1/α with probability
// α at most, however often it is looked at (Robbins 1970; Wasserman, Ramdas and Balakrishnan
// 2020, "Universal inference", section 7). The mixture is Beta(1, 1). Test k of a release may
// use α/((k+1)(k+2)), which sums to α over all tests.
func assess(c Count, weight int32, earlier int64) Result {
	k := float64(earlier)
	r := Result{Count: c, Weight: weight, Threshold: (k + 1) * (k + 2) / MaxFalseAlarm}
	if !shared(weight) {
		return r
	}
	want := float64(weight) / 100
	r.Low, r.High = want-tolerance(want), want+tolerance(want)
	if c.total() == 0 {
		return r
	}
	r.Share = float64(c.Canary) / float64(c.total())
	nearest := min(max(r.Share, r.Low), r.High)
	r.Evidence = math.Exp(logMixture(c) - logLikelihood(c, nearest))
	return r
}

// shared reports whether a weight promises both versions requests.
func shared(weight int32) bool { return weight > 0 && weight < 100 }

// tolerance is how far a share may be from its weight without harm: a fifth of the smaller
// version's share, and at least one percentage point, which retries and the rounding of
// routers explain.
func tolerance(want float64) float64 { return max(0.01, min(want, 1-want)/5) }

// logMixture is the logarithm of ∫ pᶜ(1-p)ˢ dp = B(c+1, s+1).
func logMixture(c Count) float64 {
	a, b := float64(c.Canary)+1, float64(c.Stable)+1
	return lgamma(a) + lgamma(b) - lgamma(a+b)
}

func lgamma(x float64) float64 {
	l, _ := math.Lgamma(x)
	return l
}

// logLikelihood is the logarithm of pᶜ(1-p)ˢ. A share of 0 that got nothing has likelihood 1.
func logLikelihood(c Count, p float64) float64 {
	return term(c.Canary, p) + term(c.Stable, 1-p)
}

func term(n int64, p float64) float64 {
	if n == 0 {
		return 0
	}
	return float64(n) * math.Log(p)
}

// Explain says in one sentence, for users, how the requests were shared and what to look for.
func (r Result) Explain() string {
	return fmt.Sprintf("canary answered %s of %d requests, and its weight is %d %%: look for %s", percent(r.Share), r.total(), r.Weight, r.causes())
}

// causes are the likely ones, by which version gets too much.
func (r Result) causes() string {
	switch {
	case r.Canary == 0:
		return "routes that are not bound to what clients call, and for clients that bypass the router"
	case r.Share < r.Low:
		return "clients that bypass the router, sessions that stay with stable, a mesh that avoids slow pods, and clients that leave before the canary answers"
	}
	return "sessions that stay with the canary, retries, clients that call the canary's Service, and a mesh that avoids slow pods"
}

// percent is a share with as many digits as tell it from its weight.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }
