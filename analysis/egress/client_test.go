// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
		"", "ftp://example.org", "file:///etc/passwd", "http://", "http:///x", "http://user:secret@127.0.0.1/", "http://[::1", "http://a b/", "gopher://127.0.0.1:70/",
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
		"a bad URL":             {inside(ErrURL), "url: is no valid http or https URL without a user name; correct it"},
		"no address to protect": {inside(errUnknownServer), "the addresses of the API server are not known, so that no connection is made"},
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
