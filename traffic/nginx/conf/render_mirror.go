// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strconv"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic"
)

const (
	// maxCopies on their way at once. What exceeds it is dropped: a backend that
	// hangs must not use up the connections that users need.
	maxCopies = 128
	// copyBody is the memory for the body of a request that is copied. A body has to
	// be read whole first, so only those below 100,000 bytes are copied.
	copyBody = "100k"
	// What begins the paths by which nginx passes a copy on to itself. A digest of the
	// configuration follows, so that no client asks for them.
	offerPath = "/.serin-offer-"
	copyPath  = "/.serin-copy-"
)

// renderMirrorMaps writes the variables by which requests are chosen for a copy:
// a share of them, without what would have to be read whole and is long or of
// unknown length, and without what is no request any more once it is upgraded.
func renderMirrorMaps(t *text, mirror traffic.Mirror) {
	share := [][2]string{{strconv.Itoa(int(mirror.Percent)) + "%", "1"}, {"*", "0"}}
	if mirror.Percent == 100 {
		share = [][2]string{{"*", "1"}}
	}
	t.entries("split_clients", []string{"mirror $request_id", "$serin_drawn_copy"}, share...)
	t.entries("map", []string{"$content_length:$http_transfer_encoding:$serin_upgrade", "$serin_copyable"},
		[2]string{"default", "0"}, [2]string{`~\A[0-9]{0,5}::\z`, "$serin_drawn_copy"})
	t.line("limit_conn_zone", "copies", "zone=serin_copies:64k")
}

// renderMirrorChoice writes the variable that is 1 for a request to copy: one of
// those that were chosen, and that goes to another backend.
func renderMirrorChoice(t *text, choice, mirror string) {
	t.entries("map", []string{"$" + choice, "$" + choice + "_copied"},
		[2]string{"default", "$serin_copyable"}, [2]string{"", "0"}, [2]string{mirror, "0"})
}

// renderMirrorLocations writes how a request is passed on that is copied as well.
//
// nginx keeps a client's connection for as long as a copy of its request is on its
// way, and a slow copy would hold the client's next request up. So the copy goes to
// a server in this same nginx, which answers at once and is the one that waits.
func renderMirrorLocations(t *text, choice, key string, pass func()) {
	path := offerPath + key
	t.block("location", []string{"@copied"}, func() {
		t.line("mirror", path)
		t.line("client_body_buffer_size", copyBody)
		pass()
	})
	t.block("location", []string{"=", path}, func() {
		t.line("internal")
		// Without a list of its own it would answer errors by those of the client's
		// request, and ask a backend again.
		t.line("error_page", "599", "/")
		renderCopyHeaders(t, "$proxy_add_x_forwarded_for")
		t.line("proxy_connect_timeout", "1s")
		t.line("proxy_read_timeout", "1s")
		t.line("proxy_send_timeout", "1s")
		t.line("proxy_pass", "http://"+choice+"_mirror$request_uri")
	})
}

// renderMirrorServer writes the server that waits for the copies of one listener.
func renderMirrorServer(t *text, l httpListener, opts Options, key string) {
	choice, mirror := l.choice(), *l.Port.Mirror
	id := BackendID(mirror)
	socket := "unix:" + mirrorSocket(l.index)
	t.block("upstream", []string{choice + "_mirror"}, func() { t.line("server", socket, "max_fails=0") })
	t.block("upstream", []string{choice + "_copies"}, func() { renderServer(t, mirror) })
	mirrored := accesslog.Answered(id, accesslog.KindMirrored)
	mirrored.Address, mirrored.Completion, mirrored.Client = accesslog.Asked, accesslog.Complete, accesslog.Absent
	renderLogFormat(t, choice+"_mirrored", mirrored)
	t.line("log_format", choice+"_dropped", accesslog.Untimed(id, accesslog.KindDropped).Line())
	log := func(format string) { renderAccessLog(t, format, opts) }
	t.block("server", nil, func() {
		t.line("listen", socket, "backlog=4096")
		// That a backend fails shows in the counts; it need not be told for each copy.
		t.line("error_log", "stderr", "crit")
		t.line("limit_conn", "serin_copies", strconv.Itoa(maxCopies))
		t.line("client_body_buffer_size", copyBody)
		t.line("error_page", "503", "@dropped")
		t.block("location", []string{"/"}, func() {
			t.line("mirror", copyPath+key)
			t.line("stub_status") // anything that answers at once
		})
		t.block("location", []string{"=", copyPath + key}, func() {
			t.line("internal")
			t.line("log_subrequest", "on")
			log(choice + "_mirrored")
			renderCopyHeaders(t, "$http_x_forwarded_for")
			t.line("proxy_connect_timeout", "1s")
			t.line("proxy_read_timeout", "10s")
			t.line("proxy_send_timeout", "10s")
			t.line("proxy_pass", "http://"+choice+"_copies$request_uri")
		})
		t.block("location", []string{"@dropped"}, func() {
			log(choice + "_dropped")
			t.line("return", "503")
		})
	})
}

// renderCopyHeaders writes the headers of a copy: the request's own, and one that
// says to the backend that no client will see its answer.
func renderCopyHeaders(t *text, forwarded string) {
	t.line("proxy_set_header", "Host", "$serin_host")
	t.line("proxy_set_header", "X-Forwarded-For", forwarded)
	t.line("proxy_set_header", "X-Serin-Mirrored", "1")
	t.line("proxy_set_header", "Upgrade", "")
	t.line("proxy_set_header", "Connection", "close")
}
