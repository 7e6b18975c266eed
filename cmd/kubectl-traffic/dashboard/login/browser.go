// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	// flowTime bounds how long a user may take at the provider.
	flowTime = 10 * time.Minute
	// longestAt bounds the page that is shown after a login.
	longestAt = 1000
	// mostBytes bound a request; tokens with many groups are long.
	mostBytes = 16384
)

// ways are those in which users may log in.
type ways struct {
	// Provider is the name of the provider, if there is one.
	Provider string `json:"provider,omitempty"`
	Tokens   bool   `json:"tokens"`
}

// said is what the page shows of an answer.
type said struct {
	Message string `json:"message"`
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the browser is gone
}

func (l *Login) methods(w http.ResponseWriter, _ *http.Request) {
	answer := ways{Tokens: l.Tokens}
	if l.Provider != nil {
		answer.Provider = l.Provider.Name
	}
	reply(w, http.StatusOK, answer)
}

// begin sends the browser to the provider.
func (l *Login) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Ends: l.Clock.Now().Add(flowTime)}
	if at := r.URL.Query().Get("at"); strings.HasPrefix(at, "/") && len(at) <= longestAt {
		f.At = at
	}
	to, err := l.Provider.begin(ctx, f)
	if err == nil {
		err = l.flows.Put(w, r, f)
	}
	if err != nil {
		l.Log.Error(err, "Could not begin a login")
		l.failed(w, http.StatusBadGateway, "The login can't begin, since the provider does not answer or the dashboard is misconfigured; its log says why.")
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback is where the provider sends the browser back to.
func (l *Login) callback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*providerTimeout)
	defer cancel()
	var f flow
	err := l.flows.Get(r, &f)
	l.flows.Remove(w, r)
	query := r.URL.Query()
	if err == nil {
		err = l.check(query, f)
	}
	if err != nil {
		l.failed(w, http.StatusBadRequest, "This browser did not begin the login, or began it more than ten minutes ago.")
		return
	}
	if code := query.Get("error"); code != "" {
		l.failed(w, http.StatusForbidden, fmt.Sprintf("%s refused: %s %s", l.Provider.Name, code, query.Get("error_description")))
		return
	}
	got, err := l.Provider.finish(ctx, query.Get("code"), f)
	if err != nil {
		l.Log.Error(err, "Could not finish a login")
		l.failed(w, http.StatusForbidden, fmt.Sprintf("The login at %s failed: %v.", l.Provider.Name, err))
		return
	}
	ends := l.Clock.Now().Add(l.Duration)
	err = l.admit(ctx, w, r, state{Token: got.id, Expires: got.expires, Refresh: got.refresh, Subject: got.subject, Ends: ends})
	if errors.Is(err, errNotAccepted) {
		err = fmt.Errorf("the API server does not accept the ID tokens that %s issues for the client %s: configure it with the issuer %s and that audience", l.Provider.Name, l.Provider.ClientID, l.Provider.Issuer)
	}
	if err != nil {
		l.failed(w, http.StatusForbidden, fmt.Sprintf("You can't log in: %v.", err))
		return
	}
	// Only the part of the address that is behind the # comes from outside.
	to := url.URL{Path: l.path, Fragment: "/"}
	if f.At != "" {
		to.Fragment = f.At
	}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// check refuses what is no answer to the login that this browser began.
func (l *Login) check(query url.Values, f flow) error {
	switch iss := query.Get("iss"); {
	case l.Clock.Now().After(f.Ends):
		return errors.New("too late")
	case !equal(query.Get("state"), f.State):
		return errors.New("another login")
	case iss != "" && iss != l.Provider.Issuer:
		return errors.New("another provider")
	}
	return nil
}

// admit gives the browser a session, if the API server knows the token.
func (l *Login) admit(ctx context.Context, w http.ResponseWriter, r *http.Request, s state) error {
	user, err := l.viewers.user(ctx, s.Token)
	if err != nil {
		l.Log.Info("A login was refused", "reason", err.Error())
		return err
	}
	if err := l.put(w, r, s); err != nil {
		return err
	}
	l.Log.Info("A user logged in", "user", user)
	return nil
}

// withToken logs in with a token that was pasted.
func (l *Login) withToken(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes)).Decode(&body); err != nil {
		reply(w, http.StatusBadRequest, said{"The request can't be read."})
		return
	}
	token := strings.TrimSpace(body.Token)
	if err := checkToken(token); err != nil {
		reply(w, http.StatusBadRequest, said{err.Error()})
		return
	}
	ends := l.Clock.Now().Add(l.Duration)
	switch err := l.admit(ctx, w, r, state{Token: token, Expires: expiry(token, ends), Ends: ends}); {
	case errors.Is(err, errNotAccepted):
		reply(w, http.StatusForbidden, said{"The API server does not accept this token: it may have expired, or be for another audience or cluster."})
	case err != nil:
		reply(w, http.StatusBadGateway, said{fmt.Sprintf("You can't log in: %v.", err)})
	default:
		reply(w, http.StatusOK, said{"Logged in."})
	}
}

// logout ends the session in the browser, and the refresh token at the provider.
func (l *Login) logout(w http.ResponseWriter, r *http.Request) {
	var s state
	if err := l.sessions.Get(r, &s); err == nil && s.Refresh != "" && l.Provider != nil {
		ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
		defer cancel()
		if err := l.Provider.revoke(ctx, s.Refresh); err != nil {
			l.Log.Error(err, "Could not revoke the refresh token of a user who logged out")
		}
	}
	l.sessions.Remove(w, r)
	reply(w, http.StatusOK, said{"Logged out."})
}

// failedPage is shown when the browser comes back from a login that failed.
var failedPage = template.Must(template.New("failed").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Serin: not logged in</title>
<link rel="icon" href="../icon.svg" type="image/svg+xml"><link rel="stylesheet" href="../app.css"></head>
<body><main class="empty"><h1>You are not logged in</h1><p role="alert">{{.}}</p><p><a href="../">Try it again</a></p></main></body></html>
`))

func (l *Login) failed(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = failedPage.Execute(w, message) // the browser is gone
}
