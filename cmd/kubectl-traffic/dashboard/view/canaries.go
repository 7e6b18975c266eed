// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// CanaryRow is a CanaryRelease in the list.
type CanaryRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Group     Group  `json:"group"`
	// State is the reason of the condition Ready, and Message its sentence.
	State   string `json:"state"`
	Message string `json:"message"`
	// Release is the Helm release, Version its revision that the canary is compared with, and
	// Adopted the one that the adoption made; 0 before it.
	Release string `json:"release"`
	Version int32  `json:"version"`
	Adopted int32  `json:"adopted,omitempty"`
	// Share is the canary's live share, such as "10%", or "0-100%" where ports differ.
	Share string `json:"share"`
	// Rollout decides about the CanaryRelease; "" where users do.
	Rollout string `json:"rollout,omitempty"`
	Next    Next   `json:"next"`
}

// MakeCanaryRow is the row of a CanaryRelease.
func MakeCanaryRow(cr *v1alpha1.CanaryRelease) CanaryRow {
	_, state, sentence := rolloutview.CanaryState(cr)
	row := CanaryRow{
		Namespace: cr.Namespace, Name: cr.Name, Group: canaryGroup(cr), State: state, Message: sentence,
		Release: cr.Spec.Release, Version: cr.Spec.Version, Share: rolloutview.CanaryShare(cr),
	}
	if r := cr.Status.Release; r != nil {
		row.Adopted = r.AdoptedRevision
	}
	if d := cr.Spec.Delegation; d != nil {
		row.Rollout = d.Rollout
	}
	row.Next.What = canaryNext(cr, row)
	return row
}

func canaryGroup(cr *v1alpha1.CanaryRelease) Group {
	ready := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
	d := cr.Status.Decision
	switch {
	case ready == nil:
		return Unknown
	case meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionStalled), ready.Reason == v1alpha1.ReasonUpgradeFailed:
		return Failed
	case d != nil && d.EndedAt != nil:
		return Stable
	case ready.Reason == v1alpha1.ReasonServing && cr.Spec.Delegation == nil:
		return NeedsUser
	}
	return InProgress
}

func canaryNext(cr *v1alpha1.CanaryRelease, row CanaryRow) string {
	d := cr.Status.Decision
	switch {
	case row.Group == Unknown:
		return "Serin processes it"
	case row.Group == Failed:
		return "A user changes the release or the CanaryRelease"
	case row.Group == Stable:
		return "Nothing"
	case d != nil && d.Transition == v1alpha1.CanaryTransitionAdopted:
		return "The Helm release gets the canary's values"
	case d != nil, !cr.DeletionTimestamp.IsZero():
		return "The canary is removed"
	case row.Group == NeedsUser:
		return "A user adopts or deprecates it"
	case row.State == v1alpha1.ReasonServing:
		return fmt.Sprintf("The Rollout %s decides", row.Rollout)
	}
	return "The canary gets its traffic"
}

// CanarySources are what a CanaryRelease was read from.
type CanarySources struct {
	Canary *v1alpha1.CanaryRelease
	// Events of the CanaryRelease, oldest first.
	Events []corev1.Event
	Rights Rights
	// Missing says what could not be read, and why.
	Missing []string
}

