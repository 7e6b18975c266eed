// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic"
)

// AnyBucket is the name of the file in a backend's folder of a table that is executable
// when the backend has a weight above 0.
const AnyBucket = "any"

// stickyName is what a cookie's name can be: what a variable's name can end with.
var stickyName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// checkSticky refuses values that resolve.Split would not have let through.
func checkSticky(s *traffic.Sticky) error {
	switch {
	case s == nil:
		return nil
	case !stickyName.MatchString(s.Cookie):
		return fmt.Errorf("sticky: %.100q is not the name of a cookie", s.Cookie)
	case s.MaxAge < 0:
		return fmt.Errorf("sticky: the age of %d seconds is below 0", s.MaxAge)
	}
	return nil
}

// stickyValue stands for a backend in a cookie. It is the same for all ports of a
// Service, as cookies are for all ports of a host, and does not show its name. Another session
// has other values, so that no client comes back to the backend of the session before.
func stickyValue(session, service string) string {
	text := "sticky\x00" + service
	if session != "" {
		text += "\x00" + session
	}
	sum := sha256.Sum256([]byte(text))
	return "v" + hex.EncodeToString(sum[:8])
}

// how is the variable that holds accesslog.KindSticky for a request that came back.
func (l httpListener) how() string { return l.choice() + "_how" }

// renderStickyMaps writes the variables of a listener whose clients come back:
//
//	…_kept     the backend that the client's cookie names
//	…_back     the kind of a request that the weights share
//	…_cookie   the cookie that a client is given that was drawn
func renderStickyMaps(t *text, l httpListener) {
	choice := l.choice()
	kept, cookies := [][2]string{{"default", ""}}, [][2]string{{"default", ""}}
	for _, d := range l.Port.Destinations {
		value := stickyValue(l.sticky.Session, d.Service)
		kept = append(kept, [2]string{value, BackendID(d)})
		cookies = append(cookies, [2]string{accesslog.KindSplit + ":" + BackendID(d), makeCookie(*l.sticky, value)})
	}
	kind := "$" + choice + "_back"
	if l.limited {
		kind = "$" + choice + "_kind"
	}
	t.entries("map", []string{"$cookie_" + l.sticky.Cookie, "$" + choice + "_kept"}, kept...)
	t.entries("map", []string{"$" + l.how(), "$" + choice + "_back"},
		[2]string{"default", accesslog.KindSplit}, [2]string{accesslog.KindSticky, accesslog.KindSticky})
	t.entries("map", []string{kind + ":$" + choice, "$" + choice + "_cookie"}, cookies...)
}

// makeCookie is the text of a Set-Cookie header. Scripts have no use for it, and
// requests that other sites cause need not bring it.
func makeCookie(s traffic.Sticky, value string) string {
	text := s.Cookie + "=" + value + "; Path=/; HttpOnly; SameSite=Lax"
	if s.MaxAge > 0 {
		text += "; Max-Age=" + strconv.FormatInt(s.MaxAge, 10)
	}
	return text
}

// renderKept gives a request to the backend that its cookie names, if that has a
// weight above 0, whatever was drawn.
func renderKept(t *text, l httpListener, table string) {
	kept := "$" + l.choice() + "_kept"
	t.block("if", []string{"(-x", keptEntry(table, l.index, kept) + ")"}, func() {
		t.line("set", "$"+l.drawn(), kept)
		t.line("set", "$"+l.how(), accesslog.KindSticky)
	})
}

// renderStickyServer writes what a server does for clients that come back.
func renderStickyServer(t *text, l httpListener) {
	if l.sticky == nil {
		return
	}
	t.line("add_header", "Set-Cookie", "$"+l.choice()+"_cookie", "always")
}
