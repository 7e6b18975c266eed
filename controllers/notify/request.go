// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Request is one question to a hook, or one notification.
type Request struct {
	// ID is unique in the Rollout and the same whenever the request is repeated.
	ID string
	// UID of the Rollout. The same template in two namespaces has the same revision,
	// so that an ID alone may come from two Rollouts.
	UID types.UID
	// Endpoint that it is sent to with POST.
	Endpoint v1alpha1.Endpoint
	// ContentType of the body.
	ContentType string
	// Body is what is sent, and what is signed.
	Body []byte
}

// key identifies the request for its receiver, among all senders.
func (r Request) key() string {
	if r.UID == "" {
		return r.ID
	}
	return string(r.UID) + "/" + r.ID
}

// Outcome is what became of a request so far.
type Outcome int

const (
	// Pending is a request that was not answered yet.
	Pending Outcome = iota
	// Delivered was answered with 200 to 299, except 202. It is final.
	Delivered
	// NotYet was answered with 202 or 425; the endpoint is called again.
	NotYet
	// Refused was answered with 403. It is final.
	Refused
	// Failed was not answered, or with any other status; it is tried again.
	Failed
)

// String is the outcome as a label of metrics.
func (o Outcome) String() string {
	switch o {
	case Delivered:
		return "delivered"
	case NotYet:
		return "not_yet"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	default:
		return "pending"
	}
}

// Final reports that nothing more is sent.
func (o Outcome) Final() bool { return o == Delivered || o == Refused }

// Result is where a request stands.
type Result struct {
	Outcome Outcome
	// Attempts that were made.
	Attempts int
	// Message says in at most MaxMessage characters what the last attempt gave. It
	// holds nothing of the answer's body, and is the same for the same cause.
	Message string
}

// MaxMessage is how many bytes a Result's message has at most: what fits into the
// status of a hook.
const MaxMessage = 256
