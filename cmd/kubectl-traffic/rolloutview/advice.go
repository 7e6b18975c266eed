// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Limits beyond which a Rollout is allowed and yet seldom wanted.
const (
	bigFirstStep = 50
	bigLeap      = 60
)

// Advice names what the API server takes and yet is seldom wanted. Each sentence names
// the field.
func Advice(ro *v1alpha1.Rollout) []string {
	var list []string
	steps := ro.Spec.Strategy.Steps
	for i := range steps {
		list = append(list, adviceOnStep(steps, i)...)
	}
	if ro.Spec.Paused {
		list = append(list, "spec.paused: no release goes on while it is true")
	}
	if ro.Spec.Control != nil && ro.Spec.Control.By != "" {
		list = append(list, "spec.control.by: is written by the cluster; leave it out")
	}
	return list
}

func adviceOnStep(steps []v1alpha1.Step, i int) (list []string) {
	s := steps[i]
	add := func(is bool, field, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf("spec.strategy.steps[%d]%s: %s", i, field, fmt.Sprintf(format, args...)))
		}
	}
	waits := s.Hold != "" || s.Until != ""
	last := i == len(steps)-1
	add(i == 0 && s.Weight >= bigFirstStep && len(s.Matches) == 0, ".weight", "%d %% of the users meet the new version at once; begin with less", s.Weight)
	if i > 0 {
		before := steps[i-1].Weight
		add(s.Weight-before >= bigLeap, ".weight", "goes from %d %% to %d %% in one step; put one between", before, s.Weight)
	}
	add(s.Weight == 0 && !waits && s.Mirror == nil, "", "the new version gets no traffic and nothing is waited for; set hold, until or mirror")
	add(last && s.Weight == 100 && !waits, ".weight", "100 %% leaves no stable version to compare with; a version is promoted after the last step anyway")
	return list
}
