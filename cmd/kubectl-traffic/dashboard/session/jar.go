// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	// chunk bounds the value of one cookie: browsers keep 4096 bytes with name and attributes.
	chunk = 3800
	// most bounds the cookies of one jar: ID tokens with many groups are long, and so is the
	// header of requests that many proxies still pass on.
	most = 4
)

// Jar keeps one value in cookies.
type Jar struct {
	keys Keys
	name string
	path string
	site http.SameSite
}

// NewJar keeps a value for a purpose, for requests below a path. At the root of a host the name
// begins with __Host-, so that no other host of the same domain can set it; below a path
// with __Secure-, since other paths belong to others.
func NewJar(keys Keys, purpose, path string, site http.SameSite) *Jar {
	prefix := "__Host-"
	if path != "/" {
		prefix = "__Secure-"
	}
	return &Jar{keys: keys, name: prefix + "serin-" + purpose, path: path, site: site}
}

// cookieName of a part of the value.
func (j *Jar) cookieName(part int) string {
	if part == 0 {
		return j.name
	}
	return j.name + "-" + strconv.Itoa(part)
}

func (j *Jar) cookie(part int, value string, age int) *http.Cookie {
	return &http.Cookie{Name: j.cookieName(part), Value: value, Path: j.path, MaxAge: age, HttpOnly: true, Secure: true, SameSite: j.site} //nolint:gosec // the site is never that of none
}

// Put keeps a value until the browser ends, in place of the one before.
func (j *Jar) Put(w http.ResponseWriter, r *http.Request, value any) error {
	plain, err := json.Marshal(value)
	if err != nil {
		return err
	}
	keys, err := j.keys()
	if err != nil {
		return err
	}
	sealed, err := seal(keys, j.name, plain)
	if err != nil {
		return err
	}
	if len(sealed) > most*chunk {
		return fmt.Errorf("the tokens have %d bytes, and %d fit into cookies; ask the provider for fewer scopes or groups", len(plain), most*chunk*3/4)
	}
	part := 0
	for ; sealed != ""; part++ {
		end := min(chunk, len(sealed))
		http.SetCookie(w, j.cookie(part, sealed[:end], 0))
		sealed = sealed[end:]
	}
	j.removeFrom(w, r, part)
	return nil
}

// Remove makes the browser forget the value.
func (j *Jar) Remove(w http.ResponseWriter, r *http.Request) { j.removeFrom(w, r, 0) }

func (j *Jar) removeFrom(w http.ResponseWriter, r *http.Request, part int) {
	for ; part < most; part++ {
		if _, err := r.Cookie(j.cookieName(part)); err == nil {
			http.SetCookie(w, j.cookie(part, "", -1))
		}
	}
}

// Get reads the value of a request, which has it only if this server sealed it.
func (j *Jar) Get(r *http.Request, into any) error {
	var sealed strings.Builder
	for part := range most {
		cookie, err := r.Cookie(j.cookieName(part))
		if err != nil {
			break
		}
		sealed.WriteString(cookie.Value)
	}
	if sealed.Len() == 0 {
		return http.ErrNoCookie
	}
	keys, err := j.keys()
	if err != nil {
		return err
	}
	plain, err := unseal(keys, j.name, sealed.String())
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}
