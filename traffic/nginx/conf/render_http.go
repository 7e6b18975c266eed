// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic"
)

// How a request reaches its backend, the suffix of an upstream's name. A kept
// connection may be closed by the backend while a request is on its way, and such
// a request is lost: whether the backend acted on it can't be known, so it is never
// sent again. Who sent it would have run that risk without a proxy only on a
// connection of its own that it used again, so no more is taken here.
const (
	// pooled: on a connection that is kept.
	pooled = "p"
	// fresh: on a connection of its own.
	fresh = "f"
)

// maxTries is how often a connection is attempted that the backend refuses. A
// pod that is going may refuse before the Service has let go of it.
const maxTries = 3

// renderHTTPDefaults writes what all HTTP listeners share: the proxy changes as
// little as it can.
func renderHTTPDefaults(t *text, opts Options) {
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		t.line(name+"_temp_path", opts.Dir.Temp()+"/"+name)
	}
	t.lines(
		[2]string{"map_hash_bucket_size", "1024"},
		[2]string{"map_hash_max_size", "8192"},
		[2]string{"variables_hash_max_size", "4096"},
		[2]string{"default_type", "text/plain"},
		[2]string{"server_tokens", "off"},
		[2]string{"access_log", "off"},
		[2]string{"log_not_found", "off"},
		// A request that nginx refuses was never looked up.
		[2]string{"uninitialized_variable_warn", "off"},
		// Requests as they came.
		[2]string{"merge_slashes", "off"},
		[2]string{"ignore_invalid_headers", "off"},
		[2]string{"underscores_in_headers", "on"},
		[2]string{"client_max_body_size", "0"},
		[2]string{"client_header_buffer_size", "4k"},
		// What the proxy finds out about a request does not fit into the 4k that are usual,
		// and more memory in a second piece takes longer.
		[2]string{"request_pool_size", "8k"},
	)
	t.line("large_client_header_buffers", "16", "64k")
	t.lines(
		// Times are the business of the two ends; these only free what is dead.
		[2]string{"client_header_timeout", "10m"},
		[2]string{"client_body_timeout", "1h"},
		[2]string{"send_timeout", "1h"},
		[2]string{"keepalive_timeout", "1h"},
		[2]string{"keepalive_requests", "100000"},
		[2]string{"keepalive_time", "1d"},
		[2]string{"recursive_error_pages", "on"},
	)
	renderProxyDefaults(t)
}

// renderProxyDefaults writes how requests are passed on.
func renderProxyDefaults(t *text) {
	t.lines(
		[2]string{"proxy_http_version", "1.1"},
		// Bytes are passed on as they come: server-sent events, long polls, uploads
		// of any size.
		[2]string{"proxy_request_buffering", "off"},
		[2]string{"proxy_buffering", "off"},
		[2]string{"proxy_buffer_size", "32k"},
		[2]string{"proxy_max_temp_file_size", "0"},
		[2]string{"proxy_connect_timeout", "5s"},
		[2]string{"proxy_read_timeout", "1h"},
		[2]string{"proxy_send_timeout", "1h"},
		[2]string{"proxy_socket_keepalive", "on"},
		// nginx would send again what a backend broke off: the failures of a bad version
		// would not show, and one deadly request would reach every pod.
		[2]string{"proxy_next_upstream", "off"},
		[2]string{"proxy_redirect", "off"},
		[2]string{"proxy_pass_header", "Server"},
		[2]string{"proxy_pass_header", "Date"},
	)
	t.line("proxy_buffers", "8", "32k")
	// An answer's headers are for the client, not orders for this proxy.
	var accel []string
	for _, name := range []string{"Redirect", "Expires", "Limit-Rate", "Buffering", "Charset"} {
		accel = append(accel, "X-Accel-"+name)
		t.line("proxy_pass_header", "X-Accel-"+name)
	}
	t.line("proxy_pass_header", "X-Pad")
	t.line("proxy_ignore_headers", append(accel, "Expires", "Cache-Control", "Set-Cookie", "Vary")...)
	t.line("proxy_set_header", "Host", "$serin_host")
	t.line("proxy_set_header", "X-Forwarded-For", "$proxy_add_x_forwarded_for")
	t.line("proxy_set_header", "Upgrade", "$serin_upgrade")
	t.line("proxy_set_header", "Connection", "$serin_connection")
}

