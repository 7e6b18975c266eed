// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Loopback has one viewer: the user who started the command. The browser of that user
// brings a secret once, and a cookie from then on.
type Loopback struct {
	viewer *Viewer
	// cookie has the port in its name, because browsers share cookies among all ports of a host.
	cookie          string
	secret, session string
}

// NewLoopback makes a secret and a session, which end with the process.
func NewLoopback(v *Viewer, port string) *Loopback {
	return &Loopback{viewer: v, cookie: "serin-dashboard-" + port, secret: rand.Text(), session: rand.Text()}
}

// openPath is where the secret is brought.
const openPath = "/open"

// FirstURL logs the browser in that opens it, and shows a page: a path behind the # of the page.
func (l *Loopback) FirstURL(origin, at string) string {
	query := url.Values{"secret": {l.secret}}
	if at != "" {
		query.Set("at", at)
	}
	return origin + openPath + "?" + query.Encode()
}

// Handler exchanges the secret for the cookie and leaves all else to the page.
func (l *Loopback) Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", NewHandler(o))
	mux.Handle("GET "+openPath, Guard(o.Origins, http.HandlerFunc(l.open)))
	return mux
}

func (l *Loopback) open(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	query := r.URL.Query()
	if !equal(query.Get("secret"), l.secret) {
		fail(w, http.StatusForbidden, "The secret in the address is not that of this dashboard: open the address that kubectl traffic dashboard has printed.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // loopback has no TLS
	to := url.URL{Path: "/", Fragment: "/"}
	if at := query.Get("at"); strings.HasPrefix(at, "/") {
		to.Fragment = at
	}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// Viewer is the user of the command, if the browser has the cookie.
func (l *Loopback) Viewer(r *http.Request) (*Viewer, error) {
	for _, c := range r.CookiesNamed(l.cookie) {
		if equal(c.Value, l.session) {
			return l.viewer, nil
		}
	}
	return nil, errors.New("This browser is not logged in: open the address that kubectl traffic dashboard has printed.") //nolint:revive,staticcheck // a sentence for users
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
