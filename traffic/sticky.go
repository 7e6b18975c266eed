// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"regexp"
	"time"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Sticky says how clients come back to the backend that they were given first.
type Sticky struct {
	// Cookie is the name of the cookie by which a client is known.
	Cookie string
	// MaxAge of the cookie, in seconds; 0 for as long as the client's session lasts.
	MaxAge int64 `json:",omitempty"`
	// Session whose cookies count; those of another one do not.
	Session string `json:",omitempty"`
}

// maxStickyAge is a year.
const maxStickyAge = 365 * 24 * time.Hour

// cookieName is what every data plane can look up: less than what RFC 6265 allows.
var cookieName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// stickyOf reads the sticky cookie of a split; nil when it has none.
func stickyOf(r splitv1.Routing) (*Sticky, error) {
	cookie := r.StickyCookie
	if cookie == nil {
		return nil, nil //nolint:nilnil // that clients are not sticky is no error
	}
	if !cookieName.MatchString(cookie.Name) {
		return nil, fmt.Errorf("%s.name: %.100q is not the name of a cookie; write a letter followed by letters, digits and _, at most 64, "+
			"such as version, or remove the cookie", FieldStickyCookie, cookie.Name)
	}
	if cookie.MaxAge == "" {
		return &Sticky{Cookie: cookie.Name, Session: cookie.Session}, nil
	}
	d, err := time.ParseDuration(cookie.MaxAge)
	if err != nil || d < time.Second || d > maxStickyAge || d%time.Second != 0 {
		return nil, fmt.Errorf("%s.maxAge: %.50q is not the age of a cookie; write whole seconds from 1s to 8760h, such as 12h, "+
			"or remove it for the client's session", FieldStickyCookie, cookie.MaxAge)
	}
	return &Sticky{Cookie: cookie.Name, MaxAge: int64(d / time.Second), Session: cookie.Session}, nil
}