// renderHTTPMaps writes the variables that all HTTP listeners share.
func renderHTTPMaps(t *text) {
	for _, draw := range []struct {
		variable, hashed string
		parts            int
	}{{"part", "high", Parts}, {"high", "high", 100}, {"low", "low", 100}} {
		var parts [][2]string
		for i := range draw.parts - 1 {
			parts = append(parts, [2]string{strconv.Itoa(100/draw.parts) + "%", fmt.Sprintf("%02d", i)})
		}
		parts = append(parts, [2]string{"*", fmt.Sprintf("%02d", draw.parts-1)})
		// The two digits of a request's bucket are hashes of different strings, and its part
		// is one of the same as the first, so that it has the bucket. What tells
		// a request from all others of all proxies is random enough for a hash, and
		// $request_id, which asks OpenSSL for 16 random bytes, takes longer than the hash.
		t.entries("split_clients", []string{draw.hashed + " $hostname $connection $connection_requests", "$serin_" + draw.variable}, parts...)
	}
	renderWays(t)
	// HTTP/1.0 allows a request without a host, HTTP/1.1 does not.
	t.entries("map", []string{"$http_host", "$serin_host"},
		[2]string{"default", "$http_host"}, [2]string{"", "localhost"})
	// An upgrade to HTTP/2 would take all further requests of the connection past
	// the split; a server may always ignore it.
	t.entries("map", []string{"$http_upgrade", "$serin_upgrade"},
		[2]string{"default", "$http_upgrade"}, [2]string{"", ""}, [2]string{"~*(^|[ ,])h2c([ ,/]|$)", ""})
	t.entries("map", []string{"$serin_upgrade", "$serin_connection"},
		[2]string{"default", "upgrade"}, [2]string{"", "$serin_close"})
	t.entries("map", []string{"$serin_way", "$serin_close"},
		[2]string{"default", "close"}, [2]string{pooled, ""})
}

// renderWays writes the variables that say how a request reaches its backend, and
// whether it may be attempted again.
func renderWays(t *text) {
	t.entries("map", []string{"$content_length:$http_transfer_encoding", "$serin_body"},
		[2]string{"default", "1"}, [2]string{":", "0"}, [2]string{"0:", "0"})
	t.entries("map", []string{"$connection_requests", "$serin_as_client"},
		[2]string{"default", pooled}, [2]string{"1", fresh})
	ways := [][2]string{{"default", "$serin_as_client"}}
	// Clients repeat these by themselves.
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		ways = append(ways, [2]string{method + ":0", pooled})
	}
	t.entries("map", []string{"$request_method:$serin_body", "$serin_way"}, ways...)
	// A body is passed on as it comes, so there is none left for another attempt.
	attempts := [][2]string{{"default", "1"}}
	sent := "0"
	for range maxTries - 1 {
		attempts = append(attempts, [2]string{"0:" + sent, "0"})
		sent += " : 0"
	}
	t.block("map", []string{"$serin_body:$upstream_bytes_sent", "$serin_final"}, func() {
		t.line("volatile") // looked at after each attempt
		t.lines(attempts...)
	})
}

// renderStatus writes the server by which the agent asks for the configuration
// that a worker runs.
func renderStatus(t *text, key string) {
	t.block("server", nil, func() {
		t.line("listen", "unix:"+statusSocket)
		t.block("location", []string{"=", "/key"}, func() { t.line("return", "200", key) })
		t.block("location", []string{"=", "/connections"}, func() { t.line("stub_status") })
		t.block("location", []string{"/"}, func() { t.line("return", "404") })
	})
}

// httpListener is one HTTP port of a split.
type httpListener struct {
	Listener
	index    int
	limited  bool
	sticky   *traffic.Sticky
	capacity Capacity
}

