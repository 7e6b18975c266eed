// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// FullWeight is all of the traffic.
const FullWeight = 100

// HoldoutWeight is what a canary gets whose evidence suffices ahead of time: nearly all of
// the traffic, and stable the rest until the last step would have ended: a defect that begins late is
// found only by comparison.
//
//	last step                 holdout                         then
//	50 %  … evidence suffices 95 % until the step's end       100 %
const HoldoutWeight = FullWeight - policy.Holdout

// CanBeEarly reports whether a step is one whose end evidence can bring forward.
func (s Step) CanBeEarly() bool {
	return s.Weight > 0 && s.Weight < HoldoutWeight && len(s.Matches) == 0 && !s.Manual
}

// Step is one step of a release as values, whatever the spec wrote it as.
type Step struct {
	Route
	Hold   time.Duration
	Manual bool
	At     v1alpha1.CronExpression
	// Pods is how many pods the canary gets: a number, a percentage of the
	// workload's, or nil for the share of the weight.
	Pods           *intstr.IntOrString
	Judge          judge.Config
	OnInconclusive v1alpha1.InconclusivePolicy
}
