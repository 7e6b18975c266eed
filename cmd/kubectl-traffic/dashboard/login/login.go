// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
)

// Options say who may log in, and how.
type Options struct {
	// URL is where users reach the dashboard, with the path that it is below.
	URL string
	// ForwardedHost takes the host of requests from X-Forwarded-Host: only for a proxy that sets it itself.
	ForwardedHost bool
	// Provider, unless nil, lets users log in by OpenID Connect.
	Provider *Provider
	// Tokens lets users paste a token.
	Tokens bool
	// Keys seal the sessions, which end after Duration.
	Keys     session.Keys
	Duration time.Duration
	// Connect makes a client of the API server with a token, and no other credentials.
	Connect func(token string) (client.WithWatch, error)
	// Metrics, unless nil, makes a client of the TrafficMetrics API in the same way.
	Metrics func(token string) (dashboard.Metrics, error)
	// Namespace is shown to viewers who may not list Rollouts in the whole cluster, and
	// Cluster is what the page calls the cluster.
	Namespace, Cluster string
	Clock              clock.WithTicker
	Log                logr.Logger
}

// Login knows the viewer of a request by the session of the browser.
type Login struct {
	Options
	origin, path string
	sessions     *session.Jar
	flows        *session.Jar
	viewers      *viewers
	refresher    *refresher
}

// New checks the options.
func New(o Options) (*Login, error) {
	u, err := address(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Provider == nil && !o.Tokens {
		return nil, errors.New("no user could log in: name a provider, or let users paste tokens")
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/") + "/"
	l := &Login{
		Options: o, origin: u.Scheme + "://" + u.Host, path: path, viewers: newViewers(o),
		sessions: session.NewJar(o.Keys, "session", path, http.SameSiteStrictMode),
		// The provider sends the browser back from another site.
		flows: session.NewJar(o.Keys, "login", path, http.SameSiteLaxMode),
	}
	if p := o.Provider; p != nil {
		p.clock, p.redirect = o.Clock, l.origin+path+strings.TrimPrefix(callbackPath, "/")
		l.refresher = &refresher{provider: p, recent: utilcache.NewLRUExpireCacheWithClock(mostRefreshes, expiryClock{o.Clock})}
	}
	return l, nil
}

// address is the URL of the dashboard.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL of the dashboard: %w", err)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("the URL of the dashboard, %q, is not a URL such as https://serin.example.org/", text)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("the URL of the dashboard, %q, has to begin with https: tokens would be sent in the clear", text)
	}
	return u, nil
}

// loopback tells a host that no other machine reaches.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

const (
	beginPath    = "/login/oidc"
	callbackPath = "/login/callback"
	// healthPath answers probes, which come from the node under another host.
	healthPath = "/healthz"
)

// Handler serves the page to who has logged in. Options of the page that the login knows are set here.
func (l *Login) Handler(o dashboard.Options) http.Handler {
	o.Viewers, o.Origins, o.Clock = l, []string{l.origin}, l.Clock
	mux := http.NewServeMux()
	mux.Handle("/", l.withSession(dashboard.NewHandler(o)))
	guarded := func(pattern string, answer http.HandlerFunc) {
		mux.Handle(pattern, dashboard.Guard(o.Origins, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			answer(w, r)
		})))
	}
	guarded("GET /api/login", l.methods)
	guarded("POST /api/logout", l.logout)
	if l.Tokens {
		guarded("POST /api/login/token", l.withToken)
	}
	if l.Provider != nil {
		guarded("GET "+beginPath, l.begin)
		guarded("GET "+callbackPath, l.callback)
	}
	outer := http.NewServeMux()
	outer.HandleFunc("GET "+healthPath, func(http.ResponseWriter, *http.Request) {})
	outer.Handle(l.path, http.StripPrefix(strings.TrimSuffix(l.path, "/"), mux))
	return l.forwarded(outer)
}

// forwarded takes the host from the proxy in front, where that is configured.
func (l *Login) forwarded(next http.Handler) http.Handler {
	if !l.ForwardedHost {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := r.Header.Get("X-Forwarded-Host"); host != "" {
			r.Host = host
		}
		next.ServeHTTP(w, r)
	})
}

// found is the viewer of a request, or why there is none.
type found struct {
	viewer *dashboard.Viewer
	err    error
}

type foundKey struct{}

// withSession finds the viewer of a request for data, before anything is answered: a refreshed
// session goes with the answer. What it asks ends with the token, and a stream with it: the browser
// asks again, with the next token.
func (l *Login) withSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			next.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		s, err := l.session(w, r)
		var who found
		if who.err = err; err == nil {
			left := s.left(l.Clock.Now())
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, left)
			defer cancel()
			who.viewer, who.err = l.viewers.of(s.Token, left)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, foundKey{}, who)))
	})
}

// Viewer of a request that came through the handler.
func (l *Login) Viewer(r *http.Request) (*dashboard.Viewer, error) {
	who, ok := r.Context().Value(foundKey{}).(found)
	if !ok {
		return nil, errLoggedOut
	}
	return who.viewer, who.err
}

// What users are told who have no session.
var (
	errLoggedOut = errors.New("You are not logged in.")                                                                    //nolint:revive,staticcheck // a sentence for users
	errEnded     = errors.New("Your session has ended: log in again.")                                                     //nolint:revive,staticcheck // a sentence for users
	errSessions  = errors.New("The dashboard can't read sessions at present; its log says why.")                           //nolint:revive,staticcheck // a sentence for users
	errNoRefresh = errors.New("Your token has expired, and the provider that refreshes it does not answer: try it again.") //nolint:revive,staticcheck // a sentence for users
)

// session of a request, refreshed where that is due.
func (l *Login) session(w http.ResponseWriter, r *http.Request) (state, error) {
	var s state
	switch err := l.sessions.Get(r, &s); {
	case errors.Is(err, http.ErrNoCookie):
		return s, errLoggedOut
	case errors.Is(err, session.ErrSealed):
		l.sessions.Remove(w, r)
		return s, errEnded
	case err != nil:
		l.Log.Error(err, "Could not read a session")
		return s, errSessions
	}
	now := l.Clock.Now()
	switch s.phase(now) {
	case live:
		return s, nil
	case due:
		return l.refreshed(w, r, s, now)
	case over:
	}
	l.sessions.Remove(w, r)
	return s, errEnded
}

// refreshed is a session with the next token. While the provider does not answer it
// goes on with the token it has.
func (l *Login) refreshed(w http.ResponseWriter, r *http.Request, s state, now time.Time) (state, error) {
	if l.refresher == nil {
		l.sessions.Remove(w, r)
		return s, errEnded
	}
	next, err := l.refresher.refresh(r.Context(), s)
	switch {
	case err == nil:
		return next, l.put(w, r, next)
	case errors.Is(err, errProviderDown) && now.Before(s.Expires):
		l.Log.Error(err, "Could not refresh a token that is still valid")
		return s, nil
	case errors.Is(err, errProviderDown):
		l.Log.Error(err, "Could not refresh a token")
		return s, errNoRefresh
	}
	l.Log.Info("A session ended, since its token was not refreshed", "reason", err.Error())
	l.sessions.Remove(w, r)
	return s, errEnded
}

// put gives the browser a session.
func (l *Login) put(w http.ResponseWriter, r *http.Request, s state) error {
	err := l.sessions.Put(w, r, s)
	if err != nil {
		l.Log.Error(err, "Could not seal a session")
		return errSessions
	}
	return nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
