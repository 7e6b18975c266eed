// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
)

// Record is one line of the access log.
type Record struct {
	// Backend is the ID of the backend that was asked, or "" when none was.
	Backend string
	// Code is the final status, three digits.
	Code string
	// Seconds that the backend needed, in all tries; negative when not known. For
	// an upgraded connection, the time until it was upgraded.
	Seconds float64
	// Complete is whether the whole answer was sent.
	Complete bool
	// Kind of request: one of the kinds of this package.
	Kind string
	// Client that connected; zero when its address is not known. It is never what a
	// header says.
	Client netip.Addr
}

const (
	// previous is the client whose connection a previous nginx has.
	previous  = "unix:"
	switching = "101"
)

var errRecord = errors.New("not a line of the access log")

// Parse reads a line. It accepts exactly what nginx writes by a Format. A backend that a
// request was given to but that was never asked had no part in it.
func Parse(line []byte) (Record, error) {
	fields, ok := cutFields(line)
	// nginx writes 000 for a connection that ended before there was a status.
	if !ok || !isCode(fields[fieldStatus]) {
		return Record{}, errRecord
	}
	r := Record{Code: codeOf(fields[fieldStatus]), Kind: kindOf(fields[fieldKind])}
	if address := fields[fieldAddress]; len(address) > 0 && string(address) != Absent {
		if !isID(fields[fieldBackend]) {
			return Record{}, errRecord
		}
		r.Backend = string(fields[fieldBackend])
	}
	if r.Seconds, ok = parseDuration(r.Code, fields[fieldResponseTime], fields[fieldHeaderTime]); !ok {
		return Record{}, errRecord
	}
	switch string(fields[fieldCompletion]) {
	case Complete:
		r.Complete = true
	case "", Absent:
	default:
		return Record{}, errRecord
	}
	if r.Client, ok = parseClient(fields[fieldClient]); !ok || r.Kind == "" {
		return Record{}, errRecord
	}
	return r, nil
}

// kindOf is the kind that a field names; "" for none.
func kindOf(field []byte) string {
	for _, kind := range kinds {
		if string(field) == kind {
			return kind
		}
	}
	return ""
}

// statusTexts are all texts of three digits, made once and not for each line.
var statusTexts = makeStatusTexts()

func makeStatusTexts() (texts [1000]string) {
	for i := range texts {
		texts[i] = fmt.Sprintf("%03d", i)
	}
	return texts
}

// codeOf is the text of three digits.
func codeOf(field []byte) string {
	return statusTexts[100*int(field[0]-'0')+10*int(field[1]-'0')+int(field[2]-'0')]
}

// cutFields cuts a line into its fields, when it has as many as it should.
func cutFields(line []byte) (fields [fieldCount][]byte, ok bool) {
	for i := range fields {
		var more bool
		fields[i], line, more = bytes.Cut(line, []byte(separator))
		if more == (i == len(fields)-1) {
			return fields, false
		}
	}
	return fields, true
}

// parseClient reads the address of a client; zero when it is not known.
func parseClient(field []byte) (client netip.Addr, ok bool) {
	switch string(field) {
	case Absent, previous:
		return client, true
	}
	client, err := netip.ParseAddr(string(field))
	if err != nil || client.Zone() != "" {
		return netip.Addr{}, false
	}
	return client.Unmap(), true
}

// isID reports whether a field is a backend's ID.
func isID(field []byte) bool {
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

// parseDuration reads how long the backend took: until its answer ended, or, for an
// upgraded connection, began.
func parseDuration(code string, response, header []byte) (seconds float64, ok bool) {
	untilEnd, ok := parseTimes(response)
	if !ok {
		return 0, false
	}
	untilHeader, ok := parseTimes(header)
	if code == switching {
		return untilHeader, ok
	}
	return untilEnd, ok
}

// parseTimes sums the times of all tries, which nginx writes as
// "0.001, 0.020 : 0.003" with "-" for one that has none. When none has a time
// the sum is negative.
func parseTimes(field []byte) (seconds float64, ok bool) {
	seconds = -1
	if len(field) == 0 || string(field) == Absent {
		return seconds, true
	}
	if s, err := parseMillis(field); err == nil { // nearly always there is one
		return s, true
	}
	for try := range bytes.FieldsFuncSeq(field, func(r rune) bool { return r == ',' || r == ' ' || r == ':' }) {
		if string(try) == Absent {
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
	var ms uint64 // at most twelve digits
	for _, part := range [][]byte{whole, decimals} {
		for _, c := range part {
			if c < '0' || c > '9' {
				return 0, errRecord
			}
			ms = 10*ms + uint64(c-'0')
		}
	}
	return float64(ms) / 1000, nil
}
