// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"net/http"
	"strconv"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/proxy/accesslog"
)

const (
	// streams is how many requests a client may have on one connection. A client
	// queues what exceeds it, and calls of gRPC may last for days.
	streams = "10000"
	// callTimeout is how long nothing may be sent in one direction of a call: as long
	// as for a byte stream, since a gRPC stream is one to the app.
	callTimeout = "1d"
	// connectionAge is how old a connection gets before its client is asked for a new
	// one. Half of the time that a previous nginx gets to finish what it has.
	connectionAge = "30m"
)

// renderHTTP2Maps writes the variables that all HTTP/2 listeners share.
func renderHTTP2Maps(t *text) {
	// The status of a call is in a trailer, or in the header when there is no message.
	codes := [][2]string{{"default", "$status"}}
	for _, f := range analysis.FailedCalls() {
		codes = append(codes, [2]string{"200:" + strconv.Itoa(f.GRPC), strconv.Itoa(f.HTTP)})
	}
	t.entries("map", []string{"$status:$upstream_http_grpc_status$upstream_trailer_grpc_status", "$serin_call_status"}, codes...)
	// The header of a previous nginx names the client already.
	t.entries("map", []string{"$remote_addr", "$serin_call_for"},
		[2]string{"default", "$proxy_add_x_forwarded_for"}, [2]string{"unix:", "$http_x_forwarded_for"})
	// nginx itself attempts another connection as long as nothing was sent, and of
	// these methods nothing else: what was sent is not sent again.
	once := [][2]string{{"default", "1"}}
	for _, method := range []string{http.MethodPost, http.MethodPatch, "LOCK"} {
		once = append(once, [2]string{method, ""})
	}
	t.entries("map", []string{"$request_method", "$serin_call_once"}, once...)
	// Of the others, a request may have a body of unknown length, of which nothing is
	// left for another attempt; it then says what the body is.
	t.block("map", []string{"$request_method:$content_length$content_type:$upstream_bytes_sent", "$serin_call_final"}, func() {
		t.line("volatile") // looked at after each attempt
		t.line("default", "1")
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			sent := "0"
			for range maxTries - 1 {
				t.line(method+"::"+sent, "0")
				sent += " : 0"
			}
		}
	})
}

// renderHTTP2Listener writes one port of HTTP/2 without TLS. nginx speaks HTTP/2 to
// backends in one way only, which it calls gRPC; it carries every request of HTTP/2.
//
// Before a new configuration, clients need not be asked to close their connections:
// nginx tells them by GOAWAY which of their requests it has not taken, so that they
// can send them again. Connections that missed it are handed over request by request.
func renderHTTP2Listener(t *text, l httpListener, opts Options) {
	choice := l.choice()
	for _, d := range l.Port.Reachable() {
		id := BackendID(d)
		server := func() {
			for range maxTries { // nginx tries each server once
				renderServer(t, d)
			}
		}
		t.block("upstream", []string{choice + "_" + id + "_" + fresh}, server)
		t.block("upstream", []string{choice + "_" + id + "_" + pooled}, func() {
			server()
			renderPool(t)
		})
	}
	t.block("upstream", []string{choice + "_successor"}, func() { t.line("server", "unix:"+successorSocket(l.index), "max_fails=0") })
	call := accesslog.Answered("$"+l.choice(), renderChoice(t, l))
	call.Status = "$serin_call_status"
	renderLogFormat(t, l.choice(), call)
	t.block("server", nil, func() { renderHTTP2Server(t, l, opts) })
}

func renderHTTP2Server(t *text, l httpListener, opts Options) {
	choice := l.choice()
	pass := func() { t.line("grpc_pass", "grpc://"+choice+"_${"+choice+"}_$serin_way") }
	renderListen(t, l.Number, opts.IPv6, "http2")
	t.line("listen", "unix:"+callSocket(l.index), "http2", "backlog=4096")
	renderAccessLog(t, choice, opts)
	renderStickyServer(t, l)
	renderHTTP2Defaults(t)
	renderRequestLimitServer(t, l.capacity, opts)
	t.line("error_page", "416", "=", "@successor")
	t.line("error_page", "417", "=", "@once")
	t.line("error_page", "418", "=", "@again")
	for _, e := range errorPages {
		t.line("error_page", strconv.Itoa(e.code), "=", "@"+strconv.Itoa(e.code))
	}
	t.block("location", []string{"/"}, func() {
		t.block("if", []string{"(-f", retiredFile + ")"}, func() { t.line("return", "416") })
		renderDraw(t, l, secondTable, goOn)
		t.block("if", []string{"($" + l.drawn(), "=", "", ")"}, func() { t.line("return", "418") })
		if l.mayRefuse() {
			t.block("if", []string{"($" + choice, "=", "", ")"}, func() { t.line("return", "503") })
		}
		t.block("if", []string{"($serin_call_once)"}, func() { t.line("return", "417") })
		t.line("grpc_next_upstream", "error")
		pass()
	})
	// No backend got it: because no backend has weight, or because the table was replaced
	// between two look-ups.
	t.block("location", []string{"@again"}, func() {
		renderDraw(t, l, secondTable, goOn)
		t.block("if", []string{"($" + choice, "=", "", ")"}, func() { t.line("return", "503") })
		pass()
	})
	t.block("location", []string{"@once"}, pass)
	t.block("location", []string{"@successor"}, func() {
		t.line("access_log", "off") // the other one counts
		t.line("grpc_pass", "grpc://"+choice+"_successor")
	})
	renderErrorAnswers(t, opts, "$serin_call_final", pass)
}

// renderHTTP2Defaults writes how requests are passed on: as renderProxyDefaults does
// for HTTP/1.1.
func renderHTTP2Defaults(t *text) {
	t.lines(
		[2]string{"http2_max_concurrent_streams", streams},
		[2]string{"keepalive_time", connectionAge},
		[2]string{"client_body_timeout", callTimeout},
		[2]string{"send_timeout", callTimeout},
		[2]string{"grpc_buffer_size", "32k"},
		[2]string{"grpc_connect_timeout", "5s"},
		[2]string{"grpc_read_timeout", callTimeout},
		[2]string{"grpc_send_timeout", callTimeout},
		[2]string{"grpc_socket_keepalive", "on"},
		[2]string{"grpc_next_upstream", "off"},
		[2]string{"grpc_pass_header", "Server"},
		[2]string{"grpc_pass_header", "Date"},
	)
	var accel []string
	for _, name := range []string{"Redirect", "Expires", "Limit-Rate", "Buffering", "Charset"} {
		accel = append(accel, "X-Accel-"+name)
		t.line("grpc_pass_header", "X-Accel-"+name)
	}
	t.line("grpc_ignore_headers", accel...)
	t.line("grpc_set_header", "Host", "$serin_host")
	t.line("grpc_set_header", "X-Forwarded-For", "$serin_call_for")
}
