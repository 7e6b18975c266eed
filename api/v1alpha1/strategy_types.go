// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Strategy is how traffic moves to a new version.
//
// +kubebuilder:validation:XValidation:rule="(has(self.steps) ? 1 : 0) + (has(self.ramp) ? 1 : 0) + (has(self.blueGreen) ? 1 : 0) <= 1",message="spec.strategy: steps, ramp and blueGreen exclude each other; keep one of them"
// +kubebuilder:validation:XValidation:rule="self.type == 'BlueGreen' ? !has(self.steps) && !has(self.ramp) : !has(self.blueGreen) && (has(self.steps) || has(self.ramp))",message="spec.strategy: the types Canary and ABTest need steps (or ramp, for Canary), and the type BlueGreen takes blueGreen instead; correct spec.strategy.type or the fields"
// +kubebuilder:validation:XValidation:rule="self.type != 'ABTest' || has(self.steps) && self.steps.all(s, has(s.matches))",message="spec.strategy.steps: every step of the type ABTest needs matches; add them, or use the type Canary"
type Strategy struct {
	// type is Canary (weights by steps or ramp), BlueGreen (the new version at full
	// size next to the old one, then all traffic at once) or ABTest (requests that
	// match go to the new version, all others stay). Default Canary.
	// +optional
	// +kubebuilder:default=Canary
	Type StrategyType `json:"type,omitempty"`

	// steps are taken in order. After the last one the new version is promoted:
	// it gets all traffic and becomes stable. Steps with matches come first, and
	// weights must not go down from one step without matches to the next. At least
	// 1 and at most 50 steps. They may be edited while a release is in progress: it
	// goes on at the same weight or the nearest lower one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(s, !has(s.matches)).map(s, s.weight).isSorted()",message="spec.strategy.steps: weights must not go down from one step to the next; sort the steps by weight"
	// +kubebuilder:validation:XValidation:rule="self.map(s, has(s.matches) ? 0 : 1).isSorted()",message="spec.strategy.steps: steps with matches must come before those without, since they show the new version to fewer users; move them to the front"
	Steps []Step `json:"steps,omitempty"`

	// ramp raises the weight in equal intervals, by a number of points or by a factor, instead
	// of steps.
	// +optional
	Ramp *Ramp `json:"ramp,omitempty"`

	// blueGreen sets how the type BlueGreen tests and switches.
	// +optional
	BlueGreen *BlueGreen `json:"blueGreen,omitempty"`

	// onFailure says what happens after a failed analysis. RollBack, the default,
	// returns all traffic to the stable version. Pause keeps the weights and waits
	// for a user, who decides with spec.control. Whatever is set here, a canary is
	// rolled back when its pods do not get ready in time, and when it loses its last
	// available pod while the stable version has some.
	// +optional
	// +kubebuilder:default=RollBack
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// rollBackOver is the time over which a rollback lowers the canary's weight, in ten equal
	// parts, so that the stable version can warm its caches. A canary without any available
	// pod, and one that only gets requests that match, loses its traffic at once. When unset or
	// zero, so does every canary.
	// +optional
	RollBackOver Duration `json:"rollBackOver,omitempty"`
}

// StrategyType is how traffic moves to a new version.
//
// +kubebuilder:validation:Enum=Canary;BlueGreen;ABTest
type StrategyType string

// Strategies.
const (
	// StrategyCanary moves traffic by weights.
	StrategyCanary StrategyType = "Canary"
	// StrategyBlueGreen moves all traffic at once, after a test without traffic.
	StrategyBlueGreen StrategyType = "BlueGreen"
	// StrategyABTest moves the requests that match.
	StrategyABTest StrategyType = "ABTest"
)

// FailurePolicy says what a failed analysis does.
//
// +kubebuilder:validation:Enum=RollBack;Pause
type FailurePolicy string

// What a failed analysis does.
const (
	// OnFailureRollBack takes the canary out.
	OnFailureRollBack FailurePolicy = "RollBack"
	// OnFailurePause waits for a user.
	OnFailurePause FailurePolicy = "Pause"
)

// Step is one weight of a release, with how long it lasts.
type Step struct {
	// weight is the percentage of requests that the canary gets, 0 to 100; with
	// matches, of those that match. The canary is scaled to the same share of the
	// workload's replicas, rounded up, before it gets the traffic. With 0 the canary
	// runs without traffic.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// hold is how long the step lasts, counted from the time at which the router
	// reports the weight as programmed. The next step also needs a Pass from the
	// analysis. When unset or zero, the step ends at the first Pass.
	// +optional
	Hold Duration `json:"hold,omitempty"`

	// until is what has to happen, besides hold and analysis, before the step ends: Manual
	// waits until a user promotes (spec.control) or a hook of the kind Gate approves. When
	// unset, nothing else has to happen.
	// +optional
	Until StepEnd `json:"until,omitempty"`

	// at is a cron expression in the time zone of spec.schedule. The step begins at the first
	// time after the end of the previous step that matches it. When unset, the step begins at
	// once.
	// +optional
	At CronExpression `json:"at,omitempty"`

	// canaryReplicas is how many pods the canary gets in this step: a number from 1, or 1% to
	// 100% of the workload's replicas, rounded up. It never gets more than the workload has.
	// When unset, the canary gets the share of its weight.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	CanaryReplicas *intstr.IntOrString `json:"canaryReplicas,omitempty"`

	// matches name HTTPRouteGroups in the same namespace, 1 to 8. Only requests that match one
	// of them are split by weight; all others go to stable. When unset, all requests are split.
	// A router that can't match is refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Matches []string `json:"matches,omitempty"`

	// mirror is the percentage of stable's requests that are also sent to the canary, 1 to 100;
	// its answers to them are discarded. Mirror only requests that may be carried out twice. A
	// router that can't mirror is refused. When unset, no request is mirrored.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Mirror *int32 `json:"mirror,omitempty"`

	// analysis changes settings of spec.analysis for this step.
	// +optional
	Analysis *StepAnalysis `json:"analysis,omitempty"`
}

