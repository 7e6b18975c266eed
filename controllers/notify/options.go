// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/x509"
	"time"

	"github.com/serin-dev/serin/poll/fair"
)

// Options of a Sender. What is zero gets the default.
type Options struct {
	// UserAgent is sent in the header of that name. Default "serin".
	UserAgent string
	// ServiceAccount of the operator, "namespace/name", for the message that says
	// who has to be allowed to read a signing key. Default "the operator's".
	ServiceAccount string
	// Roots verify the certificates of endpoints. Default the system's.
	Roots *x509.CertPool
	// Timeout of one attempt, from the reading of the key to the end of the answer.
	// Default 10 s.
	Timeout time.Duration
	// CallAgain is when an endpoint is called again that said "not yet". Default 10 s.
	CallAgain time.Duration
	// FirstRetry is how long after the first failure it is tried again; twice as long
	// after each further one, up to MaxRetry. Default 1 s and 5 min. A quarter at most
	// is added at random, so that what failed together does not come back together.
	FirstRetry, MaxRetry time.Duration
	// Slots bound the number of requests at once. Default: 32.
	Slots *fair.Slots
	// PerHost is the number of requests of a namespace at once to one host and port.
	// Default 4.
	PerHost int
}

func (o Options) withDefaults() Options {
	setDefault(&o.UserAgent, "serin")
	setDefault(&o.ServiceAccount, "the operator's")
	setDefault(&o.Timeout, 10*time.Second)
	setDefault(&o.CallAgain, 10*time.Second)
	setDefault(&o.FirstRetry, time.Second)
	setDefault(&o.MaxRetry, 5*time.Minute)
	if o.Slots == nil {
		o.Slots = fair.NewSlots(fair.Limits{Slots: 32})
	}
	setDefault(&o.PerHost, 4)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
