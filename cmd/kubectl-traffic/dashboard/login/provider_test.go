// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// provider is one that a test can make say anything. Tests against a real one are in e2e/integration.
type provider struct {
	*testing.T
	*httptest.Server
	clock interface{ Now() time.Time }
	key   *ecdsa.PrivateKey

	mu sync.Mutex
	// claims changes those of the next ID tokens.
	claims func(map[string]any)
	// sign signs ID tokens.
	sign func(payload []byte) string
	// down answers no question about tokens.
	down bool
	// asked has the questions about tokens, and revoked the tokens that were.
	asked   []url.Values
	revoked []string
	// refresh is the only refresh token that is accepted.
	refresh   string
	serial    int
	challenge string
	nonce     string
}

func newProvider(t *testing.T, clock interface{ Now() time.Time }) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{T: t, clock: clock, key: key}
	p.sign = p.signWith(key)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.revoked = append(p.revoked, r.FormValue("token"))
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) configuration(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"revocation_endpoint": p.URL + "/revoke", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
	})
}

func (p *provider) signWith(key *ecdsa.PrivateKey) func([]byte) string {
	return func(payload []byte) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
		if err != nil {
			p.Fatal(err)
		}
		signed, err := signer.Sign(payload)
		if err != nil {
			p.Fatal(err)
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			p.Fatal(err)
		}
		return token
	}
}

// token answers with tokens for jane, which are valid for an hour.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = r.ParseForm()
	p.asked = append(p.asked, r.PostForm)
	if p.down {
		http.Error(w, "the database of secrets is at 10.0.0.7", http.StatusBadGateway)
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "serin", "sub": "jane", "iat": p.clock.Now().Unix(), "exp": p.clock.Now().Add(time.Hour).Unix(), "n": p.serial}
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		if sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier"))); base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge {
			p.refuse(w)
			return
		}
		claims["nonce"] = p.nonce
	case "refresh_token":
		if r.PostForm.Get("refresh_token") != p.refresh {
			p.refuse(w)
			return
		}
	}
	if p.claims != nil {
		p.claims(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		p.Error(err)
	}
	p.serial++
	p.refresh = fmt.Sprintf("refresh-%d", p.serial)
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 3600, "refresh_token": p.refresh}
	if signed := p.sign(payload); signed != "" {
		answer["id_token"] = signed
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *provider) refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
}

// change changes what the provider does from now on.
func (p *provider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}
