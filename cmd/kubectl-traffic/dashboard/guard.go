// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load what comes from its own origin, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers are on every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// Guard refuses requests for other hosts (a name of another site that was made to resolve to
// this address), requests that pages of other origins make, and changes that do not
// say where they come from.
func Guard(origins []string, next http.Handler) http.Handler {
	var hosts []string
	for _, origin := range origins {
		if u, err := url.Parse(origin); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if !slices.Contains(hosts, r.Host) {
			fail(w, http.StatusMisdirectedRequest, "The dashboard is not served under this host.")
			return
		}
		if why := refused(origins, r); why != "" {
			fail(w, http.StatusForbidden, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refused says why a request is, or "".
func refused(origins []string, r *http.Request) string {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case origin != "" && !slices.Contains(origins, origin):
		return "The request comes from a page of another origin."
	case strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin":
		return "The request comes from a page of another site."
	case reads:
		return ""
	case origin == "":
		return "The request does not say from which page it comes."
	case r.Header.Get("Content-Type") != "application/json":
		return "The request is not JSON."
	}
	return ""
}
