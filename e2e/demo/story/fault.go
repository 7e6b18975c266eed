// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
)

// Target is a part of Serin that can be killed.
type Target string

// What can be killed.
const (
	// TargetManager is the process of the manager that leads.
	TargetManager Target = "manager"
	// TargetProxy is the process of one proxy.
	TargetProxy Target = "proxy"
)

// Fault kills a target at the first snapshot of a moment, once.
type Fault struct {
	Target  Target
	Version string
	Moment  string
}

// recovery is how much longer a scene may take for each fault in it: the lease of
// a leader that died has to run out, and a container that died again and again
// is restarted later and later.
const recovery = time.Minute

// moments are the moments of a release, by name.
var moments = map[string]func(Snapshot) bool{
	"takeover": func(s Snapshot) bool { return s.Split != nil && !programmed(s.Split) },
	"pods":     podsStart,
	"step-1":   func(s Snapshot) bool { return holding(s, 0) },
	"step-2":   func(s Snapshot) bool { return holding(s, 1) },
	"promote":  func(s Snapshot) bool { return s.Ready().Reason == serinv1alpha1.ReasonPromoting },
	"rollback": func(s Snapshot) bool { return s.Ready().Reason == serinv1alpha1.ReasonRollingBack },
	"giveback": func(s Snapshot) bool { return s.Split != nil && s.Split.DeletionTimestamp != nil },
}

// Moments lists the names of the moments.
func Moments() []string {
	var names []string
	for name := range moments {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseFault reads TARGET@VERSION:MOMENT, such as manager@v2:promote.
func ParseFault(text string) (Fault, error) {
	target, at, found := strings.Cut(text, "@")
	version, moment, found2 := strings.Cut(at, ":")
	f := Fault{Target: Target(target), Version: version, Moment: moment}
	switch {
	case !found || !found2:
		return Fault{}, fmt.Errorf("%q is not of the form TARGET@VERSION:MOMENT, such as manager@v2:promote", text)
	case f.Target != TargetManager && f.Target != TargetProxy:
		return Fault{}, fmt.Errorf("%q can't be killed: name %s or %s", target, TargetManager, TargetProxy)
	case version != Good && version != Bad:
		return Fault{}, fmt.Errorf("%q is not released by the story: name %s or %s", version, Good, Bad)
	case moments[moment] == nil:
		return Fault{}, fmt.Errorf("%q is not a moment: name one of %s", moment, strings.Join(Moments(), ", "))
	}
	return f, nil
}

// String is the form that ParseFault reads.
func (f Fault) String() string { return fmt.Sprintf("%s@%s:%s", f.Target, f.Version, f.Moment) }

// due tells whether the moment is there.
func (f Fault) due(a *Account) bool {
	r := a.current()
	return r != nil && r.Version == f.Version && moments[f.Moment](a.Last)
}

func programmed(split *splitv1alpha4.TrafficSplit) bool {
	return meta.IsStatusConditionTrue(split.Status.Conditions, splitv1alpha4.ConditionProgrammed)
}

// holding tells whether the weight of a step, counted from 0, is in effect.
// podsStart tells whether a step waits for pods of the canary.
func podsStart(s Snapshot) bool {
	if s.Rollout == nil || s.Rollout.Status.Canary == nil {
		return false
	}
	st := &s.Rollout.Status
	return st.Step != nil && st.Step.ProgrammedAt == nil && slices.ContainsFunc(s.Pods, func(p Pod) bool {
		return p.Revision == st.Canary.Revision && !p.Ready && !p.Going
	})
}

func holding(s Snapshot, step int32) bool {
	if s.Rollout == nil || s.Rollout.Status.Step == nil || s.Rollout.Status.Step.Index != step {
		return false
	}
	now := s.Rollout.Status.Step
	live, known := s.liveWeight()
	return now.ProgrammedAt != nil || known && live == now.Weight && programmed(s.Split)
}
