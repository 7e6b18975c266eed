// SPDX-License-Identifier: Apache-2.0

package analysis

import "net/http"

// Outcome is what one answer says about the version that gave it.
type Outcome int

const (
	// Ignored answers say nothing about the version and count as neither a
	// request nor a failure.
	Ignored Outcome = iota
	// Success answers count as a request.
	Success
	// Failure answers count as a request and as a failure.
	Failure
)

// StatusClientGone is the status that nginx writes in its log when the client
// closed the connection before it was answered.
const StatusClientGone = 499

// Classify is the one place that decides which answers are failures of a
// version.
//
//	status        outcome   why
//	0–99          Ignored   no status was sent: the client left, or spoke HTTP/0.9
//	100–498       Success   a 4xx is the answer a bad request deserves
//	499           Ignored   the client left before the version could answer
//	500 and more  Failure   RFC 9110, section 15: a status above 599 is treated as 5xx
//
// A canary that wrongly answers 4xx is therefore not found by the comparison
// of failures; that is the price of not blaming a version for its callers.
func Classify(status int) Outcome {
	switch {
	case status < http.StatusContinue, status == StatusClientGone:
		return Ignored
	case status >= http.StatusInternalServerError:
		return Failure
	default:
		return Success
	}
}
