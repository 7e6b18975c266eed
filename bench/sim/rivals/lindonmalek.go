// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/policy"
)

// LindonMalek is the sequential test of equal Bernoulli processes that may vary
// in time, from M. Lindon and A. Malek, Anytime-Valid Inference for Multinomial
// Count Data, NeurIPS 2022.
//
// While both versions fail equally often, a failure is the canary's with the
// probability ρ with which requests are sent to it, whatever the failure rate is
// at the moment. The test is the Bayes factor of a Dirichlet(kρ, k(1−ρ)) prior on
// that probability against ρ itself. It may look after every window. It rejects
// at 1/α; only an excess of the canary rolls back.
//
// The published test has one ρ. When the weight changes, a new one begins and
// the factors are multiplied, which keeps the guarantee.
type LindonMalek struct {
	// K is the concentration of the prior: 100, the default of the package savvi.
	K float64
	// Alpha is the error rate: 0.01.
	Alpha float64

	schedule
	weight         int32
	log            float64 // of the factors of earlier weights
	canary, stable float64 // failures at the present weight
}

// NewLindonMalek is the test at 1 %.
func NewLindonMalek(plan time.Duration) *LindonMalek {
	return &LindonMalek{K: 100, Alpha: .01, schedule: schedule{plan: plan}}
}

// Next judges one more window.
func (l *LindonMalek) Next(w analysis.Window) policy.Action {
	planned := l.next(w)
	if w.Weight != l.weight {
		l.log, l.canary, l.stable = l.log+l.logBayesFactor(), 0, 0
		l.weight = w.Weight
	}
	l.canary += float64(w.Canary.Failures)
	l.stable += float64(w.Stable.Failures)
	rho := float64(l.weight) / 100
	if l.log+l.logBayesFactor() >= -math.Log(l.Alpha) && l.canary > rho*(l.canary+l.stable) {
		return policy.RollBack
	}
	return planned
}

// logBayesFactor is that of the failures at the present weight.
func (l *LindonMalek) logBayesFactor() float64 {
	rho := float64(l.weight) / 100
	if rho <= 0 || rho >= 1 {
		return 0
	}
	a, b := l.K*rho, l.K*(1-rho)
	return logBeta(a+l.canary, b+l.stable) - logBeta(a, b) - l.canary*math.Log(rho) - l.stable*math.Log1p(-rho)
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}
