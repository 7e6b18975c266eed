// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Problem is one reason why a split, or a part of it, can't be served.
type Problem struct {
	// Condition of the TrafficSplit that the problem makes False: with
	// splitv1.ConditionAccepted the whole split is refused, with
	// splitv1.ConditionResolvedRefs only the part that is named gets no traffic.
	Condition string
	// Reason of the condition.
	Reason string
	// Message names the field and the fix.
	Message string
}

// Refused is true when a problem refuses the whole split. A data plane must then
// keep what it serves: a refused split has no meaning of its own.
func Refused(problems []Problem) bool {
	for _, p := range problems {
		if p.Condition == splitv1.ConditionAccepted {
			return true
		}
	}
	return false
}

// maxSummary is the most bytes that ProxyStatus.Message of a status holds.
const maxSummary = 1024

// Summary is the problems as one line, empty when there are none. A proxy
// reports it as its message.
func Summary(problems []Problem) string {
	messages := make([]string, 0, len(problems))
	for _, p := range problems {
		messages = append(messages, p.Message)
	}
	s := strings.Join(messages, "; ")
	if len(s) > maxSummary {
		s = strings.ToValidUTF8(s[:maxSummary], "")
	}
	return s
}

// Refuse is a problem that refuses the whole split.
func Refuse(reason, format string, args ...any) Problem {
	return Problem{Condition: splitv1.ConditionAccepted, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Unsupported is a problem that refuses the whole split for what a router or a cluster can't do.
func Unsupported(format string, args ...any) Problem {
	return Refuse(splitv1.ReasonUnsupported, format, args...)
}

// Unresolved is a problem of a part of a split, which gets no traffic.
func Unresolved(reason, format string, args ...any) Problem {
	return Problem{Condition: splitv1.ConditionResolvedRefs, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
