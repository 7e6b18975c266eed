// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strconv"

	"github.com/serin-dev/serin/proxy/accesslog"
)

// renderStreamDefaults writes what all TCP listeners share. A byte stream is
// never cut for being idle sooner than a day; TCP keep-alive finds dead peers.
func renderStreamDefaults(t *text) {
	t.line("variables_hash_max_size", "4096")
	t.lines(
		[2]string{"proxy_connect_timeout", "5s"},
		[2]string{"proxy_timeout", "1d"},
		[2]string{"proxy_next_upstream", "on"},
		[2]string{"proxy_next_upstream_timeout", "10s"},
		[2]string{"proxy_socket_keepalive", "on"},
		[2]string{"proxy_half_close", "on"},
		[2]string{"proxy_buffer_size", "16k"},
		[2]string{"tcp_nodelay", "on"},
	)
}

// renderStreamListener writes one TCP port: the choice of each connection, the
// upstreams that it chooses from, and the server. With no backend to serve it, a
// connection is closed at once.
func renderStreamListener(t *text, i int, l Listener, opts Options) {
	choice := fmt.Sprintf("serin_tcp_%d", i)
	var percents [][2]string
	for j, n := range portShares(l.Port) {
		if n == 0 {
			continue
		}
		d := l.Port.Destinations[j]
		name := choice + "_" + BackendID(d)
		t.block("upstream", []string{name}, func() {
			for range maxTries { // each server is tried once, and nothing was sent to one that refused
				renderServer(t, d)
			}
		})
		percents = append(percents, [2]string{percent(n), BackendID(d)})
	}
	if len(percents) > 0 {
		// The last takes the rest, so that no hash value is left without a choice.
		percents[len(percents)-1][0] = "*"
		// $connection alone counts from 1 in every pod.
		key := "$connection $remote_addr $remote_port $pid $msec"
		t.entries("split_clients", []string{key, "$" + choice}, percents...)
		t.line("log_format", choice, accesslog.Untimed("$"+choice, accesslog.KindConnection).Line())
	}
	t.block("server", nil, func() {
		renderListen(t, l.Number, opts.IPv6)
		if len(percents) == 0 {
			t.line("return", "")
			return
		}
		renderAccessLog(t, choice, opts)
		t.line("proxy_pass", choice+"_$"+choice)
	})
}

// percent writes a number of buckets with the two decimals that nginx reads.
func percent(buckets int) string {
	return strconv.Itoa(buckets/100) + fmt.Sprintf(".%02d%%", buckets%100)
}
