// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/prometheus/common/expfmt"
)

// checkResponse refuses an answer by its header.
func checkResponse(resp *http.Response) error {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("answered with a redirect (status %d), which is not followed", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("answered with status %d instead of 200", resp.StatusCode)
	case expfmt.ResponseFormat(resp.Header).FormatType() != expfmt.TypeTextPlain:
		return errors.New("answered in a format other than the Prometheus text format 0.0.4")
	case !framed(resp):
		return errors.New("the length of the answer is not known, so one that was cut short would look complete")
	}
	return nil
}

// framed reports whether the end of the body is marked, so that a connection
// that breaks in the middle is an error and not an end.
func framed(resp *http.Response) bool {
	return resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor >= 2 || resp.Uncompressed
}

// describe says why a request failed. The error itself may quote the answer,
// which belongs in no status, event or log.
func describe(err error) error {
	var (
		network  net.Error
		dial     *net.OpError
		deflated flate.CorruptInputError
	)
	switch {
	case errors.As(err, &network) && network.Timeout():
		return errors.New("did not answer in time")
	case errors.As(err, &dial):
		return fmt.Errorf("%s: %w", dial.Op, dial.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the answer was cut short")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &deflated):
		return errors.New("the compressed answer is broken")
	default:
		return errors.New("did not answer in HTTP as expected")
	}
}
