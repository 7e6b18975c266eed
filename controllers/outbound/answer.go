// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// describe says why there is no answer, in words of our own: an error of the HTTP
// client may quote the URL, which may be a secret, the answer, or a port that is
// another one each time.
func (c *caller) describe(err error) string {
	return shorten(c.cause(err))
}

func (c *caller) cause(err error) string {
	var own *ownError
	var refused *RefusedAddressError
	switch {
	case errors.Is(err, errURL):
		return err.Error()
	case errors.As(err, &own):
		return own.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case isTimeout(err):
		return fmt.Sprintf("no answer within %s", c.options.Timeout)
	}
	if message := tlsCause(err); message != "" {
		return message
	}
	return networkCause(err)
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

func tlsCause(err error) string {
	var (
		verification *tls.CertificateVerificationError
		unknown      x509.UnknownAuthorityError
		name         x509.HostnameError
		invalid      x509.CertificateInvalidError
		alert        tls.AlertError
		record       tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown):
		return "the certificate is signed by an authority that is not trusted"
	case errors.As(err, &name):
		return "the certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	case errors.As(err, &verification):
		return "the certificate could not be verified"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record), errors.As(err, &alert):
		return "no TLS connection could be made"
	default:
		return ""
	}
}

func networkCause(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name does not exist"
	case errors.As(err, &dns):
		return "the host name could not be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to the host"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before there was an answer"
	default:
		return "no HTTP answer"
	}
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
