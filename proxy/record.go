// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

// record is one line of the access log.
type record struct {
	// backend is the ID of the backend that was asked, or "" when none was.
	backend string
	// code is the final status, three digits.
	code string
	// seconds that the backend took, over all tries; negative when not known. For
	// an upgraded connection, the time until it was upgraded.
	seconds float64
	// complete is whether the whole answer was sent.
	complete bool
	// kind of request: one of the kinds of package nginx.
	kind string
}

const (
	fieldSeparator = '\t'
	absent         = "-"
	switching      = "101"
)

var errRecord = errors.New("not a line of the access log")

// parseRecord reads a line: backend, status, response time, header time,
// completion, kind of request. It accepts exactly what nginx's log_format writes.
func parseRecord(line []byte) (record, error) {
	fields := bytes.Split(line, []byte{fieldSeparator})
	if len(fields) != 6 || !isID(fields[0]) {
		return record{}, errRecord
	}
	r := record{backend: string(fields[0]), code: string(fields[1]), kind: string(fields[5])}
	if r.backend == absent {
		r.backend = ""
	}
	if !isCode(fields[1]) {
		// nginx writes 000 for a connection that ended before there was a status.
		return record{}, errRecord
	}
	response, ok := parseTimes(fields[2])
	if !ok {
		return record{}, errRecord
	}
	header, ok := parseTimes(fields[3])
	if !ok {
		return record{}, errRecord
	}
	r.seconds = response
	if r.code == switching {
		r.seconds = header
	}
	switch string(fields[4]) {
	case "OK":
		r.complete = true
	case "", absent:
	default:
		return record{}, errRecord
	}
	switch r.kind {
	case nginx.KindSplit, nginx.KindUnmatched, nginx.KindMirrored, nginx.KindDropped:
		return r, nil
	default:
		return record{}, errRecord
	}
}

// isID tells whether a field is a backend's ID or absent.
func isID(field []byte) bool {
	if string(field) == absent {
		return true
	}
	if len(field) == 0 || len(field) > 32 {
		return false
	}
	for _, c := range field {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func isCode(field []byte) bool {
	if len(field) != 3 {
		return false
	}
	for _, c := range field {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// parseTimes sums the times of all tries, which nginx writes as
// "0.001, 0.020 : 0.003" with "-" for one that has none. When none has a time
// the sum is negative.
func parseTimes(field []byte) (seconds float64, ok bool) {
	seconds = -1
	if len(field) == 0 || string(field) == absent {
		return seconds, true
	}
	for try := range bytes.FieldsFuncSeq(field, func(r rune) bool { return r == ',' || r == ' ' || r == ':' }) {
		if string(try) == absent {
			continue
		}
		s, err := parseMillis(try)
		if err != nil {
			return 0, false
		}
		seconds = max(seconds, 0) + s
	}
	return seconds, true
}

// parseMillis reads seconds with exactly three decimals.
func parseMillis(field []byte) (float64, error) {
	whole, decimals, found := bytes.Cut(field, []byte{'.'})
	if !found || len(decimals) != 3 || len(whole) == 0 || len(whole) > 9 {
		return 0, errRecord
	}
	ms, err := strconv.ParseUint(string(whole)+string(decimals), 10, 63)
	if err != nil {
		return 0, errRecord
	}
	return float64(ms) / 1000, nil
}
