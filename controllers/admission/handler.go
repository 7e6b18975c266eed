// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"

	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Paths of the webhooks, which the chart names.
const (
	PathHold      = "/hold"
	PathKeep      = "/keep"
	PathSign      = "/sign"
	PathConfigure = "/configure"
)

// Names of the webhooks whose presence the operator looks at.
const (
	WebhookHold      = "hold.webhooks.serin.dev"
	WebhookConfigure = "configure.webhooks.serin.dev"
)

// Rules by their paths, for an operator that writes as a user.
func Rules(operator string) map[string]Rule {
	return map[string]Rule{PathHold: Hold(operator), PathKeep: Keep, PathSign: Sign, PathConfigure: Configure}
}

// Handler serves a rule to the API server. What can't be read is an error, of which the
// failurePolicy of the webhook says what becomes.
func Handler(rule Rule) http.Handler {
	return &ctrladmission.Webhook{Handler: ctrladmission.HandlerFunc(func(_ context.Context, r ctrladmission.Request) ctrladmission.Response {
		request, err := parse(&r.AdmissionRequest)
		if err != nil {
			return ctrladmission.Errored(http.StatusBadRequest, err)
		}
		return ctrladmission.Patched("", rule(request)...)
	})}
}
