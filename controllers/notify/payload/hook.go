// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Question is what a hook is called with.
type Question struct {
	// ID stays the same when the question is repeated.
	ID string
	// Hook is its name in spec.hooks.
	Hook string
	// When is the time that it is called at.
	When v1alpha1.HookTime
	// Revision of the canary.
	Revision string
	// Step that the question is about. Nil before the release, before the promotion
	// and after the release.
	Step *Step
	// Outcome is Promoted, RolledBack or Superseded: after the release only.
	Outcome string
	// Message is a sentence for users.
	Message string
}

// Step of a release.
type Step struct {
	// Index counts from 0.
	Index int32 `json:"index"`
	// Of is the number of steps.
	Of int32 `json:"of"`
	// Weight of the step in percent.
	Weight int32 `json:"weight"`
}

// hookKind is the kind of a hook's body.
const hookKind = "HookRequest"

type hookRequest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	ID         string            `json:"id"`
	Hook       string            `json:"hook"`
	When       v1alpha1.HookTime `json:"when"`
	Rollout    rolloutReference  `json:"rollout"`
	Service    string            `json:"service"`
	Revision   string            `json:"revision"`
	Step       *Step             `json:"step,omitempty"`
	Outcome    string            `json:"outcome,omitempty"`
	Message    string            `json:"message,omitempty"`
}

// Hook renders a question.
func Hook(ro Rollout, q Question) (Payload, error) {
	body, err := json.Marshal(hookRequest{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: hookKind, ID: q.ID, Hook: q.Hook, When: q.When,
		Rollout: ro.reference(), Service: ro.Service, Revision: q.Revision,
		Step: q.Step, Outcome: q.Outcome, Message: q.Message,
	})
	if err != nil {
		return Payload{}, fmt.Errorf("hook %s: render question %s: %w", q.Hook, q.ID, err)
	}
	return Payload{ContentType: "application/json; charset=utf-8", Body: body}, nil
}
