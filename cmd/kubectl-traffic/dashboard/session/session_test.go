// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
)

const (
	older = "0123456789abcdef0123456789abcdef"
	newer = "fedcba9876543210fedcba9876543210"
)

// keys is a file of keys that a test may replace.
func keys(t *testing.T, lines ...string) (session.Keys, func(lines ...string)) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	write := func(lines ...string) {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lines...)
	return session.KeyFile(name), write
}

func put(t *testing.T, j *session.Jar, value string, before ...*http.Cookie) []*http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if err := j.Put(w, with(before...), value); err != nil {
		t.Fatal(err)
	}
	return w.Result().Cookies()
}

func with(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://serin.example.org/", nil)
	for _, c := range cookies {
		if c.MaxAge >= 0 {
			r.AddCookie(c)
		}
	}
	return r
}

func TestASessionIsReadBackAndSaysNothingToItsThief(t *testing.T) {
	file, _ := keys(t, older)
	jar := session.NewJar(file, "session", "/", http.SameSiteStrictMode)
	cookies := put(t, jar, "the token of jane")
	if len(cookies) != 1 {
		t.Fatalf("cookies: %v", cookies)
	}
	c := cookies[0]
	if c.Name != "__Host-serin-session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie: %+v", c)
	}
	var got string
	if err := jar.Get(with(cookies...), &got); err != nil || got != "the token of jane" {
		t.Errorf("read back: %q, %v", got, err)
	}
	for _, known := range []string{"token", "jane"} {
		if strings.Contains(c.Value, known) {
			t.Errorf("the cookie shows %q", known)
		}
	}
	if again := put(t, jar, "the token of jane"); again[0].Value == c.Value {
		t.Error("the same session is sealed the same way twice")
	}
}

func TestWhatTheServerHasNotSealedIsNoSession(t *testing.T) {
	file, _ := keys(t, older)
	jar := session.NewJar(file, "session", "/", http.SameSiteStrictMode)
	sealed := put(t, jar, "the token of jane")[0]
	other, _ := keys(t, newer)
	forged := put(t, session.NewJar(other, "session", "/", http.SameSiteStrictMode), "the token of jane")[0]
	flow := put(t, session.NewJar(file, "flow", "/", http.SameSiteLaxMode), "the token of jane")[0]
	flip := func(at int) string {
		changed := []byte(sealed.Value)
		changed[at] = map[bool]byte{true: 'B', false: 'A'}[changed[at] == 'A']
		return string(changed)
	}
	for name, value := range map[string]string{
		"nothing": "", "no base64": "{}", "too short": "AAAA", "plain": "InRoZSB0b2tlbiBvZiBqYW5lIg",
		"sealed with another key": forged.Value, "sealed for another purpose": flow.Value,
		"a changed nonce": flip(0), "changed content": flip(20), "cut off": sealed.Value[:len(sealed.Value)-4],
	} {
		var got string
		if err := jar.Get(with(&http.Cookie{Name: sealed.Name, Value: value}), &got); err == nil || got != "" {
			t.Errorf("%s: %q is a session", name, got)
		}
	}
}

func TestAKeyIsReplacedWithoutEndingSessions(t *testing.T) {
	file, write := keys(t, older)
	jar := session.NewJar(file, "session", "/", http.SameSiteStrictMode)
	before := put(t, jar, "jane")
	write(newer, older)
	after := put(t, jar, "jane")
	reads := func(cookies []*http.Cookie) bool {
		var got string
		return jar.Get(with(cookies...), &got) == nil && got == "jane"
	}
	if !reads(before) || !reads(after) {
		t.Error("while both keys are there, a session has ended")
	}
	write(newer)
	if reads(before) || !reads(after) {
		t.Error("the older key is still good for sessions, or the newer one is not used")
	}
}

func TestLongTokensAreKeptInSeveralCookies(t *testing.T) {
	file, _ := keys(t, older)
	jar := session.NewJar(file, "session", "/", http.SameSiteStrictMode)
	long := strings.Repeat("group ", 1000)
	cookies := put(t, jar, long)
	if len(cookies) != 3 {
		t.Fatalf("%d cookies", len(cookies))
	}
	for _, c := range cookies {
		if len(c.String()) > 4096 {
			t.Errorf("the cookie %s has %d bytes", c.Name, len(c.String()))
		}
	}
	var got string
	if err := jar.Get(with(cookies...), &got); err != nil || got != long {
		t.Errorf("read back: %d characters, %v", len(got), err)
	}
	if err := jar.Get(with(cookies[0], cookies[2]), &got); err == nil {
		t.Error("a session without its middle is read")
	}
	short := put(t, jar, "jane", cookies...)
	if len(short) != 3 || short[1].MaxAge >= 0 || short[2].MaxAge >= 0 {
		t.Errorf("after a shorter session: %v", short)
	}
	w := httptest.NewRecorder()
	if err := jar.Put(w, with(), strings.Repeat("group ", 2000)); err == nil || !strings.Contains(err.Error(), "fewer scopes or groups") {
		t.Errorf("too long: %v", err)
	}
	w = httptest.NewRecorder()
	jar.Remove(w, with(cookies...))
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 || c.Value != "" {
			t.Errorf("logged out: %v", c)
		}
	}
}

func TestBelowAPathTheCookieIsSentToThatPathOnly(t *testing.T) {
	c := put(t, session.NewJar(session.RandomKey(), "session", "/serin/", http.SameSiteStrictMode), "jane")[0]
	if c.Name != "__Secure-serin-session" || c.Path != "/serin/" || !c.Secure {
		t.Errorf("cookie: %+v", c)
	}
}

func TestKeysThatCanBeGuessedAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"none":      {"\n", "there is none"},
		"short":     {"secret", "key 1 has 6 characters"},
		"one short": {older + "\nsecret", "key 2 has 6 characters"},
	} {
		file, _ := keys(t, test.content)
		if _, err := file(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := session.KeyFile(filepath.Join(t.TempDir(), "none"))(); err == nil {
		t.Error("a file that is not there has keys")
	}
}
