// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/exposition"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// A header can say anything. Whose connection it is can't be made up.
func TestTheClientOfAFlowIsTheOneThatConnected(t *testing.T) {
	t.Parallel()
	for _, protocol := range []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolHTTP2} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			r := startRig(t, rigOptions{})
			stable := serveAt(t, "web-stable", "127.0.0.1:0")
			r.want(t, protocol, stable.destination(1))
			for _, source := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.2"} {
				client := clientFrom(t, source, protocol)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url("/"), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded"} {
					request.Header.Set(name, "10.0.0.7")
				}
				response, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				client.CloseIdleConnections()
			}
			if err := r.shutdown(t); err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, m := range r.gather(t)[exposition.FlowRequests].GetMetric() {
				if labels := proxytest.Labels(m); labels[exposition.Result] == exposition.Success {
					got[labels[exposition.Apex]+" "+labels[exposition.Backend]+" "+labels[exposition.Client]] = m.GetCounter().GetValue()
				}
			}
			want := map[string]float64{"web web-stable 127.0.0.1": 1, "web web-stable 127.0.0.2": 2}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("successes (-want +got):\n%s", diff)
			}
		})
	}
}

// clientFrom is a client with an address of its own.
func clientFrom(t *testing.T, source string, protocol traffic.Protocol) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	transport := &http.Transport{Protocols: &http.Protocols{}, DialContext: dialer.DialContext}
	transport.Protocols.SetHTTP1(protocol == traffic.ProtocolHTTP)
	transport.Protocols.SetUnencryptedHTTP2(protocol == traffic.ProtocolHTTP2)
	return &http.Client{Transport: transport}
}