// choice is the name of the variable that holds a request's backend, and the
// beginning of all names of the listener.
func (l httpListener) choice() string { return fmt.Sprintf("serin_http_%d", l.index) }

// renderHTTPListener writes one HTTP port: its upstreams, the variable that
// holds a request's choice, and the servers.
func renderHTTPListener(t *text, l httpListener, opts Options, key string) {
	choice := l.choice()
	for _, d := range l.Port.Reachable() {
		id := BackendID(d)
		t.block("upstream", []string{choice + "_" + id + "_" + fresh}, func() { renderServer(t, d) })
		t.block("upstream", []string{choice + "_" + id + "_" + pooled}, func() {
			renderServer(t, d)
			renderPool(t)
		})
	}
	renderLogFormat(t, choice, accesslog.Answered("$"+choice, renderChoice(t, l)))
	if l.plain() {
		renderPlainLogs(t, l)
	}
	if m := l.Port.Mirror; m != nil {
		renderMirrorChoice(t, choice, BackendID(*m))
		renderMirrorServer(t, l, opts, key)
	}
	t.block("server", nil, func() { renderHTTPServer(t, l, opts, key) })
}

// drawn is the name of the variable that holds the backend that the weights gave
// a request; "" when no backend has weight.
func (l httpListener) drawn() string {
	if l.limited {
		return l.choice() + "_shared"
	}
	return l.choice()
}

// mayRefuse is whether there are requests that no backend gets though a backend was
// drawn: those that match nothing when there is no default.
func (l httpListener) mayRefuse() bool { return l.limited && l.Port.Default == nil }

// renderChoice writes the variable that holds a request's backend, where that is
// not what was drawn, and returns the kind of request for the access log.
func renderChoice(t *text, l httpListener) (kind string) {
	choice, split := l.choice(), accesslog.KindSplit
	if l.sticky != nil {
		renderStickyMaps(t, l)
		split = "$" + choice + "_back"
	}
	if !l.limited {
		return split
	}
	// Whether a request matches comes before the weights.
	unmatched := ""
	if d := l.Port.Default; d != nil {
		unmatched = BackendID(*d)
	}
	t.entries("map", []string{"$" + matched, "$" + choice},
		[2]string{"default", unmatched}, [2]string{"1", "$" + l.drawn()})
	t.entries("map", []string{"$" + matched, "$" + choice + "_kind"},
		[2]string{"default", accesslog.KindUnmatched}, [2]string{"1", split})
	return "$" + choice + "_kind"
}

// renderLogFormat writes what the access log says of a request.
func renderLogFormat(t *text, name string, fields accesslog.Fields) {
	t.line("log_format", append([]string{name}, fields.Format()...)...)
}

// renderAccessLog writes where the access log of a server is.
func renderAccessLog(t *text, format string, opts Options) {
	t.line("access_log", append([]string{opts.Dir.AccessLog(), format}, accesslog.Buffering()...)...)
}

// renderDraw writes the look-up of a request in a table: the first backend that
// has its bucket is drawn. What then is written for each of them.
//
// Each condition is one system call. What would take fewer, a link to follow,
// takes one for each step of its path. A request that is looked up while the table is
// replaced may find its bucket with the one backend too late and with the other
// too soon; then it is looked up again.
func renderDraw(t *text, l httpListener, table string, then func(id string)) {
	t.line("set", "$"+l.drawn(), "")
	if l.sticky != nil {
		t.line("set", "$"+l.how(), "")
		then = goOn // to where the client belongs
	}
	for _, d := range l.Port.Destinations {
		id := BackendID(d)
		t.block("if", []string{"(-x", entry(table, l.index, id) + ")"}, func() {
			t.line("set", "$"+l.drawn(), id)
			then(id)
		})
	}
	if l.sticky != nil {
		renderKept(t, l, table)
	}
}

// goOn has the next look-ups and conditions follow.
func goOn(string) {}

// skip has a draw that is over skip the next look-ups and conditions.
func (t *text) skip(string) { t.line("break") }

