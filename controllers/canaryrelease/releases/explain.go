// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Explain replaces errors of Helm and of the API server: with what lies behind
// them, and else with a text that shows nothing of them.
func Explain(err, trouble error) error {
	switch {
	case err == nil || errors.As(err, new(InvalidError)):
		return err
	case trouble != nil:
		return trouble
	}
	if known, ok := errors.AsType[FailureError](err); ok {
		return known
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return FailureError(Refusal(status.Status()))
	}
	return FailureError("a request to the API server failed")
}

// Refusal tells of an answer what names things, and none of its prose, which quotes values.
func Refusal(s metav1.Status) string {
	what := "a request"
	var fields []string
	if s.Details != nil {
		what = s.Details.Kind + "/" + s.Details.Name
		for i, c := range s.Details.Causes {
			if i < 3 && c.Field != "" {
				fields = append(fields, c.Field)
			}
		}
	}
	text := fmt.Sprintf("the API server refuses %s: %s", what, s.Reason)
	if len(fields) > 0 {
		text += " at " + strings.TrimRight(strings.Join(fields, " "), " ")
	}
	return text
}