// StepEnd is what has to happen before a step ends.
//
// +kubebuilder:validation:Enum=Manual
type StepEnd string

// UntilManual waits until a user or a hook lets the release go on.
const UntilManual StepEnd = "Manual"

// Ramp raises the weight in equal intervals, by a number of points or by a factor. It makes at
// most 100 steps.
//
// +kubebuilder:validation:XValidation:rule="has(self.by) != has(self.times)",message="spec.strategy.ramp: needs exactly one of by (points) and times (a factor); remove or add one"
// +kubebuilder:validation:XValidation:rule="self.from <= self.to",message="spec.strategy.ramp: from must not be greater than to; swap them"
type Ramp struct {
	// from is the first weight in percent, 1 to 100. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	From int32 `json:"from,omitempty"`

	// to is the last weight in percent before the new version is promoted, 1 to 100. Default
	// 50.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	To int32 `json:"to,omitempty"`

	// every is how long each weight is held.
	// +required
	Every Duration `json:"every"`

	// by is how many percentage points each weight is above the one before, 1 to 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	By *int32 `json:"by,omitempty"`

	// times is the factor between each weight and the one before, from 1 to 99.99, such as "2"
	// or "1.5". Each weight is at least one point above the one before.
	// +optional
	// +kubebuilder:validation:Pattern=`^([1-9]|[1-9][0-9])(\.[0-9]{1,2})?$`
	// +kubebuilder:validation:MaxLength=5
	Times string `json:"times,omitempty"`
}

// BlueGreen tests the new version at full size without traffic, and then gives it
// all traffic in one confirmed write. The Service "<service>-canary" reaches the
// new version before the switch; previewService names one that stays between releases.
type BlueGreen struct {
	// previewService names a Service of yours in the same namespace, for testers or an
	// Ingress: its selector must select the workload's pods. While a release is in
	// progress, Serin adds one key to that selector, so that the Service leads to the stable
	// version until the new one has an available pod, and then to the new one until the release
	// has ended. Between releases and after a rollback the selector is what you declare.
	// Serin never makes or deletes this Service. It needs a workloadRef of the kind
	// Deployment. When unset, only the Service "<service>-canary" reaches the new version.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	PreviewService string `json:"previewService,omitempty"`

	// hold is how long the new version runs at full size before the switch. When
	// unset, the switch comes as soon as its pods are available.
	// +optional
	Hold Duration `json:"hold,omitempty"`

	// until Manual waits before the switch until a user promotes or a hook of the
	// kind Gate approves. When unset, the step waits for hold only.
	// +optional
	Until StepEnd `json:"until,omitempty"`

	// at is a cron expression in the time zone of spec.schedule: the switch waits for the next
	// time that it matches. When unset, the switch comes when hold and until allow.
	// +optional
	At CronExpression `json:"at,omitempty"`

	// scaleDownDelay is how long the old version stays at full size after the switch, so that a
	// rollback is one write. The analysis watches the new version during that time. Default
	// 30s.
	// +optional
	// +kubebuilder:default="30s"
	ScaleDownDelay Duration `json:"scaleDownDelay,omitempty"`
}

// Weights are those that the ramp holds, in percent: each is above the one before by the
// points or by the factor, and by at least one point, so there are at most a hundred. The
// error names the field and the fix: it can only come from an object that the schema did
// not check.
func (r *Ramp) Weights() ([]int32, error) {
	factor := 1.0
	if r.Times != "" {
		f, err := strconv.ParseFloat(r.Times, 64)
		if err != nil || !(f >= 1 && f < 100) {
			return nil, fmt.Errorf("spec.strategy.ramp.times: %q is not a factor from 1 to 99.99; write a number such as 2 or 1.5", r.Times)
		}
		factor = f
	}
	by := int32(1)
	if r.By != nil {
		by = min(max(*r.By, 1), 100)
	}
	var weights []int32
	last := min(r.To, 100)
	for w := max(r.From, 1); len(weights) < 100; w = max(w+by, int32(math.Floor(float64(w)*factor))) {
		w = min(w, last)
		weights = append(weights, w)
		if w == last {
			break
		}
	}
	return weights, nil
}