// renderPool writes how backend connections are kept: so briefly that no server
// in use has a shorter idle time, and that new and leaving pods of the Service
// get their share within seconds.
func renderPool(t *text) {
	t.lines(
		[2]string{"keepalive", "512"},
		[2]string{"keepalive_timeout", "1s"},
		[2]string{"keepalive_time", "5s"},
		[2]string{"keepalive_requests", "10000"},
	)
}

// renderHTTPServer writes the server of one HTTP port.
func renderHTTPServer(t *text, l httpListener, opts Options, key string) {
	choice := l.choice()
	pass := func() { t.line("proxy_pass", "http://"+choice+"_${"+choice+"}_$serin_way") }
	renderListen(t, l.Number, opts.IPv6)
	renderAccessLog(t, choice, opts)
	renderStickyServer(t, l)
	renderRequestLimitServer(t, l.capacity, opts)
	t.line("error_page", "418", "=", "@closing")
	if l.Port.Mirror != nil {
		t.line("error_page", "419", "=", "@copied")
	}
	for _, e := range errorPages {
		t.line("error_page", strconv.Itoa(e.code), "=", "@"+strconv.Itoa(e.code))
	}
	if l.plain() {
		t.line("error_page", "420", "=", "@special")
		t.block("location", []string{"/"}, func() { renderPlain(t, l, opts) })
		t.block("location", []string{"@special"}, func() { renderPass(t, l, pass) })
	} else {
		t.block("location", []string{"/"}, func() { renderPass(t, l, pass) })
	}
	if l.Port.Mirror != nil {
		renderMirrorLocations(t, choice, key, pass)
	}
	t.block("location", []string{"@closing"}, func() {
		t.line("keepalive_timeout", "0")
		then := t.skip
		if l.mayRefuse() {
			then = goOn
		}
		renderDraw(t, l, secondTable, then)
		// A request that is not shared needs no weights.
		t.block("if", []string{"($" + choice, "=", "", ")"}, func() { t.line("return", "503") })
		pass()
	})
	renderErrorAnswers(t, opts, "$serin_final", pass)
}

// renderErrorAnswers writes what a client gets from the proxy itself. A request that
// a backend refused is passed on again until the variable final is 1.
func renderErrorAnswers(t *text, opts Options, final string, pass func()) {
	for _, e := range errorPages {
		code := strconv.Itoa(e.code)
		t.block("location", []string{"@" + code}, func() {
			answer := func() {
				t.line("add_header", "X-Serin-Proxy-Error", e.reason, "always")
				t.line("return", code, "serin proxy: "+e.reason+"\n")
			}
			if e.code == http.StatusInternalServerError {
				renderRefusedLog(t, opts) // no connection, file or memory was left
			}
			if e.code != http.StatusBadGateway {
				answer()
				return
			}
			t.block("if", []string{"(" + final + ")"}, answer)
			pass()
		})
	}
}

// renderPass writes how any request is drawn and passed on.
func renderPass(t *text, l httpListener, pass func()) {
	then := t.skip
	if l.mayRefuse() || l.Port.Mirror != nil {
		then = goOn
	}
	renderDraw(t, l, firstTable, then)
	// Maps are evaluated once, so those that depend on what is drawn wait for it.
	t.block("if", []string{"($" + l.drawn(), "=", "", ")"}, func() { t.line("return", "418") })
	if l.mayRefuse() {
		t.block("if", []string{"($" + l.choice(), "=", "", ")"}, func() { t.line("return", "503") })
	}
	if l.Port.Mirror != nil {
		t.block("if", []string{"($" + l.choice() + "_copied)"}, func() { t.line("return", "419") })
	}
	pass()
}

// errorPages are the answers that come from the proxy itself, marked so that
// users don't look for their cause in the application. They are reached with "=", so that a
// request that is answered at another attempt gets the status of that answer.
var errorPages = []struct {
	code   int
	reason string
}{
	{http.StatusInternalServerError, "internal error"},
	{http.StatusBadGateway, "the backend refused or broke the connection"},
	{http.StatusServiceUnavailable, "no backend has weight for this port"},
	{http.StatusGatewayTimeout, "the backend did not answer in time"},
}
