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
)

var kinds = []string{KindSplit, KindSticky, KindUnmatched, KindMirrored, KindDropped, KindConnection}

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

// Format is the text of a log_format.
func (f Fields) Format() string {
	return strings.Join([]string{f.Backend, f.Address, f.Status, f.ResponseTime, f.HeaderTime, f.Completion, f.Kind, f.Client}, separator)
}

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
