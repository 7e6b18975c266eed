// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/traffic"
)

// confirmationOf is what Istio says in an object's status about its generation, and
// why. Istio writes a status only when it is told to, so mostly it says nothing.
func confirmationOf(u *unstructured.Unstructured) (traffic.Confirmation, string) {
	status, _ := u.Object["status"].(map[string]any)
	observed := generation(status["observedGeneration"])
	if problem := validationError(status); problem != "" && (observed == 0 || observed >= u.GetGeneration()) {
		return traffic.ConfirmationRefused, problem
	}
	conditions, _ := status["conditions"].([]any)
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] != "Reconciled" {
			continue
		}
		seen := max(observed, generation(c["observedGeneration"]))
		switch {
		case seen == 0:
			return traffic.ConfirmationNone, "" // it does not say which generation it is about
		case seen >= u.GetGeneration() && c["status"] == "True":
			return traffic.ConfirmationGiven, ""
		default:
			return traffic.ConfirmationPending, text(c["message"])
		}
	}
	return traffic.ConfirmationNone, ""
}

// validationError names the findings of Istio's analysis that are errors.
func validationError(status map[string]any) string {
	messages, _ := status["validationMessages"].([]any)
	var found []string
	for _, item := range messages {
		m, _ := item.(map[string]any)
		if !strings.EqualFold(text(m["level"]), "ERROR") {
			continue
		}
		kind, _ := m["type"].(map[string]any)
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s", text(kind["code"]), text(kind["name"]), text(m["documentationUrl"]))))
	}
	if len(found) == 0 {
		return ""
	}
	return "Istio's analysis finds errors: " + strings.Join(found, "; ")
}

// generation reads a 64-bit number, which Istio writes as a text.
func generation(value any) int64 {
	if s, ok := value.(string); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return whole(value)
}
