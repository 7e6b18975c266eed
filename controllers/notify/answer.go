// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/egress"
)

// judge reads an answer's status. Its text comes from the standard and not from
// the endpoint.
func judge(response *http.Response) answer {
	code := response.StatusCode
	a := answer{
		message:    strings.TrimSpace(fmt.Sprintf("answered %d %s", code, http.StatusText(code))),
		retryAfter: retryAfter(response.Header),
	}
	switch {
	case code == http.StatusAccepted, code == http.StatusTooEarly:
		a.outcome = NotYet
	case code >= 200 && code < 300:
		a.outcome = Delivered
	case code == http.StatusForbidden:
		a.outcome = Refused
	case code >= 300 && code < 400:
		a.outcome = Failed
		a.message += ": redirects are not followed; put the final address into endpoint.url"
	default:
		a.outcome = Failed
	}
	return a
}

// retryAfter reads the header Retry-After where it is a number of seconds (RFC
// 9110, section 10.2.3); a date depends on two clocks and is left alone.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// describe says why there is no answer, and names the field to fix.
func (c *caller) describe(err error) string {
	if own, ok := errors.AsType[*ownError](err); ok {
		return shorten(own.Error())
	}
	message := egress.Describe(err, c.options.Timeout)
	if egress.IsRefused(err) {
		message = "endpoint.url: " + message
	} else if errors.Is(err, egress.ErrURL) {
		message = "endpoint." + message
	}
	return shorten(message)
}

// ownError is an error whose text was written here and may be shown.
type ownError struct{ message string }

func (e *ownError) Error() string { return e.message }

// shorten cuts a message to MaxMessage bytes, at the end of a character.
func shorten(message string) string {
	if len(message) <= MaxMessage {
		return message
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(message[:MaxMessage-len(ellipsis)], "") + ellipsis
}
