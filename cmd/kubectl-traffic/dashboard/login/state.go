// SPDX-License-Identifier: Apache-2.0

package login

import "time"

// refreshBefore is how long before its end a token is refreshed.
const refreshBefore = time.Minute

// state is what a session holds.
type state struct {
	// Token is sent to the API server.
	Token string `json:"token"`
	// Expires is when the token does.
	Expires time.Time `json:"expires"`
	// Refresh gets the next token from the provider; "" if there is none.
	Refresh string `json:"refresh,omitempty"`
	// Subject is how the provider calls the user. It stays the same.
	Subject string `json:"subject,omitempty"`
	// Ends is when the user has to log in again, whatever is refreshed until then.
	Ends time.Time `json:"ends"`
}

// phase says what to do with a session.
type phase int

const (
	over phase = iota
	live
	// due sessions are refreshed first.
	due
)

func (s state) phase(now time.Time) phase {
	switch {
	case s.Token == "" || !now.Before(s.Ends):
		return over
	case now.Before(s.Expires.Add(-refreshBefore)):
		return live
	case s.Refresh != "":
		return due
	case now.Before(s.Expires):
		return live
	}
	return over
}

// left is how long the token may be used.
func (s state) left(now time.Time) time.Duration {
	if s.Ends.Before(s.Expires) {
		return s.Ends.Sub(now)
	}
	return s.Expires.Sub(now)
}

// next is the session with the next tokens of the same user.
func (s state) next(t tokens) state {
	s.Token, s.Expires = t.id, t.expires
	if t.refresh != "" {
		s.Refresh = t.refresh
	}
	return s
}
