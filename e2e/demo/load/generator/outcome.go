// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Kind says how a request ended.
type Kind string

// How a request can end.
const (
	// KindOK is an answer of the app with a status below 500.
	KindOK Kind = "ok"
	// KindAppError is an answer of the app with a status of 500 or more.
	KindAppError Kind = "appError"
	// KindNoVersion is an answer that does not come from the app, such as a 502 of a proxy.
	KindNoVersion Kind = "noVersion"
	// KindDNS is a name that did not resolve, other than for lack of time.
	KindDNS Kind = "dns"
	// KindRefused is a connection that nobody accepted.
	KindRefused Kind = "refused"
	// KindReset is a connection that was reset.
	KindReset Kind = "reset"
	// KindClosed is a connection that ended before the answer was complete.
	KindClosed Kind = "closed"
	// KindTimeout is an answer that took too long.
	KindTimeout Kind = "timeout"
	// KindNoPort is a request that was not sent, since this machine had no free port for a
	// connection: too many of the last minute are in use, or waited for in vain.
	KindNoPort Kind = "noPort"
	// KindRepeated is a request that net/http sent again, since its idle connection was closed.
	KindRepeated Kind = "repeated"
	// KindSlow is a request that took a second or more.
	KindSlow Kind = "slow"
	// KindOther is every other error.
	KindOther Kind = "other"
)

// answered tells whether a version of the app gave the answer.
func (k Kind) answered() bool { return k == KindOK || k == KindAppError }

// outcome is how one request ended.
type outcome struct {
	kind    Kind
	version string
	status  int
	detail  string
	latency time.Duration
	// direct tells of an answer of the app that no proxy had asked for.
	direct bool
	// retries and opened count what net/http did for the request.
	retries, opened int64
}

// kindOfAnswer classifies a complete answer.
func kindOfAnswer(status int, version string) Kind {
	switch {
	case version == "":
		return KindNoVersion
	case status >= http.StatusInternalServerError:
		return KindAppError
	default:
		return KindOK
	}
}

// kindOfError classifies a transport error.
func kindOfError(err error) Kind {
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &dns) && !dns.IsTimeout:
		return KindDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return KindRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return KindNoPort
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return KindReset
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return KindTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return KindClosed
	default:
		return KindOther
	}
}
