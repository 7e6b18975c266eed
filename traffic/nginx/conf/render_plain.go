// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"net/http"
	"strconv"
	"time"

	"github.com/serin-dev/serin/proxy/accesslog"
)

const (
	// lookupsValid is for how many seconds a worker remembers what it has found in a table.
	lookupsValid = 1
	// LookupsKept is how long that is at most. The clock of a worker that has much to do is
	// a little behind, and one that has used up its CPU limit stands still for up to 100 ms.
	LookupsKept = lookupsValid*time.Second + 150*time.Millisecond
)

// LookupsForgotten is when no request goes any more by what the tables said before a
// time, but for those that are under way: nginx remembers what it has found until its clock
// shows the next second, and reads that whenever something happens.
func LookupsForgotten(before time.Time) time.Time {
	return before.Truncate(time.Second).Add(LookupsKept)
}

// plain is whether nothing but the weights decides which backend gets a request, and no
// other gets it as well.
func (l httpListener) plain() bool { return !l.limited && l.Port.Mirror == nil && l.sticky == nil }

// renderPlain writes what renderPass does, for the requests of which most of the traffic is: those that
// can go on any kept connection and are nothing else. For them there is nothing to find out
// but who is drawn: the names and headers are fixed. Most of them are in a part of the buckets
// that one backend has all of, so the digits of their bucket, and the longer path to it, are
// left to the others. What is found of a part is remembered until the next second begins, see
// LookupsForgotten; a part that seems to be of no backend until then is left to the others too.
func renderPlain(t *text, l httpListener, opts Options) {
	t.line("proxy_set_header", "Host", "$http_host")
	t.line("proxy_set_header", "X-Forwarded-For", "$proxy_add_x_forwarded_for")
	t.line("proxy_set_header", "Connection", "")
	for _, special := range [][]string{
		{"($request_method", "!=", http.MethodGet, ")"},
		{"($content_length)"}, // neither none nor 0
		{"($http_transfer_encoding)"},
		{"($http_upgrade)"},
		{"($http_host", "=", "", ")"},
	} {
		t.block("if", special, func() { t.line("return", "420") })
	}
	t.line("open_file_cache", "max="+strconv.Itoa(Parts*len(l.Port.Destinations)))
	t.line("open_file_cache_valid", strconv.Itoa(lookupsValid)+"s")
	t.line("open_file_cache_errors", "on")
	for _, d := range l.Port.Destinations {
		id := BackendID(d)
		t.block("if", []string{"(-d", wholeEntry(firstTable, l.index, id) + ")"}, func() {
			t.line("set", "$"+l.drawn(), id)
			t.line("break")
			renderAccessLog(t, l.choice()+"_"+id, opts)
			t.line("proxy_pass", "http://"+l.choice()+"_"+id+"_"+pooled)
		})
	}
	t.line("return", "420")
}

// renderPlainLogs writes what the access log says of a request that renderPlain gives to
// a backend: the same, without looking up what is certain there. The backend was asked, and no
// connection was upgraded, which is what the time until the headers is for.
func renderPlainLogs(t *text, l httpListener) {
	for _, d := range l.Port.Destinations {
		id := BackendID(d)
		plain := accesslog.Answered(id, accesslog.KindSplit)
		plain.Address, plain.HeaderTime = accesslog.Asked, accesslog.Absent
		renderLogFormat(t, l.choice()+"_"+id, plain)
	}
}
