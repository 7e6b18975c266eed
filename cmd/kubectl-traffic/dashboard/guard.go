// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"net/url"
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
// say where they come from. It refuses all that http.CrossOriginProtection does, and more: see decision 112.
func Guard(origins []string, next http.Handler) http.Handler {
	byHost := map[string]string{}
	for _, origin := range origins {
		if u, err := url.Parse(origin); err == nil {
			byHost[u.Host] = origin
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		own, served := byHost[r.Host]
		if !served {
			fail(w, http.StatusMisdirectedRequest, "The dashboard is not served under this host.")
			return
		}
		if why := refused(own, r); why != "" {
			fail(w, http.StatusForbidden, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refused says why a request to an origin is refused, or "".
func refused(own string, r *http.Request) string {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	data := !reads || strings.HasPrefix(r.URL.Path, "/api/")
	switch {
	case origin != "" && origin != own:
		return "The request comes from a page of another origin."
	case data && site != "" && site != "same-origin":
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
