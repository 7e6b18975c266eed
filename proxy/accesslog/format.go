// SPDX-License-Identifier: Apache-2.0

package accesslog

import "strings"

// Whose requests a line is about.
const (
	// KindSplit: a request that was shared by the weights.
	KindSplit = "split"
	// KindSticky: a request that was shared by the weights when its client was drawn,
	// and went where that client belongs.
	KindSticky = "sticky"
	// KindUnmatched: a request of a limited split that matched nothing.
	KindUnmatched = "unmatched"
	// KindMirrored: a mirrored request.
	KindMirrored = "mirrored"
	// KindDropped: a mirrored request that was not sent, because too many were on their way.
	KindDropped = "dropped"
	// KindConnection: a connection of a TCP port.
	KindConnection = "connection"
	// KindRefused: a request that the proxy did not take on, or failed by itself.
	KindRefused = "refused"
)

var kinds = []string{KindSplit, KindSticky, KindUnmatched, KindMirrored, KindDropped, KindConnection, KindRefused}

const (
	separator = "\t"
	// Absent is a field that says nothing.
	Absent = "-"
	// Asked is the address of a backend that is certain to have been asked.
	Asked = "+"
	// Complete is the completion of a request whose answer was sent whole.
	Complete = "OK"
)

// Fields are what nginx writes about a request, in the order of the line: its variables, or
// what is certain. All of it is nginx's own words, so there is nothing to escape.
type Fields struct {
	// Backend is the ID of the backend that the request was given to.
	Backend string
	// Address that was asked; Absent for none, and then the backend had no part in it.
	Address string
	// Status, three digits.
	Status string
	// ResponseTime and HeaderTime are the seconds of each try until the answer ended and
	// began.
	ResponseTime, HeaderTime string
	// Completion is Complete, or nothing for an answer that was not sent whole.
	Completion string
	// Kind is one of the kinds above.
	Kind string
	// Client is the address that connected, never what a header says.
	Client string
}

// Line is the fields as nginx writes them, and a format without options.
func (f Fields) Line() string {
	return strings.Join([]string{f.Backend, f.Address, f.Status, f.ResponseTime, f.HeaderTime, f.Completion, f.Kind, f.Client}, separator)
}

// Format is what follows the name in a log_format: nothing is escaped, which takes longer
// than to write it. A variable without a value is written as nothing.
func (f Fields) Format() []string { return []string{"escape=none", f.Line()} }

// Answered are the fields of a request of which an HTTP backend's answer says all, whatever
// the backend and the kind are.
func Answered(backend, kind string) Fields {
	return Fields{
		Backend: backend, Address: "$upstream_addr", Status: "$status", ResponseTime: "$upstream_response_time", HeaderTime: "$upstream_header_time",
		Completion: "$request_completion", Kind: kind, Client: "$remote_addr",
	}
}

// Untimed are the fields of what takes no time that counts.
func Untimed(backend, kind string) Fields {
	return Fields{
		Backend: backend, Address: Asked, Status: "$status", ResponseTime: Absent, HeaderTime: Absent, Completion: Complete, Kind: kind, Client: Absent,
	}
}

// Refused are the fields of a request that the proxy answered because of its own state,
// whichever backend it would have been for.
func Refused() Fields {
	f := Untimed(Absent, KindRefused)
	f.Address = Absent
	return f
}

// Buffering is what follows the format in an access_log: nginx writes at the latest after
// flush.
func Buffering() []string { return []string{"buffer=64k", "flush=" + flush} }

const flush = "200ms"

// The fields of a line, by their places in a Format.
const (
	fieldBackend = iota
	fieldAddress
	fieldStatus
	fieldResponseTime
	fieldHeaderTime
	fieldCompletion
	fieldKind
	fieldClient
	fieldCount
)
