// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ownError is an error whose text was written here and may be shown.
type ownError string

func (e ownError) Error() string { return string(e) }

// Describe says why there is no answer, in words of our own: an error of the HTTP
// client may quote the URL, which may be a secret, the answer, or a port that is
// another one each time. The timeout is the one that the attempt had.
func Describe(err error, timeout time.Duration) string {
	var own ownError
	var refused *RefusedError
	switch {
	case errors.Is(err, ErrURL):
		return "url: " + ErrURL.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &own):
		return own.Error()
	case IsTimeout(err):
		return fmt.Sprintf("no answer within %s", timeout)
	}
	if message := tlsCause(err); message != "" {
		return message
	}
	return networkCause(err)
}

// IsTimeout reports whether the time ran out before there was an answer.
func IsTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// IsRefused reports whether the policy did not let the connection be made.
func IsRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || errors.Is(err, errUnknownServer) || errors.Is(err, errUnknownNodes) || errors.Is(err, errNoTCP)
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
