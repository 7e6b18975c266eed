// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func get(t *testing.T, policy Policy, address string) (body []byte, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := NewClient(policy, Options{Timeout: 5 * time.Second, KeepAlive: true}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func TestNoMoreOfAnAnswerIsReadThanTheLimit(t *testing.T) {
	for name, test := range map[string]struct {
		size int
		want error
	}{
		"nothing":          {0, nil},
		"just the limit":   {MaxBody, nil},
		"one byte beyond":  {MaxBody + 1, ErrTooLong},
		"a hundred limits": {100 * MaxBody, ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for left := test.size; left > 0; left -= 64 << 10 {
					if _, err := w.Write(make([]byte, min(left, 64<<10))); err != nil {
						return
					}
				}
			}))
			t.Cleanup(server.Close)
			body, err := get(t, loopback, server.URL)
			if !errors.Is(err, test.want) || len(body) != min(test.size, MaxBody) {
				t.Errorf("%d bytes and %v, want %v", len(body), err, test.want)
			}
		})
	}
}

func TestARedirectIsAnAnswerAndNotFollowed(t *testing.T) {
	var reached atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(target.Close)
	server := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusFound))
	t.Cleanup(server.Close)
	if _, err := get(t, loopback, server.URL); err != nil {
		t.Error(err)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("followed %d times", n)
	}
}

func TestThePolicyAppliesToTheAddressOfAName(t *testing.T) {
	var reached atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err := get(t, Policy{}, "http://"+host+":"+u.Port())
		if !IsRefused(err) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

func TestURLsThatAreNeverCalled(t *testing.T) {
	for _, address := range []string{
		"", "ftp://example.org", "file:///etc/passwd", "http://", "http:///x", "http://user:secret@127.0.0.1/", "http://exämple.org", "http://ｅxample.org", "http://[::1", "http://a b/", "gopher://127.0.0.1:70/",
	} {
		if err := CheckURL(address); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := CheckURL("https://example.org:8443/x?y=z"); err != nil {
		t.Error(err)
	}
	// A library may put a request together without asking CheckURL.
	if _, err := get(t, loopback, "http://user:secret@127.0.0.1:1/"); !errors.Is(err, ErrURL) {
		t.Errorf("got %v", err)
	}
}

func TestTheEnvironmentNamesNoProxy(t *testing.T) {
	transport, ok := NewClient(loopback, Options{}).Transport.(bounded)
	if !ok || transport.Proxy != nil {
		t.Error("requests go through a proxy")
	}
}

func TestDescribingAnErrorQuotesNothing(t *testing.T) {
	inside := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://example.org/confidential", Err: err}
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"too long an answer":    {inside(ErrTooLong), "the answer is longer than 1 MiB"},
		"no time left":          {inside(context.DeadlineExceeded), "no answer within 3s"},
		"a bad URL":             {inside(ErrURL), "url: is not a valid http or https URL without a user name; correct it"},
		"no address to protect": {inside(errUnknownServer), "the addresses of the API server are not known, so no connection is made"},
		"anything else":         {inside(errors.New("confidential")), "no HTTP answer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Describe(test.err, 3*time.Second)
			if got != test.want || strings.Contains(got, "confidential") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// names is a DNS server that answers each question with the next address.
func names(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	var asked atomic.Int64
	answer := func(question []byte) []byte {
		var p dnsmessage.Parser
		head, err := p.Start(question)
		if err != nil {
			return nil
		}
		q, err := p.Question()
		if err != nil {
			return nil
		}
		head.Response, head.Authoritative = true, true
		b := dnsmessage.NewBuilder(nil, head)
		if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
			return nil
		}
		if q.Type == dnsmessage.TypeA {
			n := int(asked.Add(1)) - 1
			address := netip.MustParseAddr(addresses[min(n, len(addresses)-1)])
			if b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, dnsmessage.AResource{A: address.As4()}) != nil {
				return nil
			}
		}
		text, err := b.Finish()
		if err != nil {
			return nil
		}
		return text
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(answer(buffer[:n]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

func TestANameThatChangesItsMeaningIsCheckedAgain(t *testing.T) {
	var reached atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// Of loopback only one address is allowed, and it refuses the connection.
	policy := Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	client := NewClient(policy, Options{Timeout: 5 * time.Second, Resolver: names(t, "127.0.0.2", "127.0.0.1")})
	for i, refused := range []bool{false, true} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://rebind.example:"+u.Port(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if IsRefused(err) != refused {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

func TestTheListsHoldForEveryRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	address := fmt.Sprintf("http://shop.example:%d", port)
	for name, test := range map[string]struct {
		policy Policy
		want   bool
	}{
		"only that host":         {Policy{Only: Destinations{Hosts: parsed(t, "shop.example")}}, true},
		"only that network":      {Policy{Only: Destinations{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, true},
		"only another host":      {Policy{Only: Destinations{Hosts: parsed(t, "example.org")}}, false},
		"another port of it":     {Policy{Only: Destinations{Hosts: parsed(t, "shop.example:1")}}, false},
		"only another network":   {Policy{Only: Destinations{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}, false},
		"the denied host":        {Policy{Denied: Destinations{Hosts: parsed(t, "*.example")}}, false},
		"a network of IPv4":      {Policy{Denied: Destinations{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, false},
		"the port of the server": {Policy{Ports: map[uint16]string{uint16(port): "of a proxy"}}, true}, // #nosec G115
	} {
		t.Run(name, func(t *testing.T) {
			test.policy.Allowed = loopback.Allowed
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := NewClient(test.policy, Options{Timeout: 5 * time.Second, Resolver: names(t, "127.0.0.1")}).Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if (err == nil) != test.want || err != nil && !IsRefused(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