// Canary is a CanaryRelease on a page of its own.
type Canary struct {
	CanaryRow
	// Path is the sub-chart that the values are for; "" for the chart itself.
	Path string `json:"path,omitempty"`
	// Values are those that are tried, as YAML, and Secret is where they are read from instead.
	Values string `json:"values,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Later are objects that only an adoption changes.
	Later      []string                   `json:"later,omitempty"`
	Services   []CanaryService            `json:"services"`
	Workloads  []v1alpha1.CanaryWorkload  `json:"workloads"`
	Decision   *v1alpha1.CanaryDecision   `json:"decision,omitempty"`
	Delegation *v1alpha1.CanaryDelegation `json:"delegation,omitempty"`
	Conditions []metav1.Condition         `json:"conditions"`
	Events     []Event                    `json:"events"`
	Actions    []Action                   `json:"actions"`
	Missing    []string                   `json:"missing,omitempty"`
}

// CanaryService is how the traffic of one Service is shared.
type CanaryService struct {
	Service    string                      `json:"service"`
	Programmed bool                        `json:"programmed"`
	Proxies    int32                       `json:"proxies,omitempty"`
	Ports      []v1alpha1.CanaryPortStatus `json:"ports"`
	// Traffic is what both versions answered lately; nil where that is not known.
	Traffic *CanaryTraffic `json:"traffic,omitempty"`
}

// CanaryTraffic is what both versions answered in one stretch of time.
type CanaryTraffic struct {
	EndedAt time.Time             `json:"endedAt"`
	Seconds int32                 `json:"seconds"`
	Stable  v1alpha1.CanaryCounts `json:"stable"`
	Canary  v1alpha1.CanaryCounts `json:"canary"`
}

// MakeCanary puts the page of a CanaryRelease together.
func MakeCanary(s CanarySources) Canary {
	cr := s.Canary
	c := Canary{
		CanaryRow: MakeCanaryRow(cr), Path: cr.Spec.Path, Values: cr.Spec.Config, Later: cr.Status.Later, Services: servicesOf(cr),
		Workloads: append([]v1alpha1.CanaryWorkload{}, cr.Status.Workloads...), Decision: cr.Status.Decision, Delegation: cr.Spec.Delegation,
		Conditions: append([]metav1.Condition{}, cr.Status.Conditions...), Events: eventsOf(s.Events), Actions: canaryActions(cr, s.Rights), Missing: s.Missing,
	}
	if from := cr.Spec.ConfigFrom; from != nil {
		c.Secret = fmt.Sprintf("the key %s of the Secret %s", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	}
	return c
}

func servicesOf(cr *v1alpha1.CanaryRelease) []CanaryService {
	list := []CanaryService{}
	for _, s := range cr.Status.Services {
		service := CanaryService{Service: s.Service, Programmed: s.Programmed, Proxies: s.Proxies, Ports: append([]v1alpha1.CanaryPortStatus{}, s.Ports...)}
		if t := s.Traffic; t != nil {
			service.Traffic = &CanaryTraffic{EndedAt: t.EndedAt.Time, Seconds: t.Seconds, Stable: t.Stable, Canary: t.Canary}
		}
		list = append(list, service)
	}
	return list
}

// CanaryRevision names what a question about a CanaryRelease is about. It is another one after
// each change of the spec.
func CanaryRevision(cr *v1alpha1.CanaryRelease) string { return strconv.FormatInt(cr.Generation, 10) }

// canaryActions are the buttons of a CanaryRelease for a viewer.
func canaryActions(cr *v1alpha1.CanaryRelease, r Rights) []Action {
	var list []Action
	for _, end := range []struct {
		transition      v1alpha1.CanaryTransition
		label, question string
	}{
		{v1alpha1.CanaryTransitionAdopted, "Adopt", "Adopt the canary of revision %d of the Helm release %s? All traffic goes to the canary, the release is upgraded with its values, and the canary's pods become those of the release."},
		{v1alpha1.CanaryTransitionDeprecated, "Deprecate", "Deprecate the canary of revision %d of the Helm release %s? All traffic goes to the release, and the canary is removed. That is final."},
	} {
		ask, err := rolloutview.Transit(cr, end.transition)
		if err == nil && !ask {
			err = fmt.Errorf("it is requested already: spec.transition of the CanaryRelease %s is %s", cr.Name, end.transition)
		}
		a := Action{Name: string(end.transition), Label: end.label, Revision: CanaryRevision(cr)}
		a.close(r.whyNotEnd(cr), err, fmt.Sprintf(end.question, cr.Spec.Version, cr.Spec.Release))
		list = append(list, a)
	}
	return list
}

// whyNotEnd says which right a user lacks to end a CanaryRelease, or "".
func (r Rights) whyNotEnd(cr *v1alpha1.CanaryRelease) string {
	return r.lacks("promote", r.Promote && r.Patch, "CanaryRelease "+cr.Name, cr.Namespace, "canaryreleases.serin.dev")
}
