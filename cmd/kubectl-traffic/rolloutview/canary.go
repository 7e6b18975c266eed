// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// CanaryState are the status and the reason of a CanaryRelease's condition Ready, and what
// it says.
func CanaryState(cr *v1alpha1.CanaryRelease) (ready, state, sentence string) {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return string(metav1.ConditionUnknown), unknown, "Serin has not looked at it yet."
	}
	return string(c.Status), c.Reason, c.Message
}

// CanaryShare is the canary's live share of the traffic, such as "10%", or
// "0-100%" where ports differ.
func CanaryShare(cr *v1alpha1.CanaryRelease) string {
	least, most := int32(101), int32(-1)
	for _, s := range cr.Status.Services {
		if !s.Programmed {
			return unknown // what was asked for last need not be true yet
		}
		for _, p := range s.Ports {
			least, most = min(least, p.Weight), max(most, p.Weight)
		}
	}
	switch {
	case most < 0:
		return unknown
	case least == most:
		return fmt.Sprintf("%d%%", most)
	}
	return fmt.Sprintf("%d-%d%%", least, most)
}

// CanaryPorts are the shares of all ports, such as "web:80/TCP=10%". Of a Service whose
// weights are not programmed yet the ports are left out.
func CanaryPorts(cr *v1alpha1.CanaryRelease) string {
	var ports []string
	for _, s := range cr.Status.Services {
		for _, p := range s.Ports {
			if s.Programmed {
				ports = append(ports, fmt.Sprintf("%s:%s=%d%%", s.Service, p.Port, p.Weight))
			}
		}
	}
	return strings.Join(ports, ",")
}

// CanaryFailures are the requests that failed of those that were answered lately, of each
// Service by version, such as "web:canary=0/12,web:stable=3/1188". Of a Service that
// is not measured nothing is said.
func CanaryFailures(cr *v1alpha1.CanaryRelease) string {
	var parts []string
	for _, s := range cr.Status.Services {
		if t := s.Traffic; t != nil {
			parts = append(parts, fmt.Sprintf("%s:canary=%d/%d", s.Service, t.Canary.Failures, t.Canary.Requests),
				fmt.Sprintf("%s:stable=%d/%d", s.Service, t.Stable.Failures, t.Stable.Requests))
		}
	}
	return strings.Join(parts, ",")
}

// Transit decides whether a transition has to be asked for, and refuses one that can't
// come any more.
func Transit(cr *v1alpha1.CanaryRelease, wanted v1alpha1.CanaryTransition) (ask bool, err error) {
	decided := v1alpha1.CanaryTransitionNone
	if d := cr.Status.Decision; d != nil {
		decided = d.Transition
	}
	switch {
	case !cr.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("the CanaryRelease %s is being deleted, which removes the canary; create another one to try again", cr.Name)
	case wanted == v1alpha1.CanaryTransitionAdopted && decided == v1alpha1.CanaryTransitionDeprecated:
		return false, fmt.Errorf("the CanaryRelease %s is deprecated (%s); create another one to try again", cr.Name, cr.Status.Decision.Message)
	case wanted == v1alpha1.CanaryTransitionAdopted && cr.Spec.Transition == v1alpha1.CanaryTransitionDeprecated:
		return false, fmt.Errorf("the CanaryRelease %s is deprecated, and that is final; create another one to try again", cr.Name)
	case wanted == v1alpha1.CanaryTransitionDeprecated && decided == v1alpha1.CanaryTransitionAdopted && cr.Status.Decision.EndedAt != nil:
		return false, fmt.Errorf("the CanaryRelease %s was adopted, and its canary is now the Helm release; go back with helm rollback %s %d --namespace %s",
			cr.Name, cr.Spec.Release, cr.Spec.Version, cr.Namespace)
	}
	return cr.Spec.Transition != wanted, nil
}

// Transited is whether a transition has come to its end, or why it won't without
// a user's help. What was observed before the spec was changed last tells nothing.
func Transited(cr *v1alpha1.CanaryRelease, wanted v1alpha1.CanaryTransition) (ended bool, why error) {
	if cr.Status.ObservedGeneration < cr.Generation {
		return false, nil
	}
	_, state, sentence := CanaryState(cr)
	d := cr.Status.Decision
	switch {
	case d != nil && d.Transition != wanted && (wanted == v1alpha1.CanaryTransitionAdopted || d.EndedAt != nil):
		return false, fmt.Errorf("the CanaryRelease %s is not %s, but %s: %s", cr.Name, wanted, d.Transition, d.Message)
	case d != nil && d.Transition == wanted && d.EndedAt != nil:
		return true, nil
	case meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionStalled), state == v1alpha1.ReasonUpgradeFailed:
		return false, fmt.Errorf("the CanaryRelease %s does not become %s by itself: %s", cr.Name, wanted, sentence)
	}
	return false, nil
}
